//! The scanner under everything: walks JSON text once, checks the grammar, builds nothing.
//!
//! It is not recursive (a nesting bomb costs a bit per level, and depth is bounded), and it steps over string
//! contents a block at a time, because long strings are what large MCP messages consist of.

use std::fmt;

/// What a message may cost before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How deep objects and arrays may nest. At most 127.
    pub max_depth: usize,
    /// How many bytes one message may have.
    pub max_bytes: usize,
}

impl Default for Limits {
    /// 100 levels and 4 MiB, the limits the edges start with.
    fn default() -> Self {
        Limits { max_depth: 100, max_bytes: 4 * 1024 * 1024 }
    }
}

/// Why a text is not acceptable JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Byte offset at which it was noticed.
    pub at: usize,
}

/// The kinds of [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The text ended in the middle of a value.
    Truncated,
    /// A byte that cannot stand here.
    Unexpected,
    /// Something follows the value.
    Trailing,
    /// A control character inside a string.
    ControlCharacter,
    /// A backslash sequence that JSON does not know.
    BadEscape,
    /// Not UTF-8.
    NotUtf8,
    /// Nested deeper than the limit.
    TooDeep(usize),
    /// Longer than the limit.
    TooLong(usize),
    /// Two members of one object have the same name.
    DuplicateKey(String),
    /// A value of the wrong type, with what was wanted.
    Expected(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::Truncated => write!(f, "the text ends in the middle of a value"),
            FaultKind::Unexpected => write!(f, "unexpected character at byte {}", self.at),
            FaultKind::Trailing => write!(f, "unexpected text after the value at byte {}", self.at),
            FaultKind::ControlCharacter => {
                write!(f, "control character inside a string at byte {}: escape it", self.at)
            }
            FaultKind::BadEscape => write!(f, "invalid escape sequence at byte {}", self.at),
            FaultKind::NotUtf8 => write!(f, "invalid UTF-8 at byte {}", self.at),
            FaultKind::TooDeep(limit) => write!(f, "nested deeper than {limit} levels"),
            FaultKind::TooLong(limit) => write!(f, "longer than the limit of {limit} bytes"),
            FaultKind::DuplicateKey(key) => write!(f, "duplicate key {key:?}"),
            FaultKind::Expected(what) => write!(f, "expected {what} at byte {}", self.at),
        }
    }
}

impl std::error::Error for Fault {}

/// What scanning gives. The fault is boxed, so that the good way costs a register.
pub(crate) type Scan<T> = Result<T, Box<Fault>>;

/// A position in JSON text. Methods consume one thing each and leave the position behind it.
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) max_depth: usize,
}

