//! [`AnswerStream`]: hands on what a model writes, a few times a second.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::answer_text::{AnswerText, main_text};
use crate::models::Delta;

/// How often text is handed on at most.
const EVERY: Duration = Duration::from_millis(100);
/// How much text waits at most, in bytes; more is handed on at once.
const WAITS: usize = 4_000;

/// The text of one answer on its way.
pub(super) struct AnswerStream {
    wanted: Option<String>,
    spoken: AnswerText,
    /// Whether the answer is given by the tool for that.
    answers: bool,
    waiting: String,
    last: Option<Instant>,
}

impl AnswerStream {
    /// An answer that will fit this schema.
    pub(super) fn new(schema: &Value) -> AnswerStream {
        let wanted = main_text(schema);
        AnswerStream {
            spoken: AnswerText::new(wanted.clone()),
            wanted,
            answers: false,
            waiting: String::new(),
            last: None,
        }
    }

    /// Takes a piece. Returns the text to hand on, if it is time for some.
    pub(super) fn take(&mut self, piece: Delta<'_>, now: Instant) -> Option<String> {
        match piece {
            Delta::Text(text) => self.spoken.take(text, &mut self.waiting),
            Delta::Answer(text) => {
                if !self.answers {
                    // Whatever was said before is no part of it.
                    self.begin();
                    self.answers = true;
                }
                self.spoken.take(text, &mut self.waiting);
            }
            Delta::Again => self.begin(),
        }
        let is_due = self.last.is_none_or(|last| now.saturating_duration_since(last) >= EVERY);
        match is_due || self.waiting.len() >= WAITS {
            true => self.rest().inspect(|_| self.last = Some(now)),
            false => None,
        }
    }

    fn begin(&mut self) {
        self.spoken = AnswerText::new(self.wanted.clone());
        self.waiting.clear();
        self.answers = false;
    }

    /// What was not handed on yet.
    pub(super) fn rest(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.waiting)).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_handed_on_a_few_times_a_second() {
        let mut writing = AnswerStream::new(&json!({"properties": {"answer": {"type": "string"}}}));
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert_eq!(writing.take(Delta::Answer(r#"{"answer": "#), at(0)), None);
        assert_eq!(writing.take(Delta::Answer(r#""Tea"#), at(1)).as_deref(), Some("Tea"));
        assert_eq!(writing.take(Delta::Answer(" is"), at(2)), None);
        assert_eq!(writing.take(Delta::Answer(" hot"), at(99)), None);
        assert_eq!(writing.take(Delta::Answer(", yes"), at(102)).as_deref(), Some(" is hot, yes"));
        let long = "x".repeat(WAITS);
        assert_eq!(writing.take(Delta::Answer(&long), at(103)).as_deref(), Some(&*long));
        assert_eq!(writing.take(Delta::Answer(r#"."}"#), at(104)), None);
        assert_eq!(writing.rest().as_deref(), Some("."));
        assert_eq!(writing.take(Delta::Again, at(500)), None);
        assert_eq!(writing.take(Delta::Text(r#"{"answer": "Milk"}"#), at(501)).as_deref(), Some("Milk"));
    }
}
