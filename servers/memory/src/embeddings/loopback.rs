//! A server on loopback to test with: it answers each request with what it is told to.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request as it came: its head and its body.
pub(super) type Request = (String, String);

/// Starts a server. Returns its address and what it was asked.
pub(super) async fn serve(
    answer: impl Fn(usize, &Request) -> (u16, String, Vec<u8>) + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let asked = seen.clone();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (asked, answer) = (asked.clone(), answer.clone());
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let request = loop {
                    let mut chunk = [0; 65_536];
                    let n = stream.read(&mut chunk).await.unwrap_or_default();
                    if n == 0 {
                        return;
                    }
                    bytes.extend_from_slice(&chunk[..n]);
                    let text = String::from_utf8_lossy(&bytes);
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.to_lowercase().lines().find_map(|line| {
                        line.strip_prefix("content-length:")
                            .map(|length| length.trim().parse::<usize>().unwrap())
                    });
                    if body.len() >= length.unwrap_or_default() {
                        break (head.to_owned(), body.to_owned());
                    }
                };
                let count = {
                    let mut asked = asked.lock().unwrap();
                    asked.push(request.clone());
                    asked.len() - 1
                };
                let (status, headers, body) = answer(count, &request);
                let head = format!(
                    "HTTP/1.1 {status} Answer\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&body).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (address, seen)
}
