//! One message per line: cutting a byte stream into lines, bounded, and keeping a message on one line.

mod outline;

use bytes::{Bytes, BytesMut};

pub use outline::Outline;

/// How much room there is for each read.
const ROOM: usize = 8 * 1024;
/// How much memory an idle buffer may keep: one huge line should not pin its memory for good.
const KEEP: usize = 256 * 1024;
/// How much of the beginning of a line over the limit is kept, so that it can still be told what it was.
const HEAD: usize = 4 * 1024;

/// Collects bytes and hands out whole lines. Lines of white space only are left out.
///
/// A line over the limit is thrown away but for its beginning and its [`Outline`], and reported once it is over.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    limit: usize,
    /// The line that is being thrown away.
    skipping: Option<Skipped>,
}

/// What [`Lines`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Text(Bytes),
    /// A line over the limit.
    TooLong {
        /// How it began: at most 4 KiB.
        head: Bytes,
        /// What can be told of all of it. Boxed, as it is rare.
        outline: Box<Outline>,
    },
}

/// What is kept of a line that is being thrown away.
#[derive(Debug)]
struct Skipped {
    head: Bytes,
    outline: Box<Outline>,
}

impl Skipped {
    /// A copy, because a part of the buffer would keep all of it.
    fn begin(line: &[u8]) -> Skipped {
        Skipped { head: Bytes::copy_from_slice(&line[..line.len().min(HEAD)]), outline: Box::default() }
    }
}

impl Lines {
    /// Cuts lines of at most `limit` bytes, not counting the line end.
    pub fn new(limit: usize) -> Lines {
        Lines { buffer: BytesMut::with_capacity(ROOM), searched: 0, limit, skipping: None }
    }

    /// Where to read the next bytes to.
    pub fn room(&mut self) -> &mut BytesMut {
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP {
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(ROOM);
        &mut self.buffer
    }

    /// The next line, if one is complete.
    #[allow(clippy::should_implement_trait, reason = "more may come after `None`")]
    pub fn next(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.wait();
                return None;
            };
            let mut line = self.buffer.split_to(self.searched + at + 1).freeze();
            self.searched = 0;
            line.truncate(line.len() - 1);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if self.skipping.is_some() || line.len() > self.limit {
                let mut skipped = self.skipping.take().unwrap_or_else(|| Skipped::begin(&line));
                skipped.outline.pass(&line);
                return Some(Line::TooLong { head: skipped.head, outline: skipped.outline });
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Line::Text(line));
            }
        }
    }

    /// There is no whole line yet: notes how far that is known, and throws away what nobody will want.
    fn wait(&mut self) {
        // One more than the limit, for a carriage return.
        if self.skipping.is_none() && self.buffer.len() > self.limit + 1 {
            self.skipping = Some(Skipped::begin(&self.buffer));
        }
        if let Some(skipped) = &mut self.skipping {
            skipped.outline.pass(&self.buffer);
            self.buffer.clear();
        }
        self.searched = self.buffer.len();
    }

    /// What is left when the input ends without a newline.
    pub fn last(&mut self) -> Option<Line> {
        if self.buffer.is_empty() && self.skipping.is_none() {
            return None;
        }
        self.buffer.extend_from_slice(b"\n");
        self.next()
    }
}

/// Puts a message on one line.
///
/// Line ends inside a message would cut it in two. In JSON they can only be white space between values, so a space
/// says the same.
pub fn one_line(message: &mut [u8]) {
    let mut rest = message;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, chunks: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let show = |line| match line {
            Line::Text(line) => text(&line),
            Line::TooLong { head, outline } => match outline.id() {
                Some(id) => format!("<too long: {} … of {id}>", text(&head)),
                None => format!("<too long: {}>", text(&head)),
            },
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
        assert_eq!(lines(4, &["123456", "7890", "12\nok\n"]), ["<too long: 123456>", "ok"]);
        assert_eq!(lines(4, &["12345\nok\n"]), ["<too long: 12345>", "ok"]);
        assert_eq!(lines(4, &["1234\n"]), ["1234"]);
        assert_eq!(lines(4, &["1234\r\n", "1234\r", "\n"]), ["1234", "1234"]);
        assert_eq!(lines(4, &["123456", "78"]), ["<too long: 123456>"]);
        assert_eq!(lines(4, &["12345678"]), ["<too long: 12345678>"]);
    }

    #[test]
    fn the_id_of_a_long_line_is_found_wherever_it_stands() {
        for chunks in [
            &["{\"id\":7,\"params\":[", "1,2,3]}\nok\n"][..],
            &["{\"params\":[1,2,3", "],\"id\"", ":", "7}\r\nok", "\n"],
            &["{\"params\":[1,2,3],\"id\":7,\"method\":\"x\"}\nok\n"],
            &["{\"id\":7}\nok\n"],
        ] {
            let found = lines(4, chunks);
            assert!(found[0].ends_with("… of 7>") && found[1..] == ["ok"], "{found:?}");
        }
    }

    #[test]
    fn of_a_long_line_only_the_beginning_is_kept() {
        let mut lines = Lines::new(10_000);
        let long: String = (0..).map(|n| format!("{n},")).take(20_000).collect();
        for chunk in long.as_bytes().chunks(1_000) {
            lines.room().extend_from_slice(chunk);
            assert_eq!(lines.next(), None);
            assert!(lines.buffer.len() < 11_100);
        }
        lines.room().extend_from_slice(b"\r\nok\n");
        let want = Bytes::copy_from_slice(&long.as_bytes()[..HEAD]);
        assert!(matches!(lines.next(), Some(Line::TooLong { head, .. }) if head == want));
        assert_eq!(lines.next(), Some(Line::Text(Bytes::from_static(b"ok"))));
    }

    #[test]
    fn a_huge_line_does_not_keep_its_memory() {
        let mut lines = Lines::new(4 << 20);
        lines.room().extend_from_slice(&vec![b'x'; 2 << 20]);
        lines.room().extend_from_slice(b"\n");
        assert!(matches!(lines.next(), Some(Line::Text(line)) if line.len() == 2 << 20));
        lines.room();
        assert!(lines.room().capacity() <= KEEP);
    }

    #[test]
    fn line_ends_become_spaces() {
        let mut message = b"{\"a\":\r\n1\n}".to_vec();
        one_line(&mut message);
        assert_eq!(message, b"{\"a\":  1 }");
    }
}
