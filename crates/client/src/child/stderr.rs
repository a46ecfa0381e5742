//! What the child says on standard error: its log, and often the reason why it ends.

use std::sync::{Arc, Mutex};

use tidegate_protocol::lines::{Line, Lines};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

use super::excerpt::excerpt;

/// The longest line that goes to the log whole.
const LONGEST: usize = 4 * 1024;

/// The last line that the child wrote to standard error.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<String>>);

impl LastWords {
    fn set(&self, line: &[u8]) {
        let line = excerpt(line);
        if !line.is_empty() {
            *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = line;
        }
    }

    /// The line, unless nothing was ever written.
    pub(super) fn get(&self) -> Option<String> {
        let line = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        (!line.is_empty()).then_some(line)
    }
}

/// Reads to the end, whatever comes: a full pipe would stop the child.
pub(super) async fn read(
    name: Arc<str>,
    mut stderr: ChildStderr,
    last: LastWords,
    also: Option<super::OnStderr>,
) {
    let take = |line: Line| {
        let (Line::Text(text) | Line::TooLong { head: text, .. }) = line;
        let line = String::from_utf8_lossy(&text);
        tracing::info!(target: "tidegate::child", server = &*name, "{line}");
        if let Some(also) = &also {
            also(&line);
        }
        last.set(&text);
    };
    let mut lines = Lines::new(LONGEST);
    loop {
        match stderr.read_buf(lines.room()).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) => {
                tracing::debug!(server = &*name, error = %e, "cannot read standard error");
                break;
            }
        }
        while let Some(line) = lines.next() {
            take(line);
        }
    }
    lines.last().into_iter().for_each(take);
}
