//! Server processes that are spoken to over their standard streams: one JSON message per line.
//!
//! A child consists of its process group ([`process`]), a way in ([`input`]), a way out ([`output`]), its log
//! ([`stderr`]) and a task that keeps all of that together ([`keeper`]). Nothing of it outlives the handle: not the
//! process, nor what that has started, nor a task.

#[cfg(target_os = "linux")]
mod descendants;
mod environment;
mod excerpt;
mod group;
mod input;
mod keeper;
mod last_words;
mod output;
mod pipe;
mod printed;
mod process;
mod salvage;
mod stderr;
#[cfg(all(test, unix))]
mod tests;

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tidegate_protocol::{Error, Limits, Symbol};
use tokio_util::sync::CancellationToken;

use self::input::Input;
use self::keeper::{Ending, Keeper, Task, closed};
use self::last_words::LastWords;
pub(crate) use self::output::Output;
use self::process::Process;
pub(crate) use self::stderr::StderrLog;
use super::{Inbox, MessageChannel, log_lost};
use crate::counted::Counted;
use crate::target::Command;
use crate::ticket::Ticket;

/// Somebody who wants to see each line that a child writes to standard error.
pub(crate) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// How a child is treated.
#[derive(Clone)]
pub(crate) struct ChildSettings {
    /// What a message from the child may be like. Default 16 MiB.
    pub limits: Limits,
    /// How many bytes may wait for a child that does not read, before sending fails. A message that is larger than this
    /// goes out when nothing else waits. Default 8 MiB.
    pub max_backlog: usize,
    /// How long each step of the end may take: the end of the input, SIGTERM, SIGKILL. Default 2 s.
    pub grace: Duration,
    /// Who sees its standard error besides the log. Default nobody.
    pub on_stderr: Option<OnStderr>,
    /// How many processes there are, those included that are about to end.
    pub processes: Arc<AtomicUsize>,
}

impl Default for ChildSettings {
    fn default() -> Self {
        ChildSettings {
            limits: Limits { max_bytes: 16 * 1024 * 1024, ..Limits::default() },
            max_backlog: 8 * 1024 * 1024,
            grace: Duration::from_secs(2),
            on_stderr: None,
            processes: Arc::default(),
        }
    }
}

/// A running server process. Dropping this ends the process and its whole group in the background.
pub(crate) struct Child {
    name: Arc<str>,
    #[cfg(test)]
    id: Option<u32>,
    input: Input,
    asked: CancellationToken,
    done: CancellationToken,
}

impl Child {
    /// Starts the program in a process group of its own. Only within a Tokio runtime.
    ///
    /// What it writes to standard error goes to `log`, and what it sends to `inbox`, under whatever `name` the server has in the configuration.
    pub(crate) fn spawn(
        name: &str,
        command: &Command,
        settings: &ChildSettings,
        log: &StderrLog,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Child, Error> {
        let failed = |e: io::Error| cannot_start(name, command, &e);
        let mut process = Process::start(prepare(command)).map_err(failed)?;
        let (stdin, stdout, stderr) = process.take_streams().map_err(failed)?;
        let (direct, patient) = pipe::open(stdin).map_err(failed)?;

        let name: Arc<str> = name.into();
        let id = process.id();
        tracing::debug!(server = &*name, program = command.program, id, "started a server process");
        let input = Input::new(name.clone(), direct, settings.max_backlog);
        let output = Output {
            name: name.clone(),
            limits: settings.limits,
            inbox: inbox.clone(),
            input: Some(input.clone()),
            noisy: false,
        };
        let (asked, done) = (CancellationToken::new(), CancellationToken::new());
        let last_words = LastWords::default();
        let keeper = Keeper {
            process,
            _counted: Counted::one_more(&settings.processes),
            input: input.clone(),
            writer: Task::spawn(input.clone().write_to(patient)),
            output: Task::spawn(output.read(stdout)),
            errors: Task::spawn(stderr::read(
                log.clone(),
                stderr,
                last_words.clone(),
                settings.on_stderr.clone(),
            )),
            last_words,
            grace: settings.grace,
            asked: asked.clone(),
            ending: Ending::new(name.clone(), log.clone(), input.clone(), inbox, done.clone()),
        };
        tokio::spawn(keeper.keep());
        Ok(Child {
            name,
            #[cfg(test)]
            id,
            input,
            asked,
            done,
        })
    }

    /// Sends one message, or queues it. Never waits: fails at once when the child is gone or does not read.
    fn send(&self, message: &[u8]) -> Result<(), Error> {
        self.input.send(message, |_| {})
    }

    /// The process id.
    #[cfg(test)]
    pub(crate) fn id(&self) -> Option<u32> {
        self.id
    }

    fn end(&self) {
        self.input.close(|| closed(&self.name));
        self.asked.cancel();
    }
}

impl MessageChannel for Child {
    fn request(&self, ticket: &Ticket, body: Vec<u8>) -> Result<(), Error> {
        self.input.send(&body, |at| ticket.sent_at(at))
    }

    fn is_open(&self) -> bool {
        self.input.is_open()
    }

    fn tell(&self, body: Vec<u8>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::ready(self.send(&body)))
    }

    fn tell_soon(&self, body: Vec<u8>) {
        log_lost(self.send(&body));
    }

    /// Ends the process and waits until its whole group is gone.
    ///
    /// Its input ends first, which is how a server is asked to end (2026-07-28 stdio: shutdown); SIGTERM and SIGKILL to
    /// the whole group follow, each a while later, if that does not help.
    fn close(&self) -> BoxFuture<'_, ()> {
        self.end();
        Box::pin(self.done.cancelled())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

fn prepare(command: &Command) -> tokio::process::Command {
    let mut start = tokio::process::Command::new(&command.program);
    start.args(&command.args).env_clear().envs(command.environment());
    start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &command.cwd {
        start.current_dir(cwd);
    }
    // CREATE_NO_WINDOW: no console pops up beside whatever the user is doing.
    #[cfg(windows)]
    start.creation_flags(0x0800_0000);
    start
}

fn cannot_start(name: &str, command: &Command, e: &io::Error) -> Error {
    let why = match e.kind() {
        io::ErrorKind::NotFound => match &command.cwd {
            Some(cwd) if !cwd.is_dir() => format!("there is no directory {cwd:?} to run it in"),
            _ if command.program.contains(std::path::is_separator) => "there is no such file".to_owned(),
            _ => "no such program in PATH".to_owned(),
        },
        io::ErrorKind::PermissionDenied => "it may not be executed here".to_owned(),
        _ => e.to_string(),
    };
    Error::new(Symbol::Unavailable, format!("The server {name:?} cannot be started"))
        .with_detail(format!("cannot start {:?}: {why}", command.program))
        .unexecuted()
}
