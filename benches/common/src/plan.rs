//! [`Plan`]: what a client program is told to do.

use std::process::exit;
use std::thread;
use std::time::Duration;

use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

/// A client program that hangs ends itself after this time, wherever it hangs.
const HANGS: Duration = Duration::from_secs(240);

/// Calls the echo tool of a server again and again and prints what that took, as one line of JSON.
#[derive(Parser)]
pub struct Plan {
    /// How many calls are in flight at once.
    #[arg(long, default_value_t = 1)]
    pub in_flight: usize,

    /// How long to call before what counts begins.
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pub warm_up: u64,

    /// How long to call.
    #[arg(long, value_name = "MS", default_value_t = 700)]
    pub measured: u64,

    /// Calls so often instead, without a warm-up.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["warm_up", "measured"])]
    pub calls: Option<u64>,

    /// The server's address. Without one, a server is started and called over its pipes.
    #[arg(long, requires = "server_pid", conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,

    /// The process of the server at the address.
    #[arg(long, requires = "url", conflicts_with = "command")]
    pub server_pid: Option<u32>,

    /// How the server is started.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What to connect to.
pub enum Target<'a> {
    /// The address of a server that runs already.
    Url(&'a str),
    /// A program to start, and its arguments.
    Command(&'a str, &'a [String]),
}

impl Plan {
    /// Reads the command line and starts logging, alike in all client programs.
    pub fn begin() -> Plan {
        thread::spawn(|| {
            thread::sleep(HANGS);
            exit(1)
        });
        let level = std::env::var("BENCH_LOG").ok().and_then(|level| level.parse().ok());
        tracing_subscriber::fmt()
            .with_max_level(level.unwrap_or(LevelFilter::INFO))
            .with_ansi(false)
            .with_writer(std::io::stderr)
            .init();
        Plan::parse()
    }

    /// What to connect to.
    pub fn target(&self) -> Target<'_> {
        match (&self.url, &*self.command) {
            (Some(url), _) => Target::Url(url),
            (None, [program, args @ ..]) => Target::Command(program, args),
            (None, []) => unreachable!("the command line must have one of the two"),
        }
    }

    /// When the warm-up is over, and when what counts is.
    pub(crate) fn stages(&self) -> [Until; 2] {
        match self.calls {
            // Bounded in time as well, far beyond what it should take even under a profiler.
            Some(calls) => [Until::default(), Until { elapsed: Duration::from_secs(120), calls }],
            None => [self.warm_up, self.measured]
                .map(|ms| Until { elapsed: Duration::from_millis(ms), calls: u64::MAX }),
        }
    }
}

/// By time or by count, whichever comes first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Until {
    pub(crate) elapsed: Duration,
    pub(crate) calls: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Plan, clap::Error> {
        Plan::try_parse_from(line.split(' '))
    }

    #[test]
    fn an_address_or_a_command() {
        let plan = read("caller --in-flight 64 -- taskset -c 0 echo --stdio").unwrap();
        let Target::Command("taskset", arguments) = plan.target() else { panic!() };
        assert_eq!(arguments, ["-c", "0", "echo", "--stdio"]);
        let plan = read("caller --url http://127.0.0.1:1/mcp --server-pid 7 --calls 10").unwrap();
        assert!(matches!(plan.target(), Target::Url("http://127.0.0.1:1/mcp")));
        for wrong in [
            "caller",
            "caller --url http://x",
            "caller --server-pid 1 -- x",
            "caller --calls 1 --measured 1 -- x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
