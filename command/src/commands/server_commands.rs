//! Commands that servers of the program bring, beside those that are always there.

use std::pin::Pin;

use clap::{ArgMatches, Command as Clap, FromArgMatches, Subcommand};

use super::{Command, Exit, Failure, QUIET};
use crate::builtins::registry;

/// The commands of a server: an enum with one variant for each.
pub(crate) trait ServerCommands: Subcommand + Send + 'static {
    /// Whether programs read the output.
    fn is_json(&self) -> bool;
    /// Does it.
    fn run(self) -> impl Future<Output = Result<Exit, Failure>> + Send;
}

/// The commands of a server, without their type.
pub(crate) struct CommandSet {
    /// What the list of all commands has above them.
    pub(crate) title: &'static str,
    add: fn(Clap) -> Clap,
    has: fn(&str) -> bool,
    read: fn(&ArgMatches) -> Result<Box<dyn ParsedCommand>, clap::Error>,
}

type CommandFuture = Pin<Box<dyn Future<Output = Result<Exit, Failure>> + Send>>;

/// A command whose arguments were read.
pub(crate) trait ParsedCommand: Send {
    fn is_json(&self) -> bool;
    fn run(self: Box<Self>) -> CommandFuture;
}

impl<C: ServerCommands> ParsedCommand for C {
    fn is_json(&self) -> bool {
        ServerCommands::is_json(self)
    }

    fn run(self: Box<Self>) -> CommandFuture {
        Box::pin(ServerCommands::run(*self))
    }
}

impl CommandSet {
    pub(crate) fn of<C: ServerCommands>(title: &'static str) -> CommandSet {
        CommandSet {
            title,
            add: C::augment_subcommands,
            has: C::has_subcommand,
            read: |matches| Ok(Box::new(C::from_arg_matches(matches)?)),
        }
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<String> {
        let all = (self.add)(Clap::new("tidegate"));
        all.get_subcommands().map(|one| one.get_name().to_owned()).collect()
    }
}

/// A command: one that is always there, or one that a server brings.
pub(crate) enum AnyCommand {
    Core(Command),
    OfServer(Box<dyn ParsedCommand>),
}

impl AnyCommand {
    /// Does it.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        match self {
            AnyCommand::Core(command) => Box::pin(command.run()).await,
            AnyCommand::OfServer(command) => command.run().await,
        }
    }

    /// Which log lines are wanted if nobody says so.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self {
            AnyCommand::Core(command) => command.log_level(),
            AnyCommand::OfServer(_) => Some(QUIET),
        }
    }

    /// Notes whether the command line or the environment says how log lines look, and which there are.
    pub(crate) fn note_logging(&mut self, format: bool, level: bool) {
        if let AnyCommand::Core(Command::Serve(serve)) = self {
            serve.note_logging(format, level);
        }
    }

    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            AnyCommand::Core(command) => command.is_json(),
            AnyCommand::OfServer(command) => command.is_json(),
        }
    }
}

fn of_server(name: &str) -> Option<&'static CommandSet> {
    registry().commands.iter().find(|set| (set.has)(name))
}

impl FromArgMatches for AnyCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<AnyCommand, clap::Error> {
        match matches.subcommand_name().and_then(of_server) {
            Some(set) => (set.read)(matches).map(AnyCommand::OfServer),
            None => Command::from_arg_matches(matches).map(AnyCommand::Core),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = AnyCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for AnyCommand {
    fn augment_subcommands(command: Clap) -> Clap {
        registry().commands.iter().fold(Command::augment_subcommands(command), |all, one| (one.add)(all))
    }

    fn augment_subcommands_for_update(command: Clap) -> Clap {
        AnyCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Command::has_subcommand(name) || of_server(name).is_some()
    }
}
