//! TLS and proxies.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, Stream};

use super::server::{Seen, json};
use super::*;

// For localhost and tools.example, until 2126. The key of the authority was thrown away.
const AUTHORITY: &[u8] = include_bytes!("tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("tls/server.pem");
const KEY: &[u8] = include_bytes!("tls/server.key");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// TLS that trusts the test authority and nobody else.
pub(super) fn trusting() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY).unwrap()).unwrap();
    let config =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// A server with TLS that answers one request on each connection. With `proxy`, each connection asks for a tunnel first.
fn tls_server(connections: usize, proxy: bool) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let served = std::thread::spawn(move || {
        let mut heads = Vec::new();
        for _ in 0..connections {
            let (mut tcp, _) = listener.accept().unwrap();
            if proxy {
                heads.push(head(&mut tcp));
                tcp.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").unwrap();
            }
            let mut session = ServerConnection::new(config.clone()).unwrap();
            let mut tls = Stream::new(&mut session, &mut tcp);
            let request = head(&mut tls);
            if !request.is_empty() {
                tls.write_all(json("{\"tls\":true}").as_bytes()).unwrap();
            }
            heads.push(request);
        }
        heads
    });
    (port, served)
}

/// Everything up to the blank line, or nothing if the client goes before.
fn head(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut one = [0];
        match from.read(&mut one) {
            Ok(1) => bytes.push(one[0]),
            _ => return String::new(),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn get(url: &str, outside: Outside) -> HttpClient {
    let settings = HttpSettings { connect_timeout: Duration::from_secs(5), ..HttpSettings::default() };
    HttpClient::with(&remote(url), None, &settings, outside).unwrap()
}

fn no_proxy() -> Matcher {
    Matcher::builder().build()
}

fn proxy(url: &str) -> Matcher {
    Matcher::builder().all(url).no("intern.example").build()
}

#[tokio::test]
async fn tls_works_and_certificates_are_checked() {
    let (port, served) = tls_server(3, false);
    let trusting = || Outside::of(no_proxy(), Some(trusting()));
    let good = get(&format!("https://localhost:{port}/mcp"), trusting());
    assert_eq!(outcome(&soon(good.get(Headers::new())).await), "200 {\"tls\":true}");

    let other_name = get(&format!("https://127.0.0.1:{port}/mcp"), trusting());
    let e = soon(other_name.get(Headers::new())).await.err().unwrap();
    assert!(e.detail().starts_with(&format!("the certificate of 127.0.0.1:{port} is not valid: ")), "{e:?}");
    assert!(e.is_unexecuted());

    // The authorities of the system, which do not include ours.
    let strict = HttpClient::with(
        &remote(&format!("https://localhost:{port}/mcp")),
        None,
        &HttpSettings::default(),
        Outside::of(no_proxy(), None),
    );
    match strict {
        Ok(strict) => {
            let e = soon(strict.get(Headers::new())).await.err().unwrap();
            assert!(
                e.detail().starts_with(&format!("the certificate of localhost:{port} is not valid")),
                "{e:?}"
            );
            assert!(e.is_unexecuted());
        }
        // A machine without any authorities.
        Err(e) => {
            assert!(e.detail().contains("certificates"), "{e:?}");
            drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
        }
    }
    let heads = served.join().unwrap();
    assert!(heads[0].starts_with("GET /mcp HTTP/1.1\r\n"), "{heads:?}");
    assert_eq!(heads[1..], ["", ""]);
}

#[tokio::test]
async fn tls_where_there_is_none() {
    let server = Server::by_hand(|mut stream, _, _| async move {
        use tokio::io::AsyncWriteExt;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    })
    .await;
    let url = server.url("/mcp").replace("http:", "https:");
    let e = post(&get(&url, Outside::of(no_proxy(), Some(trusting())))).await.err().unwrap();
    let expected = format!("cannot set up TLS with {}: it does not speak TLS", server.address);
    assert!(e.detail().starts_with(&expected) && e.is_unexecuted(), "{e:?}");
}

#[tokio::test]
async fn plain_requests_go_through_a_proxy() {
    let forward = Server::start(|_, _: &Seen| json("{}")).await;
    let matcher = || proxy(&format!("http://me:pw@{}", forward.address));
    let client = get("http://tools.example/mcp?a=1", Outside::of(matcher(), None));
    assert_eq!(outcome(&post(&client).await), "200 {}");
    let seen = forward.seen();
    assert_eq!(seen[0].line(), "POST http://tools.example/mcp?a=1");
    assert_eq!(seen[0].all("host"), ["tools.example"]);
    assert_eq!(seen[0].all("proxy-authorization"), ["Basic bWU6cHc="]);

    // This machine, and what NO_PROXY names, is reached directly.
    let direct = Server::start(|_, _: &Seen| json("{}")).await;
    let client = get(&direct.url("/mcp"), Outside::of(matcher(), None));
    assert_eq!(outcome(&post(&client).await), "200 {}");
    assert_eq!((direct.lines(), forward.seen().len()), (vec!["POST /mcp".to_owned()], 1));
    let client = get("http://api.intern.example/", Outside::of(matcher(), None));
    assert!(client.0.home.pool.connector().forwards().is_none());
}

#[tokio::test]
async fn tls_goes_through_a_tunnel() {
    let (port, served) = tls_server(1, true);
    let matcher = proxy(&format!("http://me:pw@127.0.0.1:{port}"));
    let client = get("https://tools.example/mcp", Outside::of(matcher, Some(trusting())));
    assert_eq!(outcome(&soon(client.get(Headers::new())).await), "200 {\"tls\":true}");
    let heads = served.join().unwrap();
    assert!(heads[0].starts_with("CONNECT tools.example:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains("Proxy-Authorization: Basic bWU6cHc=\r\n"), "{heads:?}");
    assert!(heads[1].starts_with("GET /mcp HTTP/1.1\r\n"), "{heads:?}");
    assert!(!heads[1].contains("roxy"), "{heads:?}");
}

#[tokio::test]
async fn proxies_that_do_not_work() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for url in ["http://tools.example/", "https://tools.example/"] {
        let outside = Outside::of(proxy(&format!("http://me:pw@{free}")), Some(trusting()));
        let e = post(&get(url, outside)).await.err().unwrap();
        let expected =
            format!("cannot connect to tools.example through the proxy {free}: connection refused");
        assert_eq!((e.detail(), e.is_unexecuted()), (expected.as_str(), true));
    }
    let refusing =
        Server::start(|_, _: &Seen| "HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let outside = Outside::of(proxy(&refusing.url("")), Some(trusting()));
    let e = post(&get("https://tools.example/", outside)).await.err().unwrap();
    assert!(e.detail().contains("proxy authorization required") && e.is_unexecuted(), "{e:?}");

    let outside = Outside::of(proxy("socks5://127.0.0.1:1"), None);
    let e = HttpClient::with(&remote("http://tools.example/"), None, &HttpSettings::default(), outside)
        .unwrap_err();
    assert!(e.detail().contains("socks5://127.0.0.1:1") && e.detail().contains("NO_PROXY"), "{e:?}");
}
