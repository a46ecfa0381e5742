//! Standard output: what the user asked for, and nothing else.

use std::io::{self, IsTerminal, Write};

use super::exit::Exit;
use super::failure::Failure;

/// Writes a text that ends in a line break, as it is or with one added.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let end: &[u8] = if text.is_empty() || text.ends_with('\n') { b"" } else { b"\n" };
    write(&[text.as_bytes(), end])
}

/// Writes exactly these bytes.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    write(&[bytes])
}

/// Whether somebody looks at it, as opposed to a program or a file.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// A line for the user beside the result.
pub(crate) fn note(line: &str) {
    // Nobody is there to be told that this failed.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn write(parts: &[&[u8]]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush());
    match written {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(Exit::Usage, format!("cannot write the output: {error}"))),
        Ok(()) => Ok(()),
    }
}
