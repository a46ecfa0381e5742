//! The `tidegate` command as a library: [`main`] is all of it, and [`builtins`] lists the servers that are part of it.
//! Whoever writes servers or clients wants the crate `tidegate`.

mod builtins;
mod commands;
mod term;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser};
use tidegate::logging;

pub use builtins::{Registered, builtins};
use commands::{AnyCommand, Failure};

/// One endpoint for all your MCP servers, for every client and every protocol version
#[derive(Parser)]
#[command(name = "tidegate", version, max_term_width = 100, after_help = commands::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: AnyCommand,

    /// Format of log lines: pretty or json
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "LOG_FORMAT",
        hide_env = true,
        default_value = "pretty",
        help_heading = "Logging"
    )]
    log_format: logging::Format,

    /// Log level: error, warn, info, debug or trace, or a filter such as info,tidegate::wire=debug
    #[arg(long, global = true, value_name = "LEVEL", help_heading = "Logging")]
    log_level: Option<logging::Filter>,
}

/// What each thread may use for calls within calls: schemas and values that others wrote are gone through that way, and what
/// is not used costs nothing.
const STACK: usize = 8 * 1024 * 1024;

/// How long tasks may take to end when everything is done. Somebody may still be asked something.
const LEAVE: Duration = Duration::from_millis(200);

/// Does what the command line says, with these servers as part of the program: [`builtins`], and whatever else is to be
/// there without being installed.
///
/// ```no_run
/// # fn mine() -> tidegate_builtin::Builtin { tidegate_demo::builtin() }
/// fn main() -> std::process::ExitCode {
///     tidegate_command::main(tidegate_command::builtins().into_iter().chain([mine().into()]))
/// }
/// ```
pub fn main(builtins: impl IntoIterator<Item = Registered>) -> ExitCode {
    run(std::env::args_os(), builtins)
}

/// Does what these arguments say; the first is the name of the program. The servers are those of the first call in a process.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    builtins: impl IntoIterator<Item = Registered>,
) -> ExitCode {
    builtins::register(builtins);
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches =
        commands::grouped(Cli::command()).try_get_matches_from(&arguments).unwrap_or_else(|error| {
            let args: Vec<String> =
                arguments.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
            match commands::clearer(&error, &args) {
                Some(failure) => {
                    failure.show();
                    std::process::exit(failure.exit.number().into());
                }
                None => error.exit(),
            }
        });
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let log_level = cli.log_level.as_ref().map(logging::Filter::as_str);
    logging::init(cli.log_format, log_level.or(cli.command.log_level()));
    let says_format =
        matches.value_source("log_format").is_some_and(|source| source != ValueSource::DefaultValue);
    cli.command.note_logging(says_format, log_level.is_some());
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let failure = Failure::new(commands::Exit::Unavailable, format!("cannot start: {error}"));
                failure.show();
                return failure.exit.number().into();
            }
        };
    let json = cli.command.is_json();
    let exit = match runtime.block_on(Box::pin(cli.command.run())) {
        Ok(exit) => exit,
        Err(failure) => {
            failure.show();
            if json {
                commands::show_json(&failure);
            }
            failure.exit
        }
    };
    runtime.shutdown_timeout(LEAVE);
    logging::flush();
    exit.number().into()
}
