//! [`Display`]: what is seen on the terminal while a command waits: a spinner, or how far the server says it is.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use tidegate::protocol::Json;

use super::output;
use crate::term::clean;
use crate::term::schema::plain;
use crate::term::style::Paint;

/// What takes less time than this is not worth a spinner.
const SOON: Duration = Duration::from_millis(400);
/// How finely a bar is divided.
const STEPS: u64 = 1000;

/// The last line of the terminal. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct Display(Arc<Mutex<State>>);

struct State {
    /// Whether there is a terminal to draw on.
    drawn: bool,
    /// Whether progress is worth a line of its own.
    lines: bool,
    /// Somebody is being asked something, and the terminal is theirs.
    paused: bool,
    /// What is being waited for; each has a number, so that what was waited for before comes too late to be shown.
    waiting: u64,
    bar: Option<ProgressBar>,
}

impl Display {
    /// Draws on standard error, if that is a terminal. Where more is told, lines are better than drawings.
    pub(crate) fn new(verbose: u8) -> Display {
        let drawn = std::io::stderr().is_terminal() && verbose == 0;
        Display(Arc::new(Mutex::new(State {
            drawn,
            lines: verbose > 0,
            paused: false,
            waiting: 0,
            bar: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Shows what is being waited for: after a moment, or at once if something is shown already. Only within a Tokio runtime.
    pub(crate) fn waiting(&self, what: &str) {
        let number = {
            let mut state = self.state();
            if !state.drawn {
                return;
            }
            if let Some(bar) = &state.bar {
                bar.set_message(clean::line(what));
                return;
            }
            state.waiting += 1;
            state.waiting
        };
        let (display, what) = (Arc::downgrade(&self.0), clean::line(what));
        tokio::spawn(async move {
            tokio::time::sleep(SOON).await;
            let Some(display) = display.upgrade().map(Display) else { return };
            let mut state = display.state();
            if state.waiting == number && state.bar.is_none() {
                let bar = state.shown();
                if let Some(bar) = bar {
                    bar.set_message(what);
                }
            }
        });
    }

    /// Shows what a `notifications/progress` says.
    pub(crate) fn progress(&self, params: &Json) {
        let Ok(params) = params.to::<Value>() else { return };
        let number = |name: &str| params.get(name).and_then(Value::as_f64).filter(|n| n.is_finite());
        let message = clean::line(params.get("message").and_then(Value::as_str).unwrap_or_default());
        let (progress, total) =
            (number("progress").unwrap_or(0.0), number("total").filter(|total| *total > 0.0));
        let mut state = self.state();
        if state.lines {
            let of = params.get("total").map(|total| format!(" of {}", plain(total))).unwrap_or_default();
            let now = params.get("progress").map(plain).unwrap_or_default();
            output::note(&format!("{} {now}{of} {message}", Paint::stderr().dim("progress")));
            return;
        }
        let Some(bar) = state.shown() else { return };
        match total {
            Some(total) => {
                bar.set_style(bar_style());
                bar.set_length(STEPS);
                bar.set_position(((progress / total).clamp(0.0, 1.0) * STEPS as f64) as u64);
                bar.set_message(message);
            }
            None if message.is_empty() => bar.set_message(progress.to_string()),
            None => bar.set_message(format!("{progress} {message}")),
        }
    }

    /// Takes everything away, for good if `paused`, else until there is something new to show.
    fn hide(&self, paused: bool) {
        let mut state = self.state();
        state.paused = paused;
        state.waiting += 1;
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Leaves the terminal to somebody else.
    pub(crate) fn pause(&self) {
        self.hide(true);
    }

    /// Takes everything away until there is something new to show.
    pub(crate) fn clear(&self) {
        self.hide(false);
    }
}

impl State {
    /// The bar, if there is one to be seen.
    fn shown(&mut self) -> Option<&ProgressBar> {
        if !self.drawn || self.paused {
            return None;
        }
        Some(self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style("{spinner} {wide_msg} {elapsed}"));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        }))
    }
}

fn bar_style() -> ProgressStyle {
    style("{spinner} {bar:30} {percent:>3}% {wide_msg} {elapsed}").progress_chars("━╸─")
}

fn style(template: &str) -> ProgressStyle {
    // The templates are our own; one that cannot be read only looks different.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
