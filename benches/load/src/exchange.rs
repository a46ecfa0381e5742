//! The little HTTP/1.1 that a client under load speaks: requests with a body, and answers with a length.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A call of a tool, as 2026-07-28 has it.
pub(crate) fn request(address: SocketAddr, id: u64, tool: &str, arguments: &str) -> Vec<u8> {
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments},\"_meta\":{{\
         \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":{{\"name\":\"load\",\"version\":\"1\"}},\
         \"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}}}"
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the connection ends with it.
    pub(crate) is_last: bool,
}

/// A connection, and what was read of it.
pub(crate) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Wire> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, read: Vec::new() })
    }

    /// Sends a request; where a time is given, byte by byte in that time.
    pub(crate) async fn send(&mut self, request: &[u8], within: Option<Duration>) -> io::Result<()> {
        let Some(within) = within else { return self.stream.write_all(request).await };
        let pause = within / request.len() as u32;
        for byte in request {
            self.stream.write_all(std::slice::from_ref(byte)).await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Whether the other side has closed the connection, or said something that nobody asked for.
    pub(crate) async fn ends(&mut self) -> io::Result<usize> {
        self.stream.read(&mut [0; 1]).await
    }

    /// Reads an answer; where a time is given, a few bytes at a time, with such pauses between them. `None` if the connection ends before there
    /// is anything of it.
    pub(crate) async fn answer(&mut self, pause: Option<Duration>) -> io::Result<Option<Answer>> {
        self.read.clear();
        loop {
            if let Some(answer) = whole(&self.read)? {
                return Ok(Some(answer));
            }
            let most = if pause.is_some() { 16 } else { 16 * 1024 };
            let start = self.read.len();
            self.read.resize(start + most, 0);
            let count = self.stream.read(&mut self.read[start..]).await?;
            self.read.truncate(start + count);
            if count == 0 {
                let is_cut = !self.read.is_empty();
                return if is_cut { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
            }
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// The answer, if all of it is there.
fn whole(read: &[u8]) -> io::Result<Option<Answer>> {
    let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let head = std::str::from_utf8(&read[..end]).map_err(|_| wrong("the head is not text"))?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(|| wrong("there is no status"))?;
    let header = |name: &str| {
        let mut named = head.lines().filter_map(|line| line.split_once(':'));
        named.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let length = length.ok_or_else(|| wrong("an answer without a length"))?;
    let body = &read[end + 4..];
    if body.len() < length {
        return Ok(None);
    }
    if body.len() > length {
        return Err(wrong("more than was asked for"));
    }
    let is_last = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Some(Answer { status, body: body.to_vec(), is_last }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_whole_or_wrong() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\n{}";
        for end in 0..text.len() {
            assert!(whole(&text[..end]).unwrap().is_none(), "{end}");
        }
        let answer = whole(text).unwrap().unwrap();
        assert_eq!((answer.status, &answer.body[..], answer.is_last), (200, &b"{}"[..], true));
        for wrong in
            ["HTTP/1.1 200 OK\r\n\r\n", "nothing\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore"]
        {
            assert!(whole(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
