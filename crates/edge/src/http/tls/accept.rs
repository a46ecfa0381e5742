//! The beginning of a connection over TLS.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What every handshake begins with.
const HANDSHAKE: u8 = 0x16;

/// How long somebody who speaks plain HTTP may take to read that this is the wrong place for it.
const FAREWELL: Duration = Duration::from_secs(1);
/// Most of what they have sent that is read, so that it is not the answer that gets lost.
const MAX_UNREAD: u64 = 64 * 1024;

/// Shakes hands. `None` if that fails; whoever speaks plain HTTP here is told what to do.
pub(in super::super) async fn accept(
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) if first[0] == HANDSHAKE => {}
        Ok(1) if first[0].is_ascii_uppercase() => {
            _ = tokio::time::timeout(FAREWELL, wrong_scheme(stream)).await;
            return None;
        }
        _ => return None,
    }
    match acceptor.accept(stream).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

async fn wrong_scheme(mut stream: TcpStream) {
    let what = "This port speaks HTTPS: use an address that begins with https://\n";
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{what}",
        what.len()
    );
    if stream.write_all(response.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        _ = tokio::io::copy(&mut stream.take(MAX_UNREAD), &mut tokio::io::sink()).await;
    }
}
