//! Reading a template, RFC 6570 section 2.

use std::fmt;

use super::{Modifier, Operator, Part, Var, is_reserved, is_triplet, is_unreserved};

/// The longest template, and the most variables of one: far beyond what people write.
const MAX_BYTES: usize = 8 * 1024;
const MAX_VARIABLES: usize = 256;

/// Why a text is not a URI template, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// What is wrong.
    pub kind: TemplateFaultKind,
    /// Byte offset at which it was noticed.
    pub at: usize,
}

/// The kinds of [`TemplateFault`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateFaultKind {
    /// It is too long, or has too many variables.
    TooLarge,
    /// `{` without `}`.
    Unclosed,
    /// `}` without `{`.
    Unopened,
    /// A character that cannot stand outside expressions.
    BadLiteral(char),
    /// An operator that RFC 6570 reserves for later.
    BadOperator(char),
    /// A variable without a name, or with characters that names cannot have.
    BadName(String),
    /// A prefix that is not a number from 1 to 9999.
    BadPrefix(String),
}

impl fmt::Display for TemplateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.kind {
            TemplateFaultKind::TooLarge => {
                write!(f, "the template has more than {MAX_BYTES} bytes or {MAX_VARIABLES} variables")
            }
            TemplateFaultKind::Unclosed => {
                write!(f, "the expression at byte {at} is not closed: '}}' is missing")
            }
            TemplateFaultKind::Unopened => write!(f, "'}}' at byte {at} closes nothing"),
            TemplateFaultKind::BadLiteral(c) => write!(f, "{c:?} at byte {at} must be percent-encoded"),
            TemplateFaultKind::BadOperator(c) => {
                write!(f, "{c:?} at byte {at} is no operator: use one of + # . / ; ? &")
            }
            TemplateFaultKind::BadName(name) if name.is_empty() => {
                write!(f, "a variable name is missing at byte {at}")
            }
            TemplateFaultKind::BadName(name) => {
                write!(
                    f,
                    "{name:?} at byte {at} is no variable name: use letters, digits, '_' and single '.'"
                )
            }
            TemplateFaultKind::BadPrefix(text) => {
                write!(f, "{text:?} at byte {at} is no prefix length: use a number from 1 to 9999")
            }
        }
    }
}

impl std::error::Error for TemplateFault {}

fn fault<T>(kind: TemplateFaultKind, at: usize) -> Result<T, TemplateFault> {
    Err(TemplateFault { kind, at })
}

pub(super) fn parts(text: &str) -> Result<Vec<Part>, TemplateFault> {
    if text.len() > MAX_BYTES {
        return fault(TemplateFaultKind::TooLarge, MAX_BYTES);
    }
    let (mut parts, mut variables) = (Vec::new(), 0);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with('{') {
            let Some(end) = rest.find('}') else { return fault(TemplateFaultKind::Unclosed, at) };
            variables += 1 + rest[1..end].matches(',').count();
            if variables > MAX_VARIABLES {
                return fault(TemplateFaultKind::TooLarge, at);
            }
            parts.push(expression(&rest[1..end], at + 1)?);
            at += end + 1;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            parts.push(Part::Literal(literal(&rest[..end], at)?));
            at += end;
        }
    }
    Ok(parts)
}

/// Literals are copied, and what a URI cannot hold is percent-encoded (RFC 6570 sections 2.1 and 3.1).
fn literal(text: &str, at: usize) -> Result<String, TemplateFault> {
    let mut out = String::with_capacity(text.len());
    for (offset, c) in text.char_indices() {
        match c {
            '}' => return fault(TemplateFaultKind::Unopened, at + offset),
            '%' if is_triplet(&text.as_bytes()[offset..]) => out.push(c),
            c if c.is_ascii() && (is_unreserved(c as u8) || is_reserved(c as u8)) => out.push(c),
            c if c.is_ascii() || c.is_control() => {
                return fault(TemplateFaultKind::BadLiteral(c), at + offset);
            }
            c => super::expand::encode_char(&mut out, c),
        }
    }
    Ok(out)
}

