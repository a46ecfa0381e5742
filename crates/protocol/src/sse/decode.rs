//! Reading a stream of events that arrives in pieces.

use memchr::memchr2;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Its type; none is `message`.
    pub event: Option<String>,
    /// The id it carried, to resume behind it. See also [`SseDecoder::last_event_id`].
    pub id: Option<String>,
    /// Its data, lines joined with `\n`.
    pub data: String,
}

/// What can go wrong with one event. The decoder goes on with the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseFault {
    /// The event, or one line, is larger than this many bytes.
    TooLarge(usize),
}

impl std::fmt::Display for SseFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SseFault::TooLarge(limit) => write!(f, "an event of the stream is larger than {limit} bytes"),
        }
    }
}

impl std::error::Error for SseFault {}

/// Reads events from a stream that arrives in pieces of any size.
///
/// Lines end with LF, CRLF or CR; a leading byte order mark is skipped; invalid UTF-8 becomes U+FFFD; unknown fields
/// and comments are ignored; an event that the stream's end cuts off is never given out. Memory is bounded by the
/// limit and the largest piece.
///
/// ```
/// use tidegate_protocol::sse::SseDecoder;
///
/// let mut decoder = SseDecoder::new(1024);
/// decoder.push(b"id: 1\nda");
/// assert!(decoder.next_event().is_none());
/// decoder.push(b"ta: hello\n\n");
/// assert_eq!(decoder.next_event().unwrap().unwrap().data, "hello");
/// assert_eq!(decoder.last_event_id(), Some("1"));
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    /// The most bytes that one event may hold.
    limit: usize,
    /// What was pushed; everything before `line` is done with.
    buffer: Vec<u8>,
    /// Where the current line starts.
    line: usize,
    /// How far the current line is known to have no end, so that no byte is searched twice.
    searched: usize,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Nothing was read yet: a byte order mark may come.
    at_start: bool,
    /// The current event was too large: everything up to its end is dropped.
    skipping: bool,
    /// While skipping: the start of the current line was dropped, so it is not empty.
    inside_line: bool,
    /// The event in the making.
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<u64>,
}

impl SseDecoder {
    /// A decoder at the start of a stream, whose events hold at most `limit` bytes each.
    pub fn new(limit: usize) -> SseDecoder {
        SseDecoder {
            limit,
            buffer: Vec::new(),
            line: 0,
            searched: 0,
            after_cr: false,
            at_start: true,
            skipping: false,
            inside_line: false,
            event: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// Takes the next piece of the stream. Call [`SseDecoder::next_event`] until it gives nothing before pushing more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.line);
        self.searched -= self.line;
        self.line = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes have come of what was not given out yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.line + self.data.len() + self.event.len()
    }

    /// The next event, as far as it has arrived.
    pub fn next_event(&mut self) -> Option<Result<SseEvent, SseFault>> {
        loop {
            if self.after_cr && self.line < self.buffer.len() {
                if self.buffer[self.line] == b'\n' {
                    self.line += 1;
                }
                self.after_cr = false;
            }
            let from = self.searched.max(self.line);
            let Some(end) = memchr2(b'\n', b'\r', &self.buffer[from..]).map(|at| from + at) else {
                self.searched = self.buffer.len();
                return self.line_so_far();
            };
            let (start, blank) = (self.line, end == self.line && !self.inside_line);
            self.after_cr = self.buffer[end] == b'\r';
            self.line = end + 1;
            self.searched = self.line;
            self.inside_line = false;
            if self.skipping {
                self.skipping = !blank;
            } else if let Some(done) = self.take_line(start, end) {
                return Some(done);
            }
        }
    }

    /// The stream has ended: the event that its end has cut off, for those who take what has come of it. Some servers end
    /// theirs without the empty line after the last event.
    ///
    /// ```
    /// use tidegate_protocol::sse::SseDecoder;
    ///
    /// let mut decoder = SseDecoder::new(1024);
    /// decoder.push(b"data: last");
    /// assert!(decoder.next_event().is_none());
    /// assert_eq!(decoder.finish().unwrap().unwrap().data, "last");
    /// assert!(decoder.finish().is_none());
    /// ```
    pub fn finish(&mut self) -> Option<Result<SseEvent, SseFault>> {
        // The end of the line, if there is one, and an empty line.
        self.push(b"\n\n");
        self.next_event()
    }

    /// The id of the last event, to be sent as `Last-Event-ID` when the stream is resumed.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long to wait before reconnecting, in milliseconds, if the server said so.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Whether a line of this length may be read. The same question is asked of complete and of unfinished lines, so
    /// that the outcome does not depend on how the stream was cut.
    fn fits(&self, line: usize) -> bool {
        self.held() + line <= self.limit.saturating_add(FIELD)
    }

    fn held(&self) -> usize {
        self.data.len() + self.event.len() + self.id.as_ref().map_or(0, String::len)
    }

    /// The buffer ends inside a line: wait for the rest, unless it is too long already.
    fn line_so_far(&mut self) -> Option<Result<SseEvent, SseFault>> {
        let length = self.buffer.len() - self.line;
        if self.skipping {
            self.inside_line |= length > 0;
            self.line = self.buffer.len();
            return None;
        }
        if self.fits(length) {
            return None;
        }
        self.inside_line = true;
        self.line = self.buffer.len();
        Some(self.too_large())
    }

    fn too_large(&mut self) -> Result<SseEvent, SseFault> {
        self.skipping = true;
        self.reset();
        Err(SseFault::TooLarge(self.limit))
    }

    fn reset(&mut self) {
        self.event.clear();
        self.data.clear();
        self.has_data = false;
        self.id = None;
    }

    fn take_line(&mut self, start: usize, end: usize) -> Option<Result<SseEvent, SseFault>> {
        if !self.fits(end - start) {
            return Some(self.too_large());
        }
        let mut line = &self.buffer[start..end];
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch().map(Ok);
        }
        let colon = memchr::memchr(b':', line);
        let (name, value) = match colon {
            Some(0) => return None,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()).or(self.retry);
            }
            _ => {}
        }
        if self.held() > self.limit { Some(self.too_large()) } else { None }
    }

    /// A blank line: the event is complete, if it has data at all.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let id = self.id.take();
        if let Some(id) = &id {
            self.last_id = Some(id.clone());
        }
        let has_data = std::mem::take(&mut self.has_data);
        let event = Some(text(std::mem::take(&mut self.event))).filter(|name| !name.is_empty());
        has_data.then(|| SseEvent { event, id, data: text(std::mem::take(&mut self.data)) })
    }
}

