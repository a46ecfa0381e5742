//! What this client answers when a server asks something: the person at the terminal does.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use tidegate::protocol::Object;
use tidegate_client::{ElicitAnswer, ElicitKind, Elicitation, Handlers, Root};
use tokio::sync::Mutex;
use url::Url;

use super::display::Display;
use super::failure::Failure;
use super::output;
use crate::term::clean;
use crate::term::form::{self, Action, Answer, Ask, Terminal};
use crate::term::style::Paint;

/// Asks whoever sits at the terminal. Without one, everything is declined, with a note.
pub(crate) fn handlers(server: &str, display: &Display) -> Handlers {
    let (server, display) = (server.to_owned(), display.clone());
    // One question at a time, whatever the server asks at once.
    let turn = Arc::new(Mutex::new(()));
    Handlers::new().on_elicit(true, move |question| {
        let (server, display, turn) = (server.clone(), display.clone(), turn.clone());
        async move {
            let _turn = turn.lock_owned().await;
            if !somebody_is_there() {
                let what = clean::line(&question.message);
                output::note(&format!(
                    "note: the server asks {what:?}; declined, because there is no terminal to ask on"
                ));
                return ElicitAnswer::Decline;
            }
            display.pause();
            // Reading from a terminal waits for as long as it takes.
            let answer = tokio::task::spawn_blocking(move || ask(&question, &server)).await;
            display.clear();
            answer.unwrap_or(ElicitAnswer::Cancel)
        }
    })
}

/// Whether there is somebody to ask: questions go to standard error, answers come from the terminal itself, because
/// standard input may be arguments.
fn somebody_is_there() -> bool {
    let can_listen = cfg!(windows) || File::open("/dev/tty").is_ok();
    std::io::stderr().is_terminal() && can_listen
}

/// Whether whoever sits at the terminal says yes. Without a terminal, nobody does.
pub(crate) fn agrees(what: &str, question: &str) -> bool {
    if !somebody_is_there() {
        return false;
    }
    let mut terminal = Terminal::open();
    let answer = terminal.say(what).and_then(|()| terminal.line(&format!("{question} [y/N] ")));
    let answer = answer.ok().flatten().unwrap_or_default();
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn ask(question: &Elicitation, server: &str) -> ElicitAnswer {
    let (mut terminal, paint) = (Terminal::open(), Paint::stderr());
    let answer = match &question.kind {
        ElicitKind::Url(url) => form::visit(&mut terminal, server, &question.message, url, paint),
        _ => {
            // As it came, because the order of the fields matters.
            let schema = Object::of(&question.params).and_then(|params| params.json("requestedSchema"));
            let schema = schema.as_ref().map_or("{}", |schema| schema.as_str());
            form::fill(&mut terminal, server, &question.message, schema, paint)
        }
    };
    match answer {
        Ok(Answer { action: Action::Accept, content }) => ElicitAnswer::Accept(content.unwrap_or_default()),
        Ok(Answer { action: Action::Decline, .. }) => ElicitAnswer::Decline,
        Ok(Answer { action: Action::Cancel, .. }) => ElicitAnswer::Cancel,
        Err(error) => {
            output::note(&format!("note: cannot use the terminal ({error}); the question is cancelled"));
            ElicitAnswer::Cancel
        }
    }
}

/// A directory as a root.
pub(crate) fn root(folder: &Path) -> Result<Root, Failure> {
    let cannot = |why: String| Failure::usage(format!("--root {}: {why}", folder.display()));
    let whole = folder.canonicalize().map_err(|error| cannot(error.to_string()))?;
    let url =
        Url::from_directory_path(&whole).map_err(|()| cannot("it cannot be written as a URL".to_owned()))?;
    let uri = url.as_str().trim_end_matches('/').to_owned();
    Ok(Root { uri, name: whole.file_name().map(|name| name.to_string_lossy().into_owned()) })
}
