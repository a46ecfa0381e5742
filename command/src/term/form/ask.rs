//! Who answers.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

/// Somebody who can be asked, one line at a time.
pub(crate) trait Ask {
    /// Shows a line (or several).
    fn say(&mut self, text: &str) -> io::Result<()>;

    /// Asks for a line. `None` when there will be no more, as after Ctrl-D.
    fn line(&mut self, prompt: &str) -> io::Result<Option<String>>;
}

/// The user at the terminal. Speaks on stderr, because stdout may be piped on, and listens to the terminal itself,
/// because stdin may be piped in; only without a terminal it listens to stdin.
pub(crate) struct Terminal {
    input: Box<dyn BufRead + Send>,
}

impl Terminal {
    /// The terminal of this process.
    pub(crate) fn open() -> Terminal {
        let device = if cfg!(windows) { "CONIN$" } else { "/dev/tty" };
        match File::open(device) {
            Ok(terminal) => Terminal { input: Box::new(BufReader::new(terminal)) },
            Err(_) => Terminal { input: Box::new(BufReader::new(io::stdin())) },
        }
    }
}

impl Ask for Terminal {
    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(io::stderr().lock(), "{text}")
    }

    fn line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        let mut out = io::stderr();
        write!(out, "{prompt}")?;
        out.flush()?;
        let mut line = String::new();
        // Standard error is not held meanwhile: whoever cancels has something to say there.
        if self.input.read_line(&mut line)? == 0 {
            // The cursor still stands behind the prompt.
            writeln!(out)?;
            return Ok(None);
        }
        Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
    }
}
