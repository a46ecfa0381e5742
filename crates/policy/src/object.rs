//! [`Object`]: what somebody wants to see or use.

/// Something that a rule can be about.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// What it is.
    pub kind: ObjectKind,
    /// The name of a tool or prompt as callers use it; the address of a resource or its template; a method; the path of a page.
    pub name: &'a str,
    /// The server that offers it; empty for a page.
    pub server: &'a str,
}

impl Object<'_> {
    /// Stands for the server of pages through which a gateway is run: a rule has to name pages to allow them. No server has such a name.
    pub const OPERATORS: &'static str = "\0operators";
}

/// What an [`Object`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource, or a template of resources.
    Resource,
    /// A method that no revision defines, and what a server says outside of calls.
    Method,
    /// A page beside the MCP endpoints.
    Page,
}

impl ObjectKind {
    pub(crate) const COUNT: usize = 5;
    /// All of them.
    pub const ALL: [ObjectKind; ObjectKind::COUNT] =
        [ObjectKind::Tool, ObjectKind::Prompt, ObjectKind::Resource, ObjectKind::Method, ObjectKind::Page];

    /// The word for it, which is also what a pattern begins with: `prompt:review_*`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Tool => "tool",
            ObjectKind::Prompt => "prompt",
            ObjectKind::Resource => "resource",
            ObjectKind::Method => "method",
            ObjectKind::Page => "page",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// Whether calls of it have arguments.
    pub const fn has_arguments(self) -> bool {
        matches!(self, ObjectKind::Tool | ObjectKind::Prompt)
    }
}
