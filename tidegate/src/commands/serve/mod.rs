//! `tidegate serve`: one endpoint in front of the configured servers.

mod ancestry;
mod back;
mod descriptors;
mod dial;
mod environment;
mod page;
mod place;
mod reload;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tidegate::Eras;
use tidegate::edge::{http, stdio};
use tidegate::protocol::Profile;
use tidegate_config::{Config, ListenSettings, ServerSettings, Settings, Source, Watcher};
use tidegate_gateway::Gateway;
use tidegate_service::budget::Budget;

use self::ancestry::Ancestry;
use self::back::Back;
use self::environment::Environment;
use super::exit::Exit;
use super::failure::Failure;
use super::output;

/// Serve the configured servers behind one endpoint.
///
/// The configuration is tidegate.toml here, else the user's own; without one the memory is served. Changes of the file
/// are picked up while running.
#[derive(Args)]
pub(crate) struct Serve {
    /// The configuration: a tidegate.toml, or any mcpServers file.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where to listen for Streamable HTTP. Default: what the configuration says, else PERCOLATE_API_HOST and
    /// PERCOLATE_API_PORT, else 127.0.0.1:8765.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "stdio")]
    listen: Option<String>,

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

    /// Serve the demonstration server, and no configuration.
    #[arg(long, conflicts_with = "config")]
    demo: bool,

    /// For the demonstration server: which numbers errors have, those of the specification or those that clients of an
    /// older server look for.
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

pub(crate) async fn run(serve: Serve) -> Result<Exit, Failure> {
    let environment = Environment::read(|name| std::env::var(name).ok()).map_err(Failure::usage)?;
    let file = if serve.demo { None } else { Config::find(serve.config.as_deref()) };
    let ancestry = Ancestry::with(file.as_deref())?;
    let watcher = file.as_ref().map(Watcher::start);
    let mut settings = match &file {
        Some(file) => load(file)?,
        None => unconfigured(if serve.demo { "demo" } else { "memory" }),
    };
    environment.apply(&mut settings);
    signals::watch(settings.drain);
    if let Some(bytes) = settings.listen.max_buffered {
        Budget::of_process().set_limit(bytes);
    }
    let back = Back::default();
    let dial = dial::with(serve.errors.into(), ancestry, back.clone());
    let gateway = Gateway::builder(settings.clone()).dial(dial).start()?;
    back.lead_to(Some(gateway.clone()));
    let reloading = file.clone().zip(watcher);
    let reloading = reloading
        .map(|(file, watcher)| tokio::spawn(reload::keep(gateway.clone(), file, watcher, environment)));
    let served = match serve.stdio {
        true => Ok(over_stdio(&serve, &gateway, &settings, file.is_some()).await),
        false => over_http(&serve, &gateway, &settings, file.is_some()).await,
    };
    if let Some(reloading) = reloading {
        reloading.abort();
    }
    back.lead_to(None);
    gateway.close().await;
    served
}

/// Reads a configuration.
fn load(file: &std::path::Path) -> Result<Settings, Failure> {
    let settings = Config::load(file, &|name| std::env::var(name).ok()).map_err(|error| {
        Failure::new(Exit::Usage, error).next("tidegate check shows the same without starting anything.")
    })?;
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    Ok(settings)
}

/// What is served without a configuration: a server of the program, whose tools keep their names.
fn unconfigured(builtin: &str) -> Settings {
    let mut settings = Settings::default();
    let mut server = ServerSettings::new(builtin, Source::Builtin(builtin.to_owned()));
    server.prefix = String::new();
    settings.servers.push(server.with_memory(&Arc::default()));
    settings
}

async fn over_stdio(serve: &Serve, gateway: &Gateway, settings: &Settings, configured: bool) -> Exit {
    // Without a file there is nothing to read again.
    let mut edge =
        stdio::Settings { drain: settings.drain, hangup_ends: !configured, ..stdio::Settings::default() };
    edge.edge.eras = serve.era.into();
    edge.edge.lenient_init = serve.lenient_init;
    edge.edge.limits.max_bytes = settings.listen.max_message;
    edge.edge.relays = true;
    let ended = stdio::serve(gateway.clone(), edge).await;
    tracing::info!(?ended, "shutting down");
    Exit::Fine
}

async fn over_http(
    serve: &Serve,
    gateway: &Gateway,
    settings: &Settings,
    configured: bool,
) -> Result<Exit, Failure> {
    descriptors::raise();
    let listen = settings.listen.clone();
    let ListenSettings { address, address_is_said, path, hosts, origins, http_sse, .. } = listen;
    let wanted = match &serve.listen {
        Some(wanted) => wanted.clone(),
        None if address_is_said => address,
        None => place::of_environment(&address, |name| std::env::var(name).ok()).map_err(Failure::usage)?,
    };
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Unavailable, format!("cannot listen on {wanted}: {error}"))
            .next("Is another program using it? Choose another with --listen.")
    };
    let listener = tokio::net::TcpListener::bind(&wanted).await.map_err(cannot)?;
    let address: SocketAddr = listener.local_addr().map_err(cannot)?;
    let mut edge = http::Settings {
        hosts: [hosts, serve.hosts.clone()].concat(),
        origins: [origins, serve.origins.clone()].concat(),
        http_sse: http_sse || serve.http_sse,
        path,
        drain: settings.drain,
        max_connections: listen.max_connections,
        connection_idle: listen.connection_idle,
        request_within: listen.request_within,
        ..http::Settings::default().eras(serve.era.into())
    };
    edge.edge.limits.max_bytes = listen.max_message;
    edge.edge.relays = true;
    let page = page::add(&mut edge, settings);
    if !address.ip().is_loopback() && edge.hosts.is_empty() {
        return Err(Failure::usage(format!(
            "{address} can be reached from other machines, so say under which host name with --allow-host"
        ))
        .next("There is no authentication yet: put something in front that has it."));
    }
    let page = page.map(|path| format!("http://{address}{path}"));
    greet(&format!("http://{address}{}", edge.path), page.as_deref(), settings, configured)?;
    let ending = {
        let gateway = gateway.clone();
        // Without a file there is nothing to read again.
        async move {
            let signal = if configured { stdio::ending_signals().await } else { stdio::signals().await };
            tracing::info!(signal, "shutting down");
            // Subscriptions end here; else they would keep their connections open.
            gateway.shut_down();
        }
    };
    http::serve(gateway.clone(), listener, edge, ending).await.map_err(cannot)?;
    Ok(Exit::Fine)
}

