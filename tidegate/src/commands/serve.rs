//! `tidegate serve`: the demonstration server.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use tidegate::protocol::Profile;
use tidegate::{Eras, demo, http, stdio};

use super::exit::Exit;
use super::failure::Failure;
use super::output;

/// Serve the demonstration server.
#[derive(Args)]
pub(crate) struct Serve {
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

pub(crate) async fn run(serve: Serve) -> Result<(), Failure> {
    if !serve.stdio {
        return over_http(serve).await;
    }
    let mut settings = stdio::Settings::default();
    settings.edge.eras = serve.era.into();
    settings.edge.lenient_init = serve.lenient_init;
    stdio::serve(demo::server(serve.errors.into()), settings).await;
    Ok(())
}

async fn over_http(serve: Serve) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Unavailable, format!("cannot listen on {}: {error}", serve.listen))
            .next("Is another program using it? Choose another with --listen.")
    };
    let listener = tokio::net::TcpListener::bind(&serve.listen).await.map_err(cannot)?;
    let address: SocketAddr = listener.local_addr().map_err(cannot)?;
    if !address.ip().is_loopback() && serve.hosts.is_empty() {
        return Err(Failure::usage(format!(
            "{address} can be reached from other machines, so say under which host name with --allow-host"
        ))
        .next("There is no authentication yet: put something in front that has it."));
    }
    let settings = http::Settings {
        hosts: serve.hosts.clone(),
        origins: serve.origins.clone(),
        http_sse: serve.http_sse,
        ..http::Settings::default().eras(serve.era.into())
    };
    greet(&format!("http://{address}{}", settings.path))?;
    http::serve_on(demo::server(serve.errors.into()), listener, settings).await.map_err(cannot)
}

/// Says where the server is and how to connect a client.
fn greet(url: &str) -> Result<(), Failure> {
    output::text(&format!(
        r#"Tidegate's demonstration server is at {url}

Try it:
  tidegate tools {url}
  tidegate call {url} add a=1 b=2

Connect a client:
  Claude Code      claude mcp add --transport http tidegate {url}
  mcpServers file  {{"mcpServers": {{"tidegate": {{"type": "http", "url": "{url}"}}}}}}
  Inspector        npx @modelcontextprotocol/inspector --cli {url} --method tools/list
  curl             curl -s {url} -H 'Content-Type: application/json' \
                     -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":1,"b":2}}}}}}'

Press Ctrl-C to stop."#
    ))
}