/// A string as it stands in the text: the bytes between the quotes, and whether it holds escapes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Str {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str, limits: &Limits) -> Self {
        Scanner { text, bytes: text.as_bytes(), at: 0, max_depth: limits.max_depth.min(127) }
    }

    #[cold]
    pub(crate) fn fault<T>(&self, kind: FaultKind) -> Scan<T> {
        Err(Box::new(Fault { kind, at: self.at }))
    }

    #[cold]
    fn unexpected<T>(&self) -> Scan<T> {
        self.fault(if self.at >= self.bytes.len() { FaultKind::Truncated } else { FaultKind::Unexpected })
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space and returns what comes next without taking it.
    #[inline]
    pub(crate) fn next_token(&mut self) -> Option<u8> {
        while let Some(b) = self.peek() {
            if !matches!(b, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(b);
            }
            self.at += 1;
        }
        None
    }

    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// The end of the text: only white space may be left.
    pub(crate) fn finish(&mut self) -> Scan<()> {
        match self.next_token() {
            None => Ok(()),
            Some(_) => self.fault(FaultKind::Trailing),
        }
    }

    /// Consumes a string, quotes included.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<Str> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += find_special(&self.bytes[self.at..]);
            match self.peek() {
                None => return self.fault(FaultKind::Truncated),
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(Str { start, end, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return self.fault(FaultKind::ControlCharacter),
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.bytes.get(self.at + 2..self.at + 6) {
                Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => self.at += 6,
                Some(_) => return self.fault(FaultKind::BadEscape),
                None => return self.fault(FaultKind::Truncated),
            },
            Some(_) => return self.fault(FaultKind::BadEscape),
            None => return self.fault(FaultKind::Truncated),
        }
        Ok(())
    }

    /// Consumes a number. Returns whether it is written as an integer.
    pub(crate) fn number(&mut self) -> Scan<bool> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.unexpected(),
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(integer)
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Scan<()> {
        let before = self.at;
        self.digits();
        if self.at == before { self.unexpected() } else { Ok(()) }
    }

    fn word(&mut self, word: &[u8]) -> Scan<()> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// Consumes one value of any kind, whatever its depth. `depth` levels are open around it.
    pub(crate) fn value(&mut self, depth: usize) -> Scan<()> {
        // One bit per open level, set for objects: a nesting bomb costs no memory.
        let mut kinds: u128 = 0;
        let mut open = 0usize;
        loop {
            // A value is due.
            match self.next_token() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    if self.next_token() == Some(b'}') {
                        self.at += 1;
                    } else {
                        open += 1;
                        if depth + open > self.max_depth {
                            return self.fault(FaultKind::TooDeep(self.max_depth));
                        }
                        kinds = kinds << 1 | 1;
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if self.next_token() == Some(b']') {
                        self.at += 1;
                    } else {
                        open += 1;
                        if depth + open > self.max_depth {
                            return self.fault(FaultKind::TooDeep(self.max_depth));
                        }
                        kinds <<= 1;
                        continue;
                    }
                }
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                Some(b'-' | b'0'..=b'9') => {
                    self.number()?;
                }
                _ => return self.unexpected(),
            }
            // A value has ended: close what closes, until another value is due.
            loop {
                if open == 0 {
                    return Ok(());
                }
                let in_object = kinds & 1 == 1;
                match self.next_token() {
                    Some(b',') => {
                        self.at += 1;
                        if in_object {
                            self.next_token();
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if in_object => self.at += 1,
                    Some(b']') if !in_object => self.at += 1,
                    _ => return self.unexpected(),
                }
                kinds >>= 1;
                open -= 1;
            }
        }
    }

    /// Consumes `"key" :`.
    pub(crate) fn key(&mut self) -> Scan<Str> {
        let key = self.string()?;
        self.next_token();
        self.expect(b':')?;
        Ok(key)
    }
}

/// Offset of the first quote, backslash or control character, or the length if there is none.
///
/// Most strings of a message are short names, so the first bytes are looked at eight at a time; what is longer goes in
/// blocks that the compiler turns into a handful of vector instructions each.
#[inline]
pub(crate) fn find_special(bytes: &[u8]) -> usize {
    const WORD: usize = 8;
    const WORDS: usize = 6;
    const BLOCK: usize = 64;
    let mut at = 0;
    for word in bytes.chunks_exact(WORD).take(WORDS) {
        let hits = special_bytes(u64::from_le_bytes(word.try_into().expect("a word has eight bytes")));
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    let mut blocks = bytes[at..].chunks_exact(BLOCK);
    for block in &mut blocks {
        let mut hit = 0u8;
        for &b in block {
            hit |= u8::from(b == b'"') | u8::from(b == b'\\') | u8::from(b < 0x20);
        }
        if hit != 0 {
            break;
        }
        at += BLOCK;
    }
    at + bytes[at..].iter().position(|&b| is_special(b)).unwrap_or(bytes.len() - at)
}

/// The high bit of each byte of a word that is special. Only the lowest such bit is exact, which is all that is asked.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The classic test for a zero byte, applied to the word with the wanted byte cancelled out.
    let has = |byte: u8| {
        let x = word ^ (LOW * u64::from(byte));
        x.wrapping_sub(LOW) & !x
    };
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    (has(b'"') | has(b'\\') | control) & HIGH
}

#[inline]
fn is_special(b: u8) -> bool {
    b == b'"' || b == b'\\' || b < 0x20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), FaultKind> {
        let mut s = Scanner::new(text, &Limits::default());
        s.value(0).and_then(|()| s.finish()).map_err(|f| f.kind)
    }

    #[test]
    fn accepts_json() {
        for text in [
            "{}",
            " [ ] ",
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.5e-3",
            "12345678901234567890123",
            r#"{"a":[1,{"b":"c"}],"d":{}}"#,
            r#""\u00e9\n\\ \"""#,
            "[[[]],{}]",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_json() {
        use FaultKind::*;
        for (text, kind) in [
            ("", Truncated),
            ("{", Truncated),
            (r#"{"a""#, Truncated),
            ("[1", Truncated),
            ("nul", Unexpected),
            ("01", Trailing),
            ("1.", Truncated),
            ("+1", Unexpected),
            ("[1,]", Unexpected),
            ("{,}", Unexpected),
            (r#"{"a":1,}"#, Unexpected),
            ("\"a\nb\"", ControlCharacter),
            (r#""\x""#, BadEscape),
            (r#""\u12g4""#, BadEscape),
            ("[1}", Unexpected),
            ("1 2", Trailing),
            ("'a'", Unexpected),
        ] {
            assert_eq!(check(text), Err(kind), "{text}");
        }
    }

    #[test]
    fn bounds_nesting() {
        assert_eq!(check(&"[".repeat(100_000)), Err(FaultKind::TooDeep(100)));
        let ok = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(check(&ok), Ok(()));
        let over = format!("{}{}", "{\"a\":".repeat(101), "1");
        assert_eq!(check(&over), Err(FaultKind::TooDeep(100)));
    }

    #[test]
    fn special_bytes_are_found_in_every_position() {
        for len in 0..100 {
            for at in 0..len {
                for special in [b'"', b'\\', 0x1f, 0] {
                    let mut text = vec![b'x'; len];
                    text[at] = special;
                    assert_eq!(find_special(&text), at);
                }
            }
            assert_eq!(find_special(&vec![0xc3; len]), len);
        }
    }
}
