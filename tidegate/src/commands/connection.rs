//! A connection to the server that a command is about, from its beginning to its end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tidegate::protocol::{Error, Method, Revision, Symbol};
use tidegate::service::secrets::mask;
use tidegate_client::oauth::{FileStore, OAuth};
use tidegate_client::{AppError, Client, ClientBuilder, Options, ServerFacts, Target};

use super::display::Display;
use super::exit::Exit;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::target::{Common, Place};

/// How many of the last lines on standard error are shown when a server fails.
const LAST_LINES: usize = 12;
/// How many are kept: a server may be started twice before it is given up.
const KEPT_LINES: usize = 4 * LAST_LINES;

/// The last lines that a server's process wrote to standard error. Clones are handles on the same.
#[derive(Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(mask(line).into_owned());
    }

    /// The lines, the oldest first.
    pub(crate) fn get(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut lines: Vec<String> = kept.iter().cloned().collect();
        drop(kept);
        // Said twice over, because it was started twice.
        let half = lines.len() / 2;
        if lines.len().is_multiple_of(2) && lines[..half] == lines[half..] {
            lines.truncate(half);
        }
        lines.split_off(lines.len().saturating_sub(LAST_LINES))
    }
}

/// The client for a server, not connected yet, and what its process says on standard error.
pub(crate) fn builder(
    place: &Place,
    options: Options,
    login: bool,
) -> Result<(ClientBuilder, LastWords), Failure> {
    let words = LastWords::default();
    let heard = words.clone();
    let builder =
        Client::builder(place.target.clone())?.options(options).on_stderr(move |line| heard.push(line));
    let builder = with_logins(builder, &place.target, login).map_err(|error| Failure::of(&error))?;
    Ok((builder, words))
}

/// A client that uses the tokens of `tidegate login`, unless the headers of the target say who is calling.
pub(crate) fn with_logins(
    builder: ClientBuilder,
    target: &Target,
    login: bool,
) -> Result<ClientBuilder, Error> {
    let Target::Url(remote) = target else { return Ok(builder) };
    if remote.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        return Ok(builder);
    }
    match authorizer(remote.url.as_str(), login) {
        Ok(authorizer) => Ok(builder.authorizer(Arc::new(authorizer))),
        Err(error) if login => Err(error),
        // Most servers want no login, and one that does says so.
        Err(error) => {
            tracing::info!(%error, "logins cannot be used");
            Ok(builder)
        }
    }
}

/// An error that did not come out of a client, as those that do.
pub(crate) fn app_error(error: &Error) -> AppError {
    AppError::from_error(error, &Method::Initialize, Default::default(), Revision::LATEST)
}

/// The tokens that `tidegate login` got. Only with `login` may new ones be asked for.
fn authorizer(url: &str, login: bool) -> Result<OAuth, Error> {
    OAuth::builder(url).store(FileStore::of_user()?).interactive(login).build()
}

/// Waits until the server has said what it is, no longer than it may take.
pub(crate) async fn connected(client: &Client, common: &Common) -> Result<ServerFacts, Failure> {
    let late = |time| {
        let what = format!("The server did not answer within {}", humantime::format_duration(time));
        Failure::of(&Error::new(Symbol::Timeout, what))
    };
    let facts = match common.timeout() {
        None => client.server().await,
        // Connecting consists of several things, each with a bound of its own.
        Some(time) => match tokio::time::timeout(time, client.server()).await {
            Ok(Err(error)) if error.symbol == Symbol::Timeout => return Err(late(time)),
            Ok(facts) => facts,
            Err(_) => return Err(late(time)),
        },
    };
    facts.map_err(|error| {
        let failure = Failure::from(error);
        if failure.exit == Exit::Refused && common.insists() {
            return failure.next("Leave out --era and --protocol-version to speak what the server speaks.");
        }
        failure
    })
}

/// What a command has to work with.
pub(crate) struct Session {
    /// The connected client.
    pub(crate) client: Client,
    /// What the server said about itself.
    pub(crate) facts: ServerFacts,
}

/// Connects, does the work, and closes the connection properly, whatever comes of the work. Ctrl-C ends it.
pub(crate) async fn with_server<T>(
    place: &Place,
    common: &Common,
    display: &Display,
    prepare: impl FnOnce(ClientBuilder) -> ClientBuilder,
    work: impl AsyncFnOnce(&Session) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let interrupt = Interrupt::listen();
    let (builder, words) = builder(place, common.options(&place.name), common.login)?;
    let client = prepare(builder).lazy()?;
    display.waiting(&match &place.target {
        Target::Command(_) => format!("Starting {}", place.name),
        _ => format!("Connecting to {}", place.name),
    });
    let worked = interrupt
        .or(async {
            let facts = connected(&client, common).await?;
            display.clear();
            work(&Session { client: client.clone(), facts }).await
        })
        .await;
    display.clear();
    client.close().await;
    worked.map_err(|failure| failure.said(words.get()))
}
