//! Cutting a byte stream into lines, bounded.

use bytes::{Bytes, BytesMut};

/// Collects bytes and hands out whole lines. A line over the limit is reported once and its rest thrown away.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    limit: usize,
    skipping: bool,
}

/// What [`Lines`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end.
    Text(Bytes),
    /// A line that is too long. What follows up to its end is skipped.
    TooLong,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Lines {
        Lines { buffer: BytesMut::with_capacity(8 * 1024), searched: 0, limit, skipping: false }
    }

    /// Where to read the next bytes to.
    pub(super) fn room(&mut self) -> &mut BytesMut {
        self.buffer.reserve(8 * 1024);
        &mut self.buffer
    }

    /// The next line, if one is complete.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            match memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                Some(at) => {
                    let mut line = self.buffer.split_to(self.searched + at + 1).freeze();
                    self.searched = 0;
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    line.truncate(line.len() - 1);
                    if line.last() == Some(&b'\r') {
                        line.truncate(line.len() - 1);
                    }
                    if line.len() > self.limit {
                        return Some(Line::TooLong);
                    }
                    if line.iter().all(u8::is_ascii_whitespace) {
                        continue;
                    }
                    return Some(Line::Text(line));
                }
                None if self.skipping => {
                    self.buffer.clear();
                    self.searched = 0;
                    return None;
                }
                None if self.buffer.len() > self.limit + 1 => {
                    self.buffer.clear();
                    self.searched = 0;
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                None => {
                    self.searched = self.buffer.len();
                    return None;
                }
            }
        }
    }

    /// What is left when the input ends without a newline.
    pub(super) fn last(&mut self) -> Option<Line> {
        if self.skipping || self.buffer.is_empty() {
            return None;
        }
        self.buffer.extend_from_slice(b"\n");
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, chunks: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        let show = |line| match line {
            Line::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            Line::TooLong => "<too long>".to_owned(),
        };
        for chunk in chunks {
            lines.room().extend_from_slice(chunk.as_bytes());
            while let Some(line) = lines.next() {
                out.push(show(line));
            }
        }
        out.extend(lines.last().map(show));
        out
    }

    #[test]
    fn whole_lines_only() {
        assert_eq!(lines(10, &["a\nb", "c\r\n", "\n \n", "d"]), ["a", "bc", "d"]);
    }

    #[test]
    fn long_lines_are_reported_once_and_skipped() {
        assert_eq!(lines(4, &["123456", "7890", "12\nok\n"]), ["<too long>", "ok"]);
        assert_eq!(lines(4, &["12345\nok\n"]), ["<too long>", "ok"]);
        assert_eq!(lines(4, &["1234\n"]), ["1234"]);
    }
}
