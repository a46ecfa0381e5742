//! The scanner under everything: walks JSON text once, checks the grammar, builds nothing.
//!
//! It is not recursive (a nesting bomb costs a bit per level, and depth is bounded), and it steps over string
//! contents a block at a time, because long strings are what large MCP messages consist of.

use std::fmt;

use super::members::Key;
use super::special::find_special;

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
///
/// What is inlined works on the scanner itself; what is not gets and gives positions, so that a scanner that is a local
/// variable can live in registers.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) max_depth: usize,
    /// Whether a string since this was last cleared held escapes. Those inside of arrays and objects do not count.
    pub(crate) escapes: bool,
    /// The key of an object that was consumed last.
    pub(crate) key: Key,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str, limits: &Limits) -> Self {
        Scanner { text, at: 0, max_depth: limits.max_depth.min(127), escapes: false, key: Key::default() }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline(always)]
    pub(crate) fn fault<T>(&self, kind: FaultKind) -> Scan<T> {
        fault_at(self.at, kind)
    }

    #[inline(always)]
    pub(crate) fn unexpected<T>(&self) -> Scan<T> {
        unexpected_at(self.text, self.at)
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    /// Skips white space and returns what comes next without taking it.
    #[inline(always)]
    pub(crate) fn next_token(&mut self) -> Option<u8> {
        match self.peek() {
            Some(b) if b > b' ' => Some(b),
            _ => {
                self.at = skip_space(self.text, self.at);
                self.peek()
            }
        }
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

    /// Consumes a string. The caller has seen that a quote comes next.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Scan<()> {
        self.at += 1;
        self.at += find_special(&self.bytes()[self.at..]);
        if self.peek() == Some(b'"') {
            self.at += 1;
        } else {
            self.at = rest_of_string(self.text, self.at)?;
            self.escapes = true;
        }
        Ok(())
    }

    /// Consumes a number. Returns whether it is written as an integer.
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Scan<bool> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.at += digits(&self.bytes()[self.at..]),
            _ => return self.unexpected(),
        }
        if let Some(b'.' | b'e' | b'E') = self.peek() {
            self.at = rest_of_number(self.text, self.at)?;
            return Ok(false);
        }
        Ok(true)
    }

    #[inline(always)]
    fn word(&mut self, word: &[u8]) -> Scan<()> {
        if self.bytes()[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// Consumes one value of any kind, whatever its depth. `depth` levels are open around it.
    #[inline(always)]
    pub(crate) fn value(&mut self, depth: usize) -> Scan<()> {
        if self.peek() == Some(b'"') {
            return self.string();
        }
        self.at = nested(self.text, self.at, depth, self.max_depth)?;
        Ok(())
    }

    /// Consumes `"key" :`, of which nobody wants to know.
    #[inline(always)]
    fn any_key(&mut self) -> Scan<()> {
        if self.next_token() != Some(b'"') {
            return self.unexpected();
        }
        self.string()?;
        self.colon()
    }

    #[inline(always)]
    pub(crate) fn colon(&mut self) -> Scan<()> {
        if self.next_token() != Some(b':') {
            return self.unexpected();
        }
        self.at += 1;
        Ok(())
    }
}

#[cold]
fn fault_at<T>(at: usize, kind: FaultKind) -> Scan<T> {
    Err(Box::new(Fault { kind, at }))
}

#[cold]
fn unexpected_at<T>(text: &str, at: usize) -> Scan<T> {
    fault_at(at, if at >= text.len() { FaultKind::Truncated } else { FaultKind::Unexpected })
}

/// Machines write messages without white space, so it is kept out of the way.
#[cold]
fn skip_space(text: &str, at: usize) -> usize {
    let space = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
    at + text.as_bytes()[at..].iter().take_while(space).count()
}

/// Where a string ends, from the first thing in it that needs a closer look.
#[inline(never)]
fn rest_of_string(text: &str, mut at: usize) -> Scan<usize> {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(at) {
            None => return fault_at(at, FaultKind::Truncated),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += escape(bytes, at)?,
            Some(_) => return fault_at(at, FaultKind::ControlCharacter),
        }
        at += find_special(&bytes[at..]);
    }
}

/// How long the escape at a backslash is.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Scan<usize> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => match bytes.get(at + 2..at + 6) {
            Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => Ok(6),
            Some(_) => fault_at(at, FaultKind::BadEscape),
            None => fault_at(at, FaultKind::Truncated),
        },
        Some(_) => fault_at(at, FaultKind::BadEscape),
        None => fault_at(at, FaultKind::Truncated),
    }
}

/// Where a number ends, from its fraction or exponent on.
#[inline(never)]
fn rest_of_number(text: &str, mut at: usize) -> Scan<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at) == Some(&b'.') {
        at = some_digits(text, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = some_digits(text, at)?;
    }
    Ok(at)
}

fn some_digits(text: &str, at: usize) -> Scan<usize> {
    match digits(&text.as_bytes()[at..]) {
        0 => unexpected_at(text, at),
        some => Ok(at + some),
    }
}

#[inline]
fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Where a value ends.
#[inline(never)]
fn nested(text: &str, at: usize, depth: usize, max_depth: usize) -> Scan<usize> {
    let mut scanner = Scanner { text, at, max_depth, escapes: false, key: Key::default() };
    // One bit per open level, set for objects: a nesting bomb costs no memory.
    let mut kinds: u128 = 0;
    let mut open = 0usize;
    loop {
        // A value is due.
        let mut opened = false;
        match scanner.next_token() {
            Some(b'"') => scanner.string()?,
            Some(first @ (b'{' | b'[')) => {
                scanner.at += 1;
                // In ASCII what closes comes two after what opens.
                if scanner.next_token() == Some(first + 2) {
                    scanner.at += 1;
                } else {
                    open += 1;
                    if depth + open > max_depth {
                        return scanner.fault(FaultKind::TooDeep(max_depth));
                    }
                    kinds = kinds << 1 | u128::from(first == b'{');
                    opened = true;
                }
            }
            Some(b't') => scanner.word(b"true")?,
            Some(b'f') => scanner.word(b"false")?,
            Some(b'n') => scanner.word(b"null")?,
            Some(b'-' | b'0'..=b'9') => _ = scanner.number()?,
            _ => return scanner.unexpected(),
        }
        // Unless something was opened, a value has ended: close what closes, until another value is due.
        if !opened {
            loop {
                if open == 0 {
                    return Ok(scanner.at);
                }
                let in_object = kinds & 1 == 1;
                match scanner.next_token() {
                    Some(b',') => {
                        scanner.at += 1;
                        break;
                    }
                    Some(b'}') if in_object => scanner.at += 1,
                    Some(b']') if !in_object => scanner.at += 1,
                    _ => return scanner.unexpected(),
                }
                kinds >>= 1;
                open -= 1;
            }
        }
        if kinds & 1 == 1 {
            scanner.any_key()?;
        }
    }
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
}
