//! What comes back, in all its forms.

use super::super::events::Event;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::server::{answer, chunked, json, read};
use super::*;

#[tokio::test]
async fn bodies_are_sorted_by_what_they_are() {
    let chunks = |kind: &str, pieces: &[&str]| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n{}",
            chunked(pieces)
        )
    };
    let page = format!("<html>\n\x1b{}</html>", "x".repeat(1000));
    let cases: Vec<(String, String)> = vec![
        (json("{\"id\":1}"), "200 {\"id\":1}".to_owned()),
        (answer("400 Bad", "Content-Type: Application/JSON; charset=utf-8\r\n", "{}"), "400 {}".to_owned()),
        (chunks("application/json", &["{\"id\"", ":", "1}"]), "200 {\"id\":1}".to_owned()),
        (json(""), "200 empty".to_owned()),
        (chunks("application/json", &[]), "200 empty".to_owned()),
        (answer("202 Accepted", "", ""), "202 empty".to_owned()),
        (answer("202 Accepted", "content-type: text/plain\r\n", "Accepted"), "202 empty".to_owned()),
        (answer("202 Accepted", "content-type: application/json\r\n", "null"), "202 empty".to_owned()),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), "204 empty".to_owned()),
        (answer("405 Not Allowed", "", ""), "405 empty".to_owned()),
        (chunks("text/event-stream", &[":\n\n"]), "200 events".to_owned()),
        (
            answer("502 Bad Gateway", "content-type: text/html\r\n", &page),
            format!("502 text/html: <html>  {}", "x".repeat(292)),
        ),
        (answer("404 Not Found", "", "nothing here"), "404 : nothing here".to_owned()),
        (
            answer("200 OK", "content-type: application/json\r\ncontent-encoding: gzip\r\n", "zzz"),
            "200 application/json, encoded as gzip: ".to_owned(),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{}".to_owned(),
            "200 {}".to_owned(),
        ),
    ];
    let (answers, expected): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let server = Server::start(move |number, _| answers[number].clone()).await;
    let client = client(&server);
    for expected in &expected {
        assert_eq!(&outcome(&post(&client).await), expected);
    }
}

#[tokio::test]
async fn heads_say_what_they_must() {
    let heads = "Mcp-Session-Id: abc\r\nRetry-After: 7\r\nWWW-Authenticate: Bearer a=\"1\"\r\nwww-authenticate: \
                 Basic\r\n";
    let server = Server::start(move |_, _| answer("400 Bad", heads, "")).await;
    let mut remote = remote(&server.url("/mcp?key=1"));
    let configured = [("X-Key", "k"), ("Accept", "x/y"), ("Mcp-Method", "no"), ("User-Agent", "me")];
    remote.headers = configured.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let client = HttpClient::new(&remote, None, &HttpSettings::default()).unwrap();
    let mut headers = Headers::new();
    headers.push(::http::HeaderName::from_static("mcp-method"), HeaderValue::from_static("ping"));
    let answered = soon(client.post(body(), headers)).await.unwrap();
    assert_eq!(answered.session.unwrap(), "abc");
    assert_eq!(answered.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(answered.www_authenticate, ["Bearer a=\"1\"", "Basic"]);
    soon(client.get(Headers::new())).await.unwrap();
    soon(client.delete(Headers::new())).await.unwrap();

    let seen = server.seen();
    let both = "application/json, text/event-stream";
    let host = server.address.to_string();
    for (one, line, accept, kind, method) in [
        (&seen[0], "POST /mcp?key=1", both, vec!["application/json"], vec!["ping"]),
        (&seen[1], "GET /mcp?key=1", "text/event-stream", vec![], vec![]),
        (&seen[2], "DELETE /mcp?key=1", both, vec![], vec![]),
    ] {
        assert_eq!(one.line(), line);
        assert_eq!((one.all("accept"), one.all("content-type")), (vec![accept], kind), "{line}");
        assert_eq!((one.all("mcp-method"), one.all("x-key")), (method, vec!["k"]), "{line}");
        assert_eq!((one.all("host"), one.all("user-agent")), (vec![&*host], vec!["me"]), "{line}");
        assert_eq!(one.connection, 1, "{line}");
    }
    assert_eq!(seen[0].body, String::from_utf8_lossy(&body()));
}

#[tokio::test]
async fn bodies_are_bounded() {
    let settings = HttpSettings { max_body: 100, ..HttpSettings::default() };
    let piece = "x".repeat(60);
    let chunks = chunked(&[&piece, &piece]);
    let server = Server::start(move |number, _| match number {
        // Announced only: reading would take for ever.
        0 => "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 101\r\n\r\n".to_owned(),
        1 => format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"
        ),
        _ => json(&"y".repeat(100)),
    })
    .await;
    let client = HttpClient::new(&remote(&server.url("/mcp")), None, &settings).unwrap();
    let host = server.address;
    for _ in 0..2 {
        let expected = format!("TooLarge, the answer of {host} is larger than the limit of 100 bytes");
        assert_eq!(outcome(&post(&client).await), expected);
    }
    assert_eq!(outcome(&post(&client).await), format!("200 {}", "y".repeat(100)));
}

