//! Expanding a template, RFC 6570 section 3.

use super::{Modifier, Operator, Part, Template, Var, is_reserved, is_triplet, is_unreserved};

/// The value of a variable. An empty list counts as undefined, an empty text does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
    /// Names with texts, in their order.
    Pairs(Vec<(String, String)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl<T: Into<String>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Value {
        Value::List(texts.into_iter().map(Into::into).collect())
    }
}

impl Template {
    /// The URI that the template makes of these variables. Variables that are not given are left out.
    ///
    /// ```
    /// use tidegate_protocol::template::Template;
    ///
    /// let template: Template = "/search{?q,lang}".parse()?;
    /// assert_eq!(template.expand(&[("q", "blue whale".into())]), "/search?q=blue%20whale");
    /// # Ok::<(), tidegate_protocol::template::TemplateFault>(())
    /// ```
    pub fn expand<N: AsRef<str>>(&self, vars: &[(N, Value)]) -> String {
        let mut out = String::with_capacity(self.text.len() + 32);
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Expression { operator, vars: specs } => {
                    let mut first = true;
                    for spec in specs {
                        let value =
                            vars.iter().find(|(name, _)| name.as_ref() == spec.name).map(|(_, value)| value);
                        if let Some(value) = value.filter(|value| is_defined(value)) {
                            out.push_str(if first { operator.first() } else { operator.separator() });
                            first = false;
                            variable(&mut out, *operator, spec, value);
                        }
                    }
                }
            }
        }
        out
    }
}

fn is_defined(value: &Value) -> bool {
    match value {
        Value::Text(_) => true,
        Value::List(list) => !list.is_empty(),
        Value::Pairs(pairs) => !pairs.is_empty(),
    }
}

/// RFC 6570 section 3.2.1, Variable Expansion.
fn variable(out: &mut String, operator: Operator, var: &Var, value: &Value) {
    let explode = var.modifier == Modifier::Explode;
    match value {
        Value::Text(text) => {
            let text = match var.modifier {
                Modifier::Prefix(n) => prefix(text, n, operator.keeps_reserved()),
                _ => text,
            };
            name(out, operator, &var.name, text.is_empty());
            encode(out, text, operator.keeps_reserved());
        }
        Value::List(list) if explode => {
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    out.push_str(operator.separator());
                }
                name(out, operator, &var.name, item.is_empty());
                encode(out, item, operator.keeps_reserved());
            }
        }
        Value::Pairs(pairs) if explode => {
            for (i, (key, item)) in pairs.iter().enumerate() {
                if i > 0 {
                    out.push_str(operator.separator());
                }
                encode(out, key, operator.keeps_reserved());
                // An empty value keeps its `=` everywhere but in `;`.
                if !item.is_empty() || operator != Operator::Param {
                    out.push('=');
                }
                encode(out, item, operator.keeps_reserved());
            }
        }
        Value::List(list) => {
            name(out, operator, &var.name, false);
            joined(out, list.iter(), operator);
        }
        Value::Pairs(pairs) => {
            name(out, operator, &var.name, false);
            joined(out, pairs.iter().flat_map(|(key, item)| [key, item]), operator);
        }
    }
}

fn joined<'a>(out: &mut String, items: impl Iterator<Item = &'a String>, operator: Operator) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        encode(out, item, operator.keeps_reserved());
    }
}

/// The name and its `=`, for operators whose values have names.
fn name(out: &mut String, operator: Operator, name: &str, empty: bool) {
    if operator.named() {
        out.push_str(name);
        if !empty || operator != Operator::Param {
            out.push('=');
        }
    }
}

/// The first `n` characters. Where percent-encoded bytes pass as they are, one counts as one character.
fn prefix(text: &str, n: usize, keep_reserved: bool) -> &str {
    let mut chars = text.char_indices();
    for _ in 0..n {
        match chars.next() {
            Some((at, '%')) if keep_reserved && is_triplet(&text.as_bytes()[at..]) => _ = chars.nth(1),
            Some(_) => {}
            None => return text,
        }
    }
    &text[..chars.next().map_or(text.len(), |(at, _)| at)]
}

fn encode(out: &mut String, text: &str, keep_reserved: bool) {
    for (at, c) in text.char_indices() {
        let kept = c.is_ascii() && {
            let b = c as u8;
            is_unreserved(b) || keep_reserved && (is_reserved(b) || is_triplet(&text.as_bytes()[at..]))
        };
        if kept { out.push(c) } else { encode_char(out, c) }
    }
}

pub(super) fn encode_char(out: &mut String, c: char) {
    for &b in c.encode_utf8(&mut [0; 4]).as_bytes() {
        out.push_str(percent_encoding::percent_encode_byte(b));
    }
}
