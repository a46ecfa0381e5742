//! URI templates (RFC 6570): parsing, expanding, and finding the variables of a URI that a template made.
//!
//! [`Template::expand`] is complete (level 4). [`Template::matches`] is the reverse that resource templates need; RFC
//! 6570 leaves it open, so its rules are written down there.

mod expand;
mod matching;
mod parse;
mod program;

use std::fmt;
use std::str::FromStr;

pub use expand::Value;
pub use matching::MatchSteps;
pub use parse::{TemplateFault, TemplateFaultKind};

/// A parsed URI template.
///
/// ```
/// use tidegate_protocol::template::Template;
///
/// let template: Template = "repo://{owner}/{name}/files{/path*}{?branch}".parse()?;
/// assert_eq!(template.variables().collect::<Vec<_>>(), ["owner", "name", "path", "branch"]);
///
/// let uri = "repo://ann/tide%20gate/files/src/lib.rs?branch=main";
/// let vars = template.matches(uri).unwrap();
/// assert_eq!(vars[1], ("name".into(), "tide gate".into()));
/// assert_eq!(vars[2], ("path".into(), "src".into()));
/// assert_eq!(vars[3], ("path".into(), "lib.rs".into()));
/// assert!(template.matches("repo://ann").is_none());
/// # Ok::<(), tidegate_protocol::template::TemplateFault>(())
/// ```
#[derive(Clone)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
    program: program::Program,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Text that stands for itself, percent-encoded where a URI needs it.
    Literal(String),
    /// `{…}`.
    Expression { operator: Operator, vars: Vec<Var> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Var {
    name: String,
    modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    /// `:n`, the first `n` characters.
    Prefix(usize),
    /// `*`, each part by itself.
    Explode,
}

/// What an expression starts with. RFC 6570 appendix A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Param,
    Query,
    QueryMore,
}

impl Operator {
    /// What stands before the first value.
    const fn first(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved => "",
            Operator::Fragment => "#",
            Operator::Label => ".",
            Operator::Path => "/",
            Operator::Param => ";",
            Operator::Query => "?",
            Operator::QueryMore => "&",
        }
    }

    /// What stands between values.
    const fn separator(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved | Operator::Fragment => ",",
            Operator::Label => ".",
            Operator::Path => "/",
            Operator::Param => ";",
            Operator::Query | Operator::QueryMore => "&",
        }
    }

    /// Whether values come with their names.
    const fn named(self) -> bool {
        matches!(self, Operator::Param | Operator::Query | Operator::QueryMore)
    }

    /// Whether reserved characters stand as they are.
    const fn keeps_reserved(self) -> bool {
        matches!(self, Operator::Reserved | Operator::Fragment)
    }
}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Template, TemplateFault> {
        let parts = parse::parts(text)?;
        let program = program::Program::compile(&parts);
        Ok(Template { text: text.to_owned(), parts, program })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the variables in their order, each once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = Vec::new();
        for part in &self.parts {
            let Part::Expression { vars, .. } = part else { continue };
            for var in vars {
                if !names.contains(&&*var.name) {
                    names.push(&var.name);
                }
            }
        }
        names.into_iter()
    }
}

impl FromStr for Template {
    type Err = TemplateFault;

    fn from_str(text: &str) -> Result<Template, TemplateFault> {
        Template::parse(text)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.text)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

/// RFC 3986 section 2.3.
fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

/// RFC 3986 section 2.2.
fn is_reserved(b: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&b)
}

/// Whether a percent-encoded byte stands at the start of `bytes`.
fn is_triplet(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}