/// A server whose event stream says what it is told, piece by piece, and that tells when the client has gone.
async fn stream() -> (Server, mpsc::UnboundedSender<String>, mpsc::UnboundedReceiver<()>) {
    let (say, said) = mpsc::unbounded_channel::<String>();
    let (gone, is_gone) = mpsc::unbounded_channel();
    let said = Arc::new(tokio::sync::Mutex::new(said));
    let server = Server::by_hand(move |mut stream, number, _| {
        let (said, gone) = (said.clone(), gone.clone());
        async move {
            read(&mut stream, number).await.unwrap();
            let mut said = said.lock().await;
            loop {
                let mut rest = [0; 16];
                tokio::select! {
                    piece = said.recv() => match piece {
                        Some(piece) => stream.write_all(piece.as_bytes()).await.unwrap(),
                        None => break,
                    },
                    read = stream.read(&mut rest) => {
                        assert!(matches!(read, Ok(0) | Err(_)));
                        let _ = gone.send(());
                        break;
                    }
                }
            }
        }
    })
    .await;
    (server, say, is_gone)
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: \
                      chunked\r\n\r\n";

async fn events(client: &HttpClient) -> Events {
    match soon(client.get(Headers::new())).await {
        Ok(Answered { body: Body::Events(events), .. }) => *events,
        other => panic!("{}", outcome(&other)),
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn data(event: Result<Option<Event>, Error>) -> Option<String> {
    event.unwrap().map(|event| event.data.to_string())
}

#[tokio::test]
async fn events_come_in_pieces() {
    let (server, say, _gone) = stream().await;
    let settings = HttpSettings { max_body: 20, ..HttpSettings::default() };
    let client = HttpClient::new(&remote(&server.url("/")), None, &settings).unwrap();
    say.send(STREAM.to_owned()).unwrap();
    let mut events = events(&client).await;

    say.send(chunk("data: ") + &chunk("one\n")).unwrap();
    // Waiting in vain loses nothing.
    for _ in 0..3 {
        assert!(tokio::time::timeout(Duration::from_millis(20), events.next()).await.is_err());
    }
    say.send(chunk("\n")).unwrap();
    assert_eq!(data(soon(events.next()).await).as_deref(), Some("one"));

    say.send(chunk("id: 7\nretry: 5\ndata: two\n")).unwrap();
    say.send(chunk(&format!("\ndata: {}\n", "x".repeat(40)))).unwrap();
    say.send(chunk("\ndata: three\n\n")).unwrap();
    assert_eq!(data(soon(events.next()).await).as_deref(), Some("two"));
    assert_eq!((events.last_event_id(), events.retry()), (Some("7"), Some(Duration::from_millis(5))));
    let large = soon(events.next()).await.unwrap_err();
    assert_eq!(large.symbol(), Symbol::TooLarge);
    assert!(large.detail().contains("20 bytes"), "{}", large.detail());
    assert_eq!(data(soon(events.next()).await).as_deref(), Some("three"));

    say.send("0\r\n\r\n".to_owned()).unwrap();
    for _ in 0..2 {
        assert_eq!(data(soon(events.next()).await), None);
    }
}

#[tokio::test]
async fn a_broken_stream_is_an_error() {
    let (server, say, _gone) = stream().await;
    say.send(STREAM.to_owned()).unwrap();
    let mut events = events(&client(&server)).await;
    say.send(chunk("data: one\n\n")).unwrap();
    assert_eq!(data(soon(events.next()).await).as_deref(), Some("one"));
    drop(say);
    let broken = soon(events.next()).await.unwrap_err();
    assert_eq!((broken.symbol(), broken.is_unexecuted()), (Symbol::Unavailable, false));
    assert!(broken.detail().contains(&server.address.to_string()), "{}", broken.detail());
    assert_eq!(data(soon(events.next()).await), None);
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let (server, say, mut gone) = stream().await;
    say.send(STREAM.to_owned()).unwrap();
    let mut events = events(&client(&server)).await;
    assert!(tokio::time::timeout(Duration::from_millis(20), events.next()).await.is_err());
    assert!(gone.try_recv().is_err());
    drop(events);
    soon(gone.recv()).await.unwrap();
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let (server, _say, mut gone) = stream().await;
    let client = client(&server);
    let waited = tokio::time::timeout(Duration::from_millis(50), client.post(body(), Headers::new()));
    assert!(waited.await.is_err());
    soon(gone.recv()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn much_at_once() {
    let server = Server::start(|number, request| match number % 3 {
        0 => json(&request.body),
        1 => {
            let pieces = ["data: ", &request.body, "\n", "\ndata: end\n\n"];
            format!("{STREAM}{}", chunked(&pieces))
        }
        _ => format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{}",
            chunked(&[&request.body[..7], &request.body[7..]])
        ),
    })
    .await;
    let client = client(&server);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let client = client.clone();
        tasks.spawn(async move {
            for turn in 0..30 {
                // Some larger than any buffer on the way.
                let size = if turn % 10 == 0 { 2_000_000 } else { 100 };
                let text = format!("{task}-{turn}-{}", "x".repeat(size));
                match client.post(Bytes::from(text.clone()), Headers::new()).await.unwrap().body {
                    Body::Json(got) => assert!(got == text),
                    Body::Events(mut events) => {
                        assert!(data(events.next().await).unwrap() == text);
                        assert_eq!(data(events.next().await).unwrap(), "end");
                        assert_eq!(data(events.next().await), None);
                    }
                    other => panic!("{}", shown(&other)),
                }
            }
        });
    }
    let all = async { while tasks.join_next().await.transpose().unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("nothing hangs");
    assert!(server.seen().iter().all(|one| one.connection <= 16));
}
