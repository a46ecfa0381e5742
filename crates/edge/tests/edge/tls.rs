//! HTTPS on a socket.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidegate_edge::http::{Settings, TlsCertificate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};

use crate::common::socket::*;
use crate::common::*;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edge/certificates").join(name)
}

async fn serve_tls(stub: &Stub, settings: Settings) -> (SocketAddr, Server) {
    let tls = TlsCertificate::load(file("first.pem"), file("first.key")).unwrap();
    serve_with(stub, Settings { tls: Some(Arc::new(tls)), ..settings }).await
}

/// Shakes hands, trusting one certificate.
async fn connect(
    to: SocketAddr,
    trusted: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file(trusted)).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(versions).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(to).await?;
    let name = ServerName::try_from("localhost").unwrap();
    in_time("a handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn ping() -> String {
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {}\r\n\r\n{PING}", PING.len())
}

async fn until(stream: &mut (impl AsyncReadExt + Unpin), text: &str) -> String {
    in_time("bytes", async {
        let mut all = Vec::new();
        loop {
            let so_far = String::from_utf8_lossy(&all).into_owned();
            if so_far.contains(text) {
                return so_far;
            }
            assert_ne!(stream.read_buf(&mut all).await.unwrap(), 0, "ended after {so_far:?}");
        }
    })
    .await
}

#[tokio::test]
async fn requests_are_answered_over_both_versions() {
    let (address, server) = serve_tls(&Stub::new(), Settings::default()).await;
    for versions in [&[&version::TLS12][..], &[&version::TLS13]] {
        let mut stream = connect(address, "first.pem", versions).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        for _ in 0..2 {
            stream.write_all(ping().as_bytes()).await.unwrap();
            let answer = until(&mut stream, "}}").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with(r#""result":{}}"#), "{answer}");
        }
    }
    // It is closed as it should be.
    let mut stream = connect(address, "first.pem", &[&version::TLS13]).await.unwrap();
    stream.write_all(ping().as_bytes()).await.unwrap();
    until(&mut stream, "}}").await;
    server.shut_down();
    assert_eq!(in_time("the end", stream.read(&mut [0; 8])).await.unwrap(), 0);
    in_time("the server to end", server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_large_answer_arrives_whole() {
    let (address, _server) = serve_tls(&Stub::new(), Settings::default()).await;
    let mut stream = connect(address, "first.pem", &[&version::TLS13]).await.unwrap();
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"n":3000000}}}"#;
    stream
        .write_all(
            ping().replace(PING, call).replace("length: 40", &format!("length: {}", call.len())).as_bytes(),
        )
        .await
        .unwrap();
    let answer = until(&mut stream, "}]}}").await;
    assert!(answer.matches('x').count() >= 3_000_000);
}

#[tokio::test]
async fn plain_http_is_told_what_to_do() {
    let (address, _server) = serve_tls(&Stub::new(), Settings::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(ping().as_bytes()).await.unwrap();
    let answer = to_the_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"\x00nonsense").await.unwrap();
    assert_eq!(to_the_end(&mut stream).await, "");
}

#[tokio::test]
async fn a_handshake_takes_a_place_and_has_its_time() {
    let settings =
        Settings { request_within: Duration::from_millis(200), max_connections: 1, ..Settings::default() };
    let (address, _server) = serve_tls(&Stub::new(), settings).await;
    // One says nothing, the other stops in the middle.
    for begun in [&b""[..], &b"\x16\x03\x01"[..]] {
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(begun).await.unwrap();
        let mut stream = connect(address, "first.pem", &[&version::TLS13]).await.unwrap();
        assert_eq!(to_the_end(&mut silent).await, "", "it has made room");
        stream.write_all(ping().as_bytes()).await.unwrap();
        until(&mut stream, "}}").await;
    }
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_connections() {
    let dir = tempfile::TempDir::new().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let put = |name: &str| {
        std::fs::copy(file(&format!("{name}.pem")), &cert).unwrap();
        std::fs::copy(file(&format!("{name}.key")), &key).unwrap();
    };
    put("first");
    let tls = Some(Arc::new(TlsCertificate::load(&cert, &key).unwrap()));
    let (address, _server) = serve_with(&Stub::new(), Settings { tls, ..Settings::default() }).await;
    let mut before = connect(address, "first.pem", &[&version::TLS13]).await.unwrap();
    assert!(connect(address, "second.pem", &[&version::TLS13]).await.is_err());
    put("second");
    in_time("the new certificate", async {
        while connect(address, "second.pem", &[&version::TLS13]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    before.write_all(ping().as_bytes()).await.unwrap();
    until(&mut before, "}}").await;
}
