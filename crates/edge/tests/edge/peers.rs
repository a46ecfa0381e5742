//! Where requests come from: the other end of the socket, and what trusted proxies say.

use std::convert::Infallible;

use ::http::{Request, Response};
use axum::body::Body;
use tidegate_edge::http::{self, ClientAddress, HttpService, Settings, TrustedProxies};
use tokio::net::{TcpListener, TcpStream};

use crate::common::in_time;
use crate::common::socket::*;

/// A service that says where a request came from.
fn saying() -> impl HttpService {
    tower::service_fn(async |request: Request<Body>| {
        let said = match request.extensions().get::<ClientAddress>() {
            Some(ClientAddress { ip, via_proxy, is_secure, .. }) => format!("{ip} {via_proxy} {is_secure}"),
            None => "nothing".to_owned(),
        };
        Ok::<_, Infallible>(Response::new(Body::from(said)))
    })
}

/// Sends a request to such a service.
async fn seen(settings: Settings, headers: &[(&str, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(http::serve(saying(), listener, settings, std::future::pending()));
    let headers = [headers, &[("connection", "close")]].concat();
    let answer = to_the_end(&mut Sent::new(address, "POST", &headers, "").await.0).await;
    serving.abort();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    format!("{} {body}", head.split(' ').nth(1).unwrap())
}

fn trusting(networks: &[&str]) -> Settings {
    Settings { trusted_proxies: TrustedProxies::parse(networks).unwrap(), ..Settings::default() }
}

#[tokio::test]
async fn only_trusted_proxies_are_believed() {
    let forwarded = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https")];
    assert_eq!(seen(Settings::default(), &forwarded).await, "200 127.0.0.1 false false");
    assert_eq!(seen(trusting(&["10.0.0.0/8"]), &forwarded).await, "200 127.0.0.1 false false");
    assert_eq!(seen(trusting(&["127.0.0.1"]), &forwarded).await, "200 192.0.2.1 true true");
    assert_eq!(seen(trusting(&["127.0.0.0/8"]), &[]).await, "200 127.0.0.1 false false");
}

#[tokio::test]
async fn the_first_request_of_a_plain_local_connection_says_where_all_come_from() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(http::serve(saying(), listener, Settings::default(), std::future::pending()));
    let mut sent = Sent::new(address, "POST", &[], "").await;
    sent.until("127.0.0.1 false false").await;
    let request = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut sent.0, request.as_bytes()).await.unwrap();
    sent.until("nothing").await;
    serving.abort();
}

#[tokio::test]
async fn where_only_proxies_are_served_others_are_not() {
    let only = |networks: &[&str]| Settings { only_proxies: true, ..trusting(networks) };
    let forwarded = [("x-forwarded-for", "127.0.0.1")];
    let refused = seen(only(&["10.0.0.0/8"]), &forwarded).await;
    assert!(refused.starts_with("403 ") && refused.contains("trusted_proxies"), "{refused}");
    assert_eq!(
        seen(only(&["127.0.0.1"]), &[("x-forwarded-for", "192.0.2.1")]).await,
        "200 192.0.2.1 true false"
    );
}

#[tokio::test]
async fn the_host_that_a_proxy_names_does_not_count() {
    let settings = trusting(&["127.0.0.1"]);
    let (address, _server) = serve_with(&crate::common::Stub::new(), settings).await;
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let length = message.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: evil.example.com\r\nx-forwarded-host: localhost\r\nforwarded: \
         for=192.0.2.1;host=localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{message}"
    );
    let mut sent = Sent(TcpStream::connect(address).await.unwrap());
    tokio::io::AsyncWriteExt::write_all(&mut sent.0, request.as_bytes()).await.unwrap();
    let answer = in_time("an answer", sent.until("}")).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("evil.example.com"), "{answer}");
}
