//! Asking for the fields of a form.

use std::io;

use serde_json::{Map, Value};

use super::check;
use super::field::{Choice, Field, Form, Kind};
use super::{Action, Answer, Ask};
use crate::term::clean;
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::wrap::indented;

/// Asks the user what `server` wants to know. `schema` is the text of `requestedSchema`.
///
/// The user is first asked whether to answer at all, then for each field, and in the end whether to send it, because
/// people must be able to look at and to change what they are about to give away.
pub(crate) fn fill(
    ask: &mut dyn Ask,
    server: &str,
    message: &str,
    schema: &str,
    paint: Paint,
) -> io::Result<Answer> {
    introduce(ask, server, "asks:", message, paint)?;
    let form = match Form::parse(schema) {
        Ok(form) => form,
        Err(reason) => {
            ask.say(&paint.bad(format!("This cannot be answered: {reason}.")))?;
            return Ok(Answer::bare(Action::Cancel));
        }
    };
    // Without fields the answer to this is all that the server gets, so Enter alone does not give it.
    let question = if form.fields.is_empty() { "Confirm? [y]es" } else { "Answer? [Y]es" };
    match choice(ask, &format!("{question}, [n]o, [c]ancel: "), "ync")? {
        Some('n') => return Ok(Answer::bare(Action::Decline)),
        Some('c') | None => return Ok(Answer::bare(Action::Cancel)),
        _ if form.fields.is_empty() => return Ok(Answer::accept(Map::new())),
        _ => {}
    }
    let mut content = Map::new();
    loop {
        for field in &form.fields {
            let Some(answer) = ask_field(ask, field, content.get(&field.name), paint)? else {
                return Ok(Answer::bare(Action::Cancel));
            };
            match answer {
                Some(value) => content.insert(field.name.clone(), value),
                None => content.remove(&field.name),
            };
        }
        ask.say(&review(&form, &content, server, paint))?;
        match choice(ask, "Send? [Y]es, [e]dit, [n]o, [c]ancel: ", "yenc")? {
            Some('y') => return Ok(Answer::accept(content)),
            Some('e') => {}
            Some('n') => return Ok(Answer::bare(Action::Decline)),
            _ => return Ok(Answer::bare(Action::Cancel)),
        }
    }
}

/// Says who speaks before they do.
pub(super) fn introduce(
    ask: &mut dyn Ask,
    server: &str,
    verb: &str,
    message: &str,
    paint: Paint,
) -> io::Result<()> {
    let server = clean::line(server);
    ask.say(&format!("\n{} {verb}", paint.bold(format!("The server {server:?}"))))?;
    // Indented, so that no message can pass for one of our own lines.
    ask.say(&indented(&clean::text(message), "  | ", None))
}

/// Asks for one letter; the first of `letters` is what Enter means if the prompt shows it as a capital. `None` when
/// there are no more lines.
pub(super) fn choice(ask: &mut dyn Ask, prompt: &str, letters: &str) -> io::Result<Option<char>> {
    let default = letters.chars().next().filter(|letter| prompt.contains(letter.to_ascii_uppercase()));
    loop {
        let Some(line) = ask.line(prompt)? else { return Ok(None) };
        let letter = line.trim().to_lowercase().chars().next().or(default);
        match letter.filter(|letter| letters.contains(*letter)) {
            Some(letter) => return Ok(Some(letter)),
            None => ask.say("Please enter one of the letters in brackets.")?,
        }
    }
}

/// Asks until the answer fits. The outer `None` means that there are no more lines, the inner that it is skipped.
fn ask_field(
    ask: &mut dyn Ask,
    field: &Field,
    earlier: Option<&Value>,
    paint: Paint,
) -> io::Result<Option<Option<Value>>> {
    ask.say(&heading(field, paint))?;
    if let Kind::One(choices) | Kind::Many { choices, .. } = &field.kind {
        ask.say(&listed(choices))?;
    }
    let default = earlier.or(field.default.as_ref());
    let prompt = match default {
        Some(default) => format!("  [{}] > ", check::shown(&field.kind, default)),
        None => "  > ".to_owned(),
    };
    loop {
        let Some(line) = ask.line(&prompt)? else { return Ok(None) };
        if line.trim().is_empty() {
            match default {
                Some(default) => return Ok(Some(Some(default.clone()))),
                None if !field.required => return Ok(Some(None)),
                // No choice at all can be an answer.
                None if matches!(field.kind, Kind::Many { .. }) => {}
                None => {
                    ask.say(&paint.warning("  This field is required (Ctrl-D cancels)."))?;
                    continue;
                }
            }
        }
        match check::read(&field.kind, &line) {
            Ok(value) => return Ok(Some(Some(value))),
            Err(sentence) => ask.say(&paint.warning(format!("  {sentence}")))?,
        }
    }
}

fn heading(field: &Field, paint: Paint) -> String {
    let mut hints = vec![check::hint(&field.kind)];
    if !field.required {
        hints.push("optional".to_owned());
    }
    hints.retain(|hint| !hint.is_empty());
    let mut heading = paint.name(&field.title);
    if !hints.is_empty() {
        heading.push_str(&paint.dim(format!(" ({})", hints.join(", "))));
    }
    if !field.description.is_empty() {
        heading.push_str(&format!("\n  {}", field.description));
    }
    heading
}

fn listed(choices: &[Choice]) -> String {
    let numbered = check::are_numbered(choices);
    let lines = choices.iter().enumerate().map(|(at, choice)| {
        let mark = if numbered { format!("{}.", at + 1) } else { "-".to_owned() };
        if numbered || choice.label == choice.value {
            format!("  {mark} {}", choice.label)
        } else {
            format!("  {mark} {}: {}", clean::line(&choice.value), choice.label)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn review(form: &Form, content: &Map<String, Value>, server: &str, paint: Paint) -> String {
    let mut table = Table::new(&["", ""]);
    for field in &form.fields {
        let value = content.get(&field.name);
        let shown = value.map_or("(omitted)".to_owned(), |value| check::shown(&field.kind, value));
        table.row([&field.title, &shown]);
    }
    let lines = table.show(None, paint);
    format!("\nThis goes to {:?}:\n{}", clean::line(server), indented(&lines, "  ", None))
}
