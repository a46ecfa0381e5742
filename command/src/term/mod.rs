//! The terminal half of the client commands: what they show and how they ask. Nothing in here speaks MCP; it takes
//! JSON that a server sent, and treats every text in it as hostile (see [`clean`]).

pub(crate) mod args;
pub(crate) mod clean;
pub(crate) mod form;
pub(crate) mod render;
pub(crate) mod schema;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod wrap;

use std::io::IsTerminal;

/// How many columns stdout has, if it is a terminal.
pub(crate) fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}
