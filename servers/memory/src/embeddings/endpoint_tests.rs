//! The wire format, and what goes wrong on it.

use super::*;
use crate::embeddings::loopback::serve;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn service(base: &str) -> Service {
    let endpoint = Endpoint { key: Some("secret-key".to_owned()), ..Endpoint::new(base, "m") };
    Service { wait: Duration::from_millis(1), ..Service::new(endpoint).unwrap() }
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("text {n}")).collect()
}

fn ok(body: Value) -> (u16, String, Vec<u8>) {
    (200, String::new(), body.to_string().into_bytes())
}

#[tokio::test]
async fn texts_go_out_and_vectors_come_back_in_their_order() {
    let (base, seen) = serve(|_, _| {
        ok(json!({"data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]}))
    })
    .await;
    let mut service = service(&format!("{base}/v1/"));
    service.endpoint.dimensions = Some(2);
    assert_eq!(service.embed(&texts(2), soon()).await.unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    assert_eq!(service.name(), "m@2");
    let (head, body) = seen.lock().unwrap()[0].clone();
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("authorization: bearer secret-key"), "{head}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        body,
        json!({"model": "m", "input": ["text 0", "text 1"], "dimensions": 2, "encoding_format": "float"})
    );
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let (base, seen) = serve(|n, _| match n {
        0 => (429, "retry-after: 0\r\n".to_owned(), b"{}".to_vec()),
        1 => (503, String::new(), b"busy".to_vec()),
        _ => ok(json!({"data": [{"embedding": [3.0]}]})),
    })
    .await;
    assert_eq!(service(&base).embed(&texts(1), soon()).await.unwrap(), [[3.0]]);
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn what_lasts_is_not_and_is_said_without_the_key() {
    let (base, seen) = serve(|_, _| {
        let body = json!({"error": {"message": "Incorrect API key provided: secret-key"}});
        (401, String::new(), body.to_string().into_bytes())
    })
    .await;
    let fault = service(&base).embed(&texts(1), soon()).await.unwrap_err();
    assert_eq!(fault.code, Code::Outside);
    assert!(fault.message.contains("401") && fault.message.contains("Incorrect API key"), "{fault}");
    assert!(!fault.message.contains("secret-key"), "{fault}");
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn tries_end() {
    let (base, seen) = serve(|_, _| (500, String::new(), Vec::new())).await;
    let fault = service(&base).embed(&texts(1), soon()).await.unwrap_err();
    assert!(fault.message.contains("500"), "{fault}");
    assert_eq!(seen.lock().unwrap().len(), 1 + RETRIES as usize);
    let (base, seen) = serve(|_, _| (429, "retry-after: 3600\r\n".to_owned(), Vec::new())).await;
    let fault = service(&base).embed(&texts(1), soon()).await.unwrap_err();
    assert!(fault.message.contains("429"), "{fault}");
    assert_eq!(seen.lock().unwrap().len(), 1, "nobody waits longer than there is time");
}

#[tokio::test]
async fn answers_that_are_none_are_refused() {
    for (answer, named) in [
        (json!("garbage"), "\"data\""),
        (json!({"data": []}), "vector for each"),
        (json!({"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}), "dimensions"),
        (json!({"data": [{"embedding": [1.0]}]}), "vector for each"),
        (json!({"data": [{"embedding": [1.0]}, {"embedding": []}]}), "vector for each"),
        (json!({"data": [{"index": 7, "embedding": [1.0]}, {"embedding": [1.0]}]}), "others"),
        (json!({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}), "others"),
        (json!({"data": [{"embedding": ["a"]}]}), "\"data\""),
    ] {
        let (base, seen) = serve(move |_, _| ok(answer.clone())).await;
        let fault = service(&base).embed(&texts(2), soon()).await.unwrap_err();
        assert!(fault.message.contains(named), "{fault}");
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn nobody_there() {
    let (base, _) = serve(|_, _| ok(json!({}))).await;
    let mut port: Url = base.parse().unwrap();
    port.set_port(Some(1)).unwrap();
    let fault = service(port.as_str()).embed(&texts(1), soon()).await.unwrap_err();
    assert!(fault.message.contains("cannot be reached"), "{fault}");
}

#[tokio::test]
async fn a_service_that_keeps_failing_is_left_alone() {
    let (base, seen) = serve(|n, _| match n {
        0..3 => (503, String::new(), Vec::new()),
        _ => (401, String::new(), Vec::new()),
    })
    .await;
    let service = service(&base);
    // A single attempt each: there is no time for another.
    let once = || Instant::now() + Duration::from_secs(5);
    for _ in 0..3 {
        assert!(service.embed(&texts(1), once()).await.unwrap_err().message.contains("503"));
    }
    let fault = service.embed(&texts(1), once()).await.unwrap_err();
    assert_eq!(fault.code, Code::Unavailable);
    assert!(fault.message.starts_with("Service temporarily unavailable"), "{fault}");
    assert!(fault.message.contains("the embedding service at 127.0.0.1"), "{fault}");
    assert_eq!(seen.lock().unwrap().len(), 3, "nothing was sent");
    // What it answers below 500 shows that it is there.
    service.circuit.reset();
    for _ in 0..4 {
        assert!(service.embed(&texts(1), once()).await.unwrap_err().message.contains("401"));
    }
    assert_eq!(circuits::shown(&service.circuit)["state"], "CLOSED");
}

#[test]
fn settings_are_checked() {
    for (endpoint, field) in [
        (Endpoint::new("not an address", "m"), "base"),
        (Endpoint::new("file:///etc", "m"), "base"),
        (Endpoint::new("http://localhost", " "), "model"),
        (Endpoint { dimensions: Some(0), ..Endpoint::new("http://localhost", "m") }, "dimensions"),
    ] {
        let fault = Service::new(endpoint).err().unwrap();
        assert!(fault.message.contains(field), "{fault}");
    }
}