fn expression(text: &str, at: usize) -> Result<Part, TemplateFault> {
    let operator = match text.bytes().next() {
        Some(b'+') => Operator::Reserved,
        Some(b'#') => Operator::Fragment,
        Some(b'.') => Operator::Label,
        Some(b'/') => Operator::Path,
        Some(b';') => Operator::Param,
        Some(b'?') => Operator::Query,
        Some(b'&') => Operator::QueryMore,
        Some(b @ (b'=' | b',' | b'!' | b'@' | b'|')) => {
            return fault(TemplateFaultKind::BadOperator(b.into()), at);
        }
        _ => Operator::Simple,
    };
    let mut start = if operator == Operator::Simple { 0 } else { 1 };
    let mut vars = Vec::new();
    for one in text[start..].split(',') {
        vars.push(var(one, at + start)?);
        start += one.len() + 1;
    }
    Ok(Part::Expression { operator, vars })
}

fn var(text: &str, at: usize) -> Result<Var, TemplateFault> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        match length.parse() {
            Ok(n @ 1..=9999) if length.bytes().all(|b| b.is_ascii_digit()) && !length.starts_with('0') => {
                (name, Modifier::Prefix(n))
            }
            _ => return fault(TemplateFaultKind::BadPrefix(length.to_owned()), at + name.len() + 1),
        }
    } else {
        (text, Modifier::None)
    };
    if !is_name(name) {
        return fault(TemplateFaultKind::BadName(name.to_owned()), at);
    }
    Ok(Var { name: name.to_owned(), modifier })
}

/// RFC 6570 section 2.3: letters, digits, `_`, percent-encoded bytes, and single dots between them.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    !name.is_empty()
        && name.split('.').all(|label| !label.is_empty())
        && bytes.iter().enumerate().all(|(i, &b)| is_name_byte(b) || b == b'.' || is_triplet(&bytes[i..]))
}

pub(super) fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

#[cfg(test)]
mod tests {
    use super::super::Template;
    use super::*;

    #[test]
    fn good_templates() {
        for (text, variables) in [
            ("", ""),
            ("http://example.com/a%20b", ""),
            ("{a}", "a"),
            ("x{a.b,c_1*}{?d:3}", "a.b c_1 d"),
            ("{a}{+a}{#b}{.c}{/d}{;e}{?f}{&g}", "a b c d e f g"),
            ("{%41b}", "%41b"),
            ("weather://städte/{city}", "city"),
        ] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.variables().collect::<Vec<_>>().join(" "), variables, "{text}");
            assert_eq!(template.to_string(), text);
        }
    }

    #[test]
    fn bad_templates_say_why_and_where() {
        use TemplateFaultKind::*;
        for (text, kind, at) in [
            ("{a", Unclosed, 0),
            ("x{/id*", Unclosed, 1),
            ("x}", Unopened, 1),
            ("/id*}", Unopened, 4),
            ("{}", BadName(String::new()), 1),
            ("{?}", BadName(String::new()), 2),
            ("{a,}", BadName(String::new()), 3),
            ("{a b}", BadName("a b".into()), 1),
            ("{a-b}", BadName("a-b".into()), 1),
            ("{a..b}", BadName("a..b".into()), 1),
            ("{x,{y}", BadName("{y".into()), 3),
            ("{a*:3}", BadName("a*".into()), 1),
            ("{a:3*}", BadName("a:3".into()), 1),
            ("{=a}", BadOperator('='), 1),
            ("{|a}", BadOperator('|'), 1),
            ("{a:0}", BadPrefix("0".into()), 3),
            ("{a:+3}", BadPrefix("+3".into()), 3),
            ("{a:10000}", BadPrefix("10000".into()), 3),
            ("{a:}", BadPrefix(String::new()), 3),
            ("a b", BadLiteral(' '), 1),
            ("a%2", BadLiteral('%'), 1),
            ("<a>", BadLiteral('<'), 0),
        ] {
            let fault = Template::parse(text).unwrap_err();
            assert_eq!((&fault.kind, fault.at), (&kind, at), "{text}: {fault}");
        }
    }
}
