//! What goes wrong, and whether the request may have been executed.

use tokio::net::TcpListener;

use super::server::json;
use super::*;

/// The error, which must be `Unavailable`.
fn unavailable(answered: Result<Answered, Error>) -> (String, bool) {
    let e = answered.err().unwrap();
    assert_eq!(e.symbol(), Symbol::Unavailable, "{}", e.detail());
    (e.detail().to_owned(), e.is_unexecuted())
}

async fn to(url: &str) -> (String, bool) {
    unavailable(post(&HttpClient::new(&remote(url), None, &HttpSettings::default()).unwrap()).await)
}

#[tokio::test]
async fn refused_connections_are_unexecuted() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = to(&format!("http://{free}/mcp?key=secret")).await;
    assert_eq!(refused, (format!("cannot connect to {free}: connection refused"), true));
}

#[tokio::test]
async fn unknown_names_are_unexecuted() {
    let (message, unexecuted) = to("http://no-such-host.invalid:81/mcp").await;
    assert!(message.starts_with("cannot resolve no-such-host.invalid:81: "), "{message}");
    assert!(unexecuted);
}

#[tokio::test]
async fn lost_connections_may_have_executed() {
    let server = Server::start(|_, _| String::new()).await;
    let host = server.address;
    let lost = unavailable(post(&client(&server)).await);
    assert_eq!(lost, (format!("{host} closed the connection before it answered"), false));

    let server = Server::start(|_, _| "SSH-2.0-OpenSSH\r\n\r\n".to_owned()).await;
    let (message, unexecuted) = unavailable(post(&client(&server)).await);
    assert!(message.starts_with(&format!("what {} answers is not HTTP/1.1: ", server.address)), "{message}");
    assert!(!unexecuted);

    let short = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 9\r\n\r\n{";
    let server = Server::start(|_, _| short.to_owned()).await;
    let (message, unexecuted) = unavailable(post(&client(&server)).await);
    let expected = format!("the connection to {} broke in the middle of its answer: ", server.address);
    assert!(message.starts_with(&expected), "{message}");
    assert!(!unexecuted);
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    // Promises to keep the connection, and closes it.
    let server = Server::by_hand(|mut stream, number, seen| async move {
        use tokio::io::AsyncWriteExt;
        let request = server::read(&mut stream, number).await.unwrap();
        seen.lock().unwrap().push(request);
        stream.write_all(json("{}").as_bytes()).await.unwrap();
    })
    .await;
    let client = client(&server);
    for expected in 1..=3 {
        assert_eq!(outcome(&post(&client).await), "200 {}");
        let seen = server.seen();
        assert_eq!((seen.len(), seen[expected - 1].connection), (expected, expected));
        // Time for the news to arrive.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn connections_that_were_closed_do_not_stay() {
    let server = Server::start(|_, _| json("{}")).await;
    let client = client(&server);
    assert_eq!(outcome(&post(&client).await), "200 {}");
    let pool = client.0.home.pool.clone();
    assert_eq!(pool.idle_count(), 1);
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pool.idle_count(), 0);
}

#[tokio::test]
async fn connections_are_shared_and_bounded() {
    let server = Server::start(|_, _| json("{}")).await;
    let settings = HttpSettings { max_idle: 2, ..HttpSettings::default() };
    let client = HttpClient::new(&remote(&server.url("/mcp")), None, &settings).unwrap();
    let many = (0..8).map(|_| client.post(body(), Headers::new()));
    for answered in soon(futures_util::future::join_all(many)).await {
        assert_eq!(outcome(&answered), "200 {}");
    }
    let opened = server.seen().iter().map(|one| one.connection).max();
    for _ in 0..8 {
        assert_eq!(outcome(&post(&client).await), "200 {}");
    }
    assert_eq!(server.seen().iter().map(|one| one.connection).max(), opened);
    assert_eq!(client.0.home.pool.idle_count(), 2);
}

#[tokio::test]
async fn connecting_takes_only_so_long() {
    // Accepts, and then says nothing where TLS wants an answer.
    let server = Server::by_hand(|stream, _, _| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let settings = HttpSettings { connect_timeout: Duration::from_millis(100), ..HttpSettings::default() };
    let outside = Outside::of(Matcher::builder().build(), Some(network::trusting()));
    let url = server.url("/mcp").replace("http:", "https:");
    let client = HttpClient::with(&remote(&url), None, &settings, outside).unwrap();
    let late = unavailable(post(&client).await);
    assert_eq!(late, (format!("cannot connect to {}: no answer for 0.1 s", server.address), true));
}