/// What a line may hold beyond the value: `retry: `.
const FIELD: usize = 7;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events of a stream that arrives in pieces of `size`, as `event|id|data`.
    fn decode(stream: &[u8], size: usize, limit: usize) -> Vec<String> {
        let mut decoder = SseDecoder::new(limit);
        let mut events = Vec::new();
        for piece in stream.chunks(size) {
            decoder.push(piece);
            while let Some(event) = decoder.next_event() {
                events.push(match event {
                    Ok(e) => {
                        format!("{}|{}|{}", e.event.unwrap_or_default(), e.id.unwrap_or_default(), e.data)
                    }
                    Err(SseFault::TooLarge(_)) => "too large".to_owned(),
                });
            }
        }
        events
    }

    #[test]
    fn streams_decode_whatever_the_pieces() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"data: a\n\n", &["||a"]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", &["||a", "||b"]),
            (b"data: a\r\rdata: b\r\r", &["||a", "||b"]),
            (b"data: a\n\r\ndata: b\r\n\n", &["||a", "||b"]),
            (b"\xef\xbb\xbfdata: a\n\n", &["||a"]),
            (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata:b\n\n", &["||b"]),
            (b"id: 7\nevent: message\ndata: {}\n\n", &["message|7|{}"]),
            (b"data: a\ndata\ndata:  b\n\n", &["||a\n\n b"]),
            (b": comment\n\ndata:a\n:\n\n", &["||a"]),
            (b"unknown: x\ndatax: y\ndata: z\n\n", &["||z"]),
            // An id without data is no event; an empty data field is.
            (b"id: 1\n\nid: 2\ndata\n\n", &["|2|"]),
            (b"id: a\0b\ndata: x\n\n", &["||x"]),
            (b"data: \xff\xe2\x82\n\n", &["||\u{fffd}\u{fffd}"]),
            (b"event: only\n\ndata: x\n\n", &["||x"]),
            (b"data: never ends\n", &[]),
            (b"\n\n\n\r\n", &[]),
            (b"", &[]),
        ];
        for (stream, events) in cases {
            for size in 1..=stream.len().max(1) {
                let got = decode(stream, size, 64);
                assert_eq!(got, *events, "{:?} in pieces of {size}", String::from_utf8_lossy(stream));
            }
        }
    }

    #[test]
    fn large_events_are_skipped_and_the_stream_goes_on() {
        let (long, short) = ("x".repeat(200), "y".repeat(20));
        let cases = [
            (format!("data: {long}\n\ndata: b\n\n"), vec!["too large", "||b"]),
            (format!("data: {short}\ndata: {short}\ndata: {short}\n\ndata: b\n\n"), vec!["too large", "||b"]),
            (format!("data: a\nid: {long}\ndata: c\n\r\ndata: b\n\n"), vec!["too large", "||b"]),
            (format!(":{}\ndata: b\n\n", "c".repeat(40)).repeat(9), vec!["||b"; 9]),
            (
                format!("data: {}\n\n", "z".repeat(50)),
                vec!["||zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"],
            ),
            (format!("data: {}\n\n", "z".repeat(51)), vec!["too large"]),
            (format!("data: a\n:{long}\n\ndata: b\n\n"), vec!["too large", "||b"]),
        ];
        for (stream, events) in cases {
            for size in 1..=stream.len() {
                assert_eq!(decode(stream.as_bytes(), size, 50), events, "{stream:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn memory_stays_bounded_without_line_ends() {
        let mut decoder = SseDecoder::new(1000);
        let mut faults = 0;
        for _ in 0..10_000 {
            decoder.push(&[b'x'; 100]);
            while let Some(event) = decoder.next_event() {
                faults += usize::from(event.is_err());
            }
            assert!(decoder.buffer.len() <= 1200);
        }
        assert_eq!(faults, 1);
    }

    #[test]
    fn ids_and_retry_are_remembered() {
        let mut decoder = SseDecoder::new(100);
        decoder.push(b"retry: 300\nid: 1\n\nretry: soon\ndata: x\n\nid: 2\ndata: y\n");
        while decoder.next_event().is_some() {}
        assert_eq!((decoder.last_event_id(), decoder.retry()), (Some("1"), Some(300)));
        decoder.push(b"\n");
        assert_eq!(decoder.next_event().unwrap().unwrap().id.as_deref(), Some("2"));
        assert_eq!(decoder.last_event_id(), Some("2"));
    }
}
