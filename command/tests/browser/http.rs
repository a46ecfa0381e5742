//! Just enough HTTP to talk to servers on this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// No answer takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// One request on a connection of its own.
pub(crate) fn request(port: u16, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    read(&mut stream)
}

fn read(stream: &mut TcpStream) -> Answer {
    let mut all = Vec::new();
    let head_end = loop {
        if let Some(at) = all.windows(4).position(|end| end == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, &mut all);
    };
    let head = String::from_utf8(all[..head_end].to_vec()).unwrap();
    let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while all.len() < head_end + length {
        more(stream, &mut all);
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    Answer { status, head, body: String::from_utf8(all[head_end..].to_vec()).unwrap() }
}

fn more(stream: &mut TcpStream, all: &mut Vec<u8>) {
    let mut room = [0; 16 * 1024];
    let read = stream.read(&mut room).expect("an answer in time");
    assert_ne!(read, 0, "the server broke off: {}", String::from_utf8_lossy(all));
    all.extend_from_slice(&room[..read]);
}

/// The value of a header.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
