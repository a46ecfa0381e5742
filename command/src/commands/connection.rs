//! A connection to the server that a command is about, from its beginning to its end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::protocol::{Error, Method, Revision, Symbol};
use tidegate::service::secrets::mask;
use tidegate_client::oauth::{FileStore, OAuth};
use tidegate_client::{AppError, Client, ClientBuilder, ClientSettings, ServerInfo, Target};

use super::display::Display;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::resolve::ResolvedServer;
use super::target::ConnectionArgs;

/// How many of the last lines on standard error are shown when a server fails.
const LAST_LINES: usize = 12;
/// How many are kept: a legacy server that ends at the first question is started twice.
const KEPT_LINES: usize = 4 * LAST_LINES;

/// The last lines that a server's process wrote to standard error. Clones are handles on the same.
#[derive(Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(mask(line).into_owned());
    }

    /// The last lines, the oldest first, and before them how many there were more.
    pub(crate) fn get(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut lines: Vec<String> = kept.iter().cloned().collect();
        drop(kept);
        // Said twice over, because it was started twice.
        let half = lines.len() / 2;
        if lines.len().is_multiple_of(2) && lines[..half] == lines[half..] {
            lines.truncate(half);
        }
        let earlier = lines.len().saturating_sub(LAST_LINES);
        let mut last = lines.split_off(earlier);
        if earlier > 0 {
            last.insert(0, "… (earlier lines are not shown)".to_owned());
        }
        last
    }
}

/// The client for a server, not connected yet, and what its process says on standard error.
pub(crate) fn builder(
    server: &ResolvedServer,
    options: ClientSettings,
    login: bool,
) -> Result<(ClientBuilder, StderrTail), Failure> {
    let stderr = StderrTail::default();
    let heard = stderr.clone();
    let builder =
        Client::builder(server.target.clone())?.settings(options).on_stderr(move |line| heard.push(line));
    let builder = with_logins(builder, &server.target, login).map_err(|error| Failure::of(&error))?;
    let builder = match &server.builtin {
        Some(builtin) => builtin.clone().ends_with(builder),
        None => builder,
    };
    Ok((builder, stderr))
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
            tracing::info!(%error, "cannot use stored logins");
            Ok(builder)
        }
    }
}

/// An error that did not come out of a client, as those that do.
pub(crate) fn app_error(error: &Error) -> AppError {
    AppError::from_error(error, &Method::Initialize, Default::default(), Revision::INTERNAL)
}

/// The tokens that `tidegate login` got. Only with `login` may new ones be asked for.
fn authorizer(url: &str, login: bool) -> Result<OAuth, Error> {
    OAuth::builder(url).store(FileStore::of_user()?).interactive(login).build()
}

/// How much longer than its own limit connecting may take, so that whatever was late can say so itself.
const MARGIN: Duration = Duration::from_millis(500);

/// How long a server may take to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartLimit {
    time: Duration,
    /// Whether the command line says so (`--timeout`), and not `start_timeout`.
    is_given: bool,
}

impl StartLimit {
    /// What the command line says, else what the options say.
    pub(crate) fn new(options: &ClientSettings, given: Option<Duration>) -> StartLimit {
        StartLimit { time: given.unwrap_or(options.init_timeout), is_given: given.is_some() }
    }

    /// Why nothing is known about the server: a program may still be starting, an address does not answer.
    fn over(self, server: &ResolvedServer) -> Failure {
        let time = humantime::format_duration(self.time);
        // Only what a file can say has such a name.
        let setting = if server.settings.is_some() { " (start_timeout)" } else { "" };
        let what = match &server.target {
            _ if self.is_given => format!("The server did not answer within {time}"),
            Target::Command(_) => format!("The server is still starting after {time}{setting}"),
            _ => format!("The server does not answer: no response within {time}{setting}"),
        };
        let failure = Failure::of(&Error::new(Symbol::Timeout, what));
        match (&server.settings, &server.file) {
            (Some(settings), Some(file)) if !self.is_given => failure.advise(format!(
                "If it needs longer, raise start_timeout under [servers.{}] in {}.",
                settings.name,
                file.display()
            )),
            _ => failure,
        }
    }
}

/// Waits until the server has said what it is, no longer than it may take to start.
pub(crate) async fn connected(
    client: &Client,
    server: &ResolvedServer,
    limit: StartLimit,
) -> Result<ServerInfo, Failure> {
    if let Some(builtin) = &server.builtin {
        // The error of this one is for the person who runs it, and not for a model.
        builtin.open().await?;
    }
    // Connecting consists of several requests, each with a limit of its own.
    let bound = if limit.is_given { limit.time } else { limit.time + MARGIN };
    match tokio::time::timeout(bound, client.server()).await {
        Ok(Err(error)) if error.symbol == Symbol::Timeout => Err(limit.over(server)),
        Ok(facts) => Ok(facts?),
        Err(_) => Err(limit.over(server)),
    }
}

/// What a command has to work with.
pub(crate) struct Session {
    /// The connected client.
    pub(crate) client: Client,
    /// What the server said about itself.
    pub(crate) facts: ServerInfo,
}

/// Connects, does the work, and closes the connection properly, as [`with_server`] does, for commands that need nothing special of
/// their client.
pub(crate) async fn with_session<T>(
    server: &ResolvedServer,
    common: &ConnectionArgs,
    work: impl AsyncFnOnce(&Session, &Display) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let display = Display::new(common.verbose);
    let work = async |session: &Session| work(session, &display).await;
    with_server(server, common, &display, |builder| builder, work).await
}

/// Connects, does the work, and closes the connection properly, whatever comes of the work. Ctrl-C ends it.
pub(crate) async fn with_server<T>(
    server: &ResolvedServer,
    common: &ConnectionArgs,
    display: &Display,
    prepare: impl FnOnce(ClientBuilder) -> ClientBuilder,
    work: impl AsyncFnOnce(&Session) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let interrupt = Interrupt::listen();
    let options = common.options(server);
    let limit = StartLimit::new(&options, common.timeout());
    let (builder, stderr) = builder(server, options, common.login)?;
    let client = prepare(builder).lazy()?;
    display.waiting(&match &server.target {
        Target::Command(_) => format!("Starting {}", server.name),
        _ => format!("Connecting to {}", server.name),
    });
    let worked = interrupt
        .or(async {
            let facts = connected(&client, server, limit).await.map_err(|failure| common.advised(failure))?;
            display.clear();
            work(&Session { client: client.clone(), facts }).await
        })
        .await;
    display.clear();
    client.close().await;
    worked.map_err(|failure| failure.with_stderr(stderr.get()))
}
