//! Just enough HTTP/1.1 to know where a response ends, and what its body was when somebody wants to look.

use std::borrow::Cow;

use anyhow::{Context, Result, bail};
use memchr::{memchr, memmem};

/// The progress of one response through a buffer that fills up.
#[derive(Default)]
pub(crate) struct Framing {
    head: Option<Head>,
    /// Where the next chunk header is expected.
    chunk_at: usize,
}

struct Head {
    status: u16,
    body_at: usize,
    length: Length,
}

#[derive(Clone, Copy)]
enum Length {
    Fixed(usize),
    Chunked,
}

impl Framing {
    /// Whether `buffer`, which holds the response from its first byte, now holds all of it.
    pub(crate) fn is_complete(&mut self, buffer: &[u8]) -> Result<bool> {
        let head = match &self.head {
            Some(head) => head,
            None => {
                let Some(end) = memmem::find(buffer, b"\r\n\r\n") else { return Ok(false) };
                let head = Head::parse(&buffer[..end + 2], end + 4)?;
                self.chunk_at = head.body_at;
                self.head.insert(head)
            }
        };
        match head.length {
            Length::Fixed(length) => Ok(buffer.len() >= head.body_at + length),
            Length::Chunked => loop {
                let Some((size, data_at)) = chunk(buffer, self.chunk_at)? else { return Ok(false) };
                let end = data_at + size + 2;
                if buffer.len() < end {
                    return Ok(false);
                }
                if size == 0 {
                    return Ok(true);
                }
                self.chunk_at = end;
            },
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    /// The body of a complete response, without chunk headers.
    pub(crate) fn body<'a>(&self, buffer: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(head) = &self.head else { return Cow::Borrowed(&[]) };
        match head.length {
            Length::Fixed(length) => Cow::Borrowed(&buffer[head.body_at..head.body_at + length]),
            Length::Chunked => {
                let (mut body, mut at) = (Vec::new(), head.body_at);
                while let Ok(Some((size, data_at))) = chunk(buffer, at) {
                    if size == 0 {
                        break;
                    }
                    body.extend_from_slice(&buffer[data_at..data_at + size]);
                    at = data_at + size + 2;
                }
                Cow::Owned(body)
            }
        }
    }

    /// A header of a response whose head is complete; not for the hot path.
    pub(crate) fn header(&self, buffer: &[u8], name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(&buffer[..self.head.as_ref()?.body_at]).into_owned();
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

impl Head {
    /// `lines` is the head with every line ended by CRLF.
    fn parse(lines: &[u8], body_at: usize) -> Result<Self> {
        let digits = lines.get(9..12).filter(|_| lines.starts_with(b"HTTP/1.1 "));
        let status = digits
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
            .with_context(|| format!("not an HTTP response: {}", String::from_utf8_lossy(lines)))?;
        let mut length = None;
        let mut rest = lines;
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            // Two names matter, so most lines are passed over by their first letter.
            match line.first() {
                Some(b'c' | b'C') => {
                    if let Some(value) = value_of(line, b"content-length") {
                        length = Some(Length::Fixed(value.trim().parse()?));
                    }
                }
                Some(b't' | b'T') if value_of(line, b"transfer-encoding").is_some() => {
                    length = Some(Length::Chunked);
                }
                _ => {}
            }
            rest = &rest[end + 1..];
        }
        let length = length.context("a response with neither length nor chunks cannot be kept alive")?;
        Ok(Self { status, body_at, length })
    }
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let (key, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    if !key.eq_ignore_ascii_case(name) {
        return None;
    }
    std::str::from_utf8(value).ok()
}

/// The size of the chunk whose header starts at `at`, and where its data starts.
fn chunk(buffer: &[u8], at: usize) -> Result<Option<(usize, usize)>> {
    let rest = buffer.get(at..).unwrap_or_default();
    let Some(end) = memchr(b'\n', rest) else {
        if rest.len() > 32 {
            bail!("a chunk header without an end");
        }
        return Ok(None);
    };
    let size = std::str::from_utf8(&rest[..end])?.trim_end();
    let size = usize::from_str_radix(size, 16).with_context(|| format!("chunk size {size:?}"))?;
    Ok(Some((size, at + end + 1)))
}

/// The JSON-RPC answer in a body: the body itself, or the last event of an SSE stream that carries one.
pub(crate) fn answer(body: &[u8]) -> &[u8] {
    if body.first() == Some(&b'{') {
        return body;
    }
    body.split(|&byte| byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .rfind(|data| !data.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the response byte by byte; it must be complete exactly at its last byte.
    fn check(response: &str, status: u16, body: &str) {
        let bytes = response.as_bytes();
        let mut framing = Framing::default();
        for end in 0..bytes.len() {
            assert!(!framing.is_complete(&bytes[..end]).unwrap(), "complete after {end} bytes");
        }
        assert!(framing.is_complete(bytes).unwrap());
        assert_eq!(framing.status(), status);
        assert_eq!(framing.body(bytes), body.as_bytes());
    }

    #[test]
    fn lengths_and_chunks() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello");
        check("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, "");
        check(
            "HTTP/1.1 200 OK\r\ncontent-type: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
            200,
            "abc0123456789",
        );
    }

    #[test]
    fn headers_by_any_case() {
        let response = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: abc \r\ncontent-length: 0\r\n\r\n";
        let mut framing = Framing::default();
        assert!(framing.is_complete(response).unwrap());
        assert_eq!(framing.header(response, "mcp-session-id").as_deref(), Some("abc"));
        assert_eq!(framing.header(response, "other"), None);
    }

    #[test]
    fn the_answer_of_an_event_stream_is_its_last_event_with_data() {
        assert_eq!(answer(b"data: \nid: 0\n\ndata: {\"a\":1}\nid: 1\n\n"), b"{\"a\":1}");
        assert_eq!(answer(b"{\"a\":1}"), b"{\"a\":1}");
        assert_eq!(answer(b""), b"");
    }
}
