//! [`Extra`]: what `tidegate serve` does for each call in addition, where it is told to.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::credentials::{Credentials, Issuer};
use crate::measure::gateway_extras::PRINCIPALS;

/// What is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Callers bring an API key.
    Key,
    /// Callers bring an access token that it has seen before.
    Token,
    /// Each call brings the token of somebody else.
    NewTokens,
    /// Fifty rules say who may do what.
    Rules,
    /// The same, where the rule that decides looks at the arguments.
    Condition,
    /// Rates and how many at once are limited, high enough that nobody is refused.
    Limits,
    /// Each call is recorded in a file.
    Audit,
    /// Each call has a line in the log.
    AccessLine,
    /// Calls are counted and timed.
    Metrics,
    /// What happened to the latest calls is kept.
    Stories,
    /// One of a hundred traces is recorded and sent to a collector.
    FewTraces,
    /// All traces are.
    AllTraces,
    /// Calls are counted and timed, the latest are kept, and one of a hundred traces is recorded.
    Telemetry,
    /// All of it: a known token, fifty rules, limits, the record and the line.
    Everything,
}

impl Extra {
    /// What a row is called.
    pub(crate) fn row_name(self) -> &'static str {
        match self {
            Self::Key => "ours, API key",
            Self::Token => "ours, JWT warm",
            Self::NewTokens => "ours, JWT cold",
            Self::Rules => "ours, 50 rules",
            Self::Condition => "ours, 50 rules and CEL",
            Self::Limits => "ours, limits",
            Self::Audit => "ours, audit",
            Self::AccessLine => "ours, access line",
            Self::Metrics => "ours, metrics",
            Self::Stories => "ours, stories",
            Self::FewTraces => "ours, traces 1 %",
            Self::AllTraces => "ours, traces 100 %",
            Self::Telemetry => "ours, telemetry",
            Self::Everything => "ours, all together",
        }
    }

    /// Which log lines are written, if that is what it is about.
    pub(crate) fn log_level(self) -> Option<&'static str> {
        matches!(self, Self::AccessLine | Self::Everything).then_some("warn,tidegate::access=info")
    }

    /// What it adds to a configuration in this folder, and what callers bring.
    pub(crate) fn configuration(
        self,
        program: &OsStr,
        folder: &Path,
    ) -> Result<(String, Option<Credentials>)> {
        Ok(match self {
            Self::Key => {
                let key = api_key(program, folder, "reef")?;
                (KEYS.to_owned(), Some(Credentials::one(key)))
            }
            Self::Token => token(folder, |issuer| Ok(Credentials::one(issuer.token(0)?)))?,
            Self::NewTokens => token(folder, |issuer| Credentials::of_people(issuer, PRINCIPALS))?,
            Self::Rules => (rules(""), None),
            Self::Condition => (rules("when = 'size(args.message) < 1000'\n"), None),
            Self::Limits => (LIMITS.to_owned(), None),
            Self::Audit => (AUDIT.to_owned(), None),
            Self::AccessLine | Self::Metrics | Self::Stories => (String::new(), None),
            Self::FewTraces | Self::Telemetry => (traces(0.01)?, None),
            Self::AllTraces => (traces(1.0)?, None),
            Self::Everything => {
                let (auth, brought) = token(folder, |issuer| Ok(Credentials::one(issuer.token(0)?)))?;
                (format!("{auth}{}{LIMITS}{AUDIT}", rules("roles = [\"user\"]\n")), brought)
            }
        })
    }
}

/// A share of the traces is recorded, and sent to a collector that takes everything.
fn traces(share: f64) -> Result<String> {
    let address = collector()?;
    Ok(format!("\n[telemetry.otlp]\nendpoint = \"http://{address}\"\nsample = {share:?}\nmetrics = false\n"))
}

/// Takes whatever is sent to it, as long as the process lives.
fn collector() -> Result<std::net::SocketAddr> {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("a port for the collector")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(std::io::Result::ok) {
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut answers = stream.try_clone()?;
                let mut requests = BufReader::new(stream);
                loop {
                    let (mut line, mut length) = (String::new(), 0);
                    while requests.read_line(&mut line)? > 2 {
                        let said = line.to_ascii_lowercase();
                        if let Some(said) = said.strip_prefix("content-length:") {
                            length = said.trim().parse().unwrap_or(0);
                        }
                        line.clear();
                    }
                    if line.is_empty() {
                        return Ok(());
                    }
                    std::io::copy(&mut requests.by_ref().take(length), &mut std::io::sink())?;
                    answers.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
                }
            });
        }
    });
    Ok(address)
}

/// Nobody reaches them. Each kind of limit is there, and a rule.
const LIMITS: &str = "
[limits]
tenant = { rate = \"1000000/s\", concurrent = 10000 }
user = { rate = \"1000000/s\" }
server = { concurrent = 10000 }

[[limits.rules]]
tools = [\"echo\"]
tool = { rate = \"1000000/s\" }
";

const AUDIT: &str = "
[audit]
file = \"audit.jsonl\"
";

/// Fifty rules, of which the fortieth decides about what is called: those before it are about other tools, other roles and other
/// tenants, and every fifth has a condition.
fn rules(decider: &str) -> String {
    let mut out = String::from("\n[policy]\ndefault = \"deny\"\n");
    for n in 1..=50 {
        let effect = if n % 3 == 0 { "deny" } else { "allow" };
        let _ = match n {
            40 => write!(
                out,
                "\n[[policy.rules]]\nname = \"callers echo\"\nallow = [\"echo\", \"e*_more\"]\n{decider}"
            ),
            n if n % 5 == 0 => {
                write!(
                    out,
                    "\n[[policy.rules]]\n{effect} = [\"tool{n}_*\"]\nwhen = 'args.owner == principal.tenant'\n"
                )
            }
            n if n % 2 == 0 => {
                write!(
                    out,
                    "\n[[policy.rules]]\n{effect} = [\"tool{n}_*\", \"*_{n}\"]\nroles = [\"role{n}\", \"user\"]\n"
                )
            }
            n => write!(
                out,
                "\n[[policy.rules]]\n{effect} = [\"echo\", \"tool{n}\"]\ntenants = [\"tenant{n}\"]\n"
            ),
        };
    }
    out
}

pub(super) const KEYS: &str = "\n[auth]\nkeys = \"keys.toml\"\n";

/// A new API key of somebody in a tenant.
pub(super) fn api_key(program: &OsStr, folder: &Path, tenant: &str) -> Result<String> {
    let made = Command::new(program)
        .args(["keys", "add", &format!("bench-{tenant}"), "--tenant", tenant, "--role", "user", "--file"])
        .arg(folder.join("keys.toml"))
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .context("running tidegate keys add")?;
    anyhow::ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

fn token(
    folder: &Path,
    credentials: impl FnOnce(&Issuer) -> Result<Credentials>,
) -> Result<(String, Option<Credentials>)> {
    let issuer = Issuer::new()?;
    std::fs::write(folder.join("jwks.json"), issuer.key_set().to_string())?;
    let (name, audience) = (Issuer::NAME, Issuer::AUDIENCE);
    let auth = format!(
        "\n[[auth.jwt]]\nissuer = {name:?}\naudience = {audience:?}\njwks = \"jwks.json\"\ntenant = \"org_id\"\nroles = \"realm_access.roles\"\n"
    );
    Ok((auth, Some(credentials(&issuer)?)))
}