/// Says where the endpoint is, what is behind it and how to connect a client.
fn greet(url: &str, page: Option<&str>, settings: &Settings, configured: bool) -> Result<(), Failure> {
    let names: Vec<&str> = settings.servers.iter().map(|server| server.name.as_str()).collect();
    let (what, example) = match (configured, &names[..]) {
        (false, ["demo"]) => {
            ("Tidegate's demonstration server is".to_owned(), format!("\n  tidegate call {url} add a=1 b=2"))
        }
        (false, _) => (
            "A memory for your assistant is".to_owned(),
            format!("\n  tidegate call {url} search_nodes query=tea"),
        ),
        (true, []) => {
            ("No server is configured yet (tidegate add NAME …). The endpoint is".to_owned(), String::new())
        }
        (true, [only]) => (format!("{only} is"), String::new()),
        (true, [first @ .., last]) => (format!("{} and {last} are", first.join(", ")), String::new()),
    };
    let page = page.map(|page| format!("\nSee what is remembered at {page}")).unwrap_or_default();
    output::text(&format!(
        r#"{what} at {url}{page}

Try it:
  tidegate tools {url}{example}

Connect a client:
  Claude Code      claude mcp add --transport http tidegate {url}
  mcpServers file  {{"mcpServers": {{"tidegate": {{"type": "http", "url": "{url}"}}}}}}
  Inspector        npx @modelcontextprotocol/inspector --cli {url} --method tools/list
  curl             curl -s {url} -H 'Content-Type: application/json' \
                     -d '{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{}}}}'

Press Ctrl-C to stop."#
    ))
}
