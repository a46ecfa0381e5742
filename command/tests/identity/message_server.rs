//! A server over HTTP in a thread, which hands each JSON-RPC message to whoever answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

/// Answers a message; `None` ends the connection.
type Answer = dyn Fn(&TcpStream, Value) -> Option<()> + Send + Sync;

/// Serves as long as the test runs. What is no POST is answered with 405.
pub(crate) fn serve(answer: impl Fn(&TcpStream, Value) -> Option<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer: Arc<Answer> = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || connection(&stream, &*answer));
        }
    });
    address
}

/// Answers the requests of a connection, until something goes wrong.
fn connection(stream: &TcpStream, answer: &Answer) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            head.push_str(&line.to_ascii_lowercase());
            line.clear();
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
        if head.is_empty() || reader.read_exact(&mut body).is_err() {
            return None;
        }
        match head.starts_with("post") {
            true => answer(stream, serde_json::from_slice(&body).unwrap_or_default())?,
            false => write(stream, 405, "")?,
        }
    }
}

/// Writes a response.
pub(crate) fn write(mut stream: &TcpStream, status: u16, body: &str) -> Option<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).ok()
}
