//! Text that others wrote, made safe to print: nothing that a terminal obeys, and no secret of the configuration.

use tidegate::service::secrets::mask;
use tidegate_protocol::text;

/// A text of several lines.
pub(crate) fn text(dirty: &str) -> String {
    text::lines(&mask(dirty))
}

/// A text that must stay on one line.
pub(crate) fn line(dirty: &str) -> String {
    text::line(&mask(dirty))
}

/// A name, which is cut if nobody would give such a long one.
pub(crate) fn name(dirty: &str) -> String {
    cut(line(dirty), 100)
}

/// What a server is, on one line: command lines and addresses may be long.
pub(crate) fn place(dirty: &str) -> String {
    cut(line(dirty), 500)
}

fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The first line that says anything.
pub(crate) fn first_line(dirty: &str) -> String {
    text::first_line(&mask(dirty))
}

/// What a tool, a prompt or a resource gave: that is the user's, whatever it holds.
pub(crate) fn result(dirty: &str) -> String {
    text::lines(dirty)
}
