//! The `tidegate` command.

mod commands;
mod term;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser};
use tidegate::logging;

use commands::{Command, Failure};

/// A tenth of what a call costs would otherwise be the finding and giving back of memory. Huge pages are off, because
/// the first of them alone would double what an idle gateway holds; child processes inherit that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One endpoint for all your MCP servers, for every client and every protocol version
#[derive(Parser)]
#[command(name = "tidegate", version, max_term_width = 100, after_help = commands::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

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
    log_level: Option<String>,
}

/// What each thread may use for calls within calls: schemas and values that others wrote are gone through that way, and what
/// is not used costs nothing.
const STACK: usize = 8 * 1024 * 1024;

/// How long tasks may take to end when everything is done. Somebody may still be asked something.
const LEAVE: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let matches = commands::grouped(Cli::command()).try_get_matches().unwrap_or_else(|error| {
        let args: Vec<String> = std::env::args().skip(1).collect();
        match commands::clearer(&error, &args) {
            Some(failure) => {
                failure.show();
                std::process::exit(failure.exit.number().into());
            }
            None => error.exit(),
        }
    });
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    logging::init(cli.log_format, cli.log_level.as_deref().or(cli.command.log_level()));
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
    exit.number().into()
}
