//! Elicitation on a terminal: a server's questions, asked line by line on stderr.
//!
//! Plain lines and numbered choices, no drawing: that works over ssh, in a pipe and with a screen reader. The name of
//! the server stands above everything it says, and nothing goes back before the user has seen it once more.

mod answer;
mod ask;
mod check;
mod field;
mod fill;
mod visit;

#[cfg(test)]
mod tests;

pub(crate) use answer::{Action, Answer};
pub(crate) use ask::{Ask, Terminal};
pub(crate) use fill::fill;
pub(crate) use visit::visit;
