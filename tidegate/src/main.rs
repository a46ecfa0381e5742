//! The `tidegate` command.

use std::io::Write;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tidegate::protocol::Profile;
use tidegate::{Eras, demo, http, logging, stdio};

/// Connects any MCP client to any MCP server.
#[derive(Parser)]
#[command(name = "tidegate", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// How log lines on stderr look.
    #[arg(long, global = true, env = "LOG_FORMAT", default_value = "pretty")]
    log_format: logging::Format,

    /// Which log lines are wanted: error, warn, info, debug, trace, or a filter. Default: $LOG_LEVEL, else info.
    #[arg(long, global = true)]
    log_level: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the demonstration server.
    Serve(Serve),
}

#[derive(Args)]
struct Serve {
    /// Where to listen for Streamable HTTP.
    #[arg(long, default_value = "127.0.0.1:8765", conflicts_with = "stdio")]
    listen: String,

    /// Serve the standard streams instead.
    #[arg(long)]
    stdio: bool,

    /// Which eras of the protocol to speak.
    #[arg(long, value_enum, default_value = "both")]
    era: Era,

    /// A host name under which the server may be reached, besides those of this machine. May be given more than once.
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,

    /// An origin of web pages that may call, such as https://app.example.com. May be given more than once.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,

    /// Which numbers errors have: those of the specification, or those that clients of an older server look for.
    #[arg(long = "legacy-errors", value_enum, default_value = "strict", value_name = "PROFILE")]
    errors: Errors,

    /// With --stdio: answer requests before the handshake too.
    #[arg(long, requires = "stdio")]
    lenient_init: bool,

    /// Also serve the HTTP+SSE transport of 2024-11-05 at /sse.
    #[arg(long)]
    http_sse: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    Both,
    Legacy,
    Modern,
}

#[derive(Clone, Copy, ValueEnum)]
enum Errors {
    Strict,
    Gbif,
    Percolate,
    Docling,
}

impl From<Errors> for Profile {
    fn from(errors: Errors) -> Profile {
        match errors {
            Errors::Strict => Profile::Strict,
            Errors::Gbif => Profile::Gbif,
            Errors::Percolate => Profile::Percolate,
            Errors::Docling => Profile::Docling,
        }
    }
}

impl From<Era> for Eras {
    fn from(era: Era) -> Eras {
        match era {
            Era::Both => Eras::Both,
            Era::Legacy => Eras::Legacy,
            Era::Modern => Eras::Modern,
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    logging::init(cli.log_format, cli.log_level.as_deref());
    match cli.command {
        Command::Serve(serve) if serve.stdio => {
            let mut settings = stdio::Settings::default();
            settings.edge.eras = serve.era.into();
            settings.edge.lenient_init = serve.lenient_init;
            stdio::serve(demo::server(serve.errors.into()), settings).await;
            Ok(())
        }
        Command::Serve(serve) => serve_http(serve).await,
    }
}

async fn serve_http(serve: Serve) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(&serve.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: is another program using it? Choose another with --listen",
            serve.listen
        )
    })?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() && serve.hosts.is_empty() {
        bail!(
            "{address} can be reached from other machines, so say under which host name with --allow-host \
             (there is no authentication yet: put something in front that has it)"
        );
    }
    let settings = http::Settings {
        hosts: serve.hosts,
        origins: serve.origins,
        http_sse: serve.http_sse,
        ..http::Settings::default().eras(serve.era.into())
    };
    greet(&format!("http://{address}{}", settings.path))?;
    Ok(http::serve_on(demo::server(serve.errors.into()), listener, settings).await?)
}

/// Says where the server is and how to connect a client.
fn greet(url: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        r#"Tidegate's demonstration server is at {url}

Connect a client:
  Claude Code      claude mcp add --transport http tidegate {url}
  mcpServers file  {{"mcpServers": {{"tidegate": {{"type": "http", "url": "{url}"}}}}}}
  Inspector        npx @modelcontextprotocol/inspector --cli {url} --method tools/list
  curl             curl -s {url} -H 'Content-Type: application/json' \
                     -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":1,"b":2}}}}}}'

Press Ctrl-C to stop."#
    )?;
    out.flush()
}
