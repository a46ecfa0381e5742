//! `tidegate login` and `tidegate logout`: tokens for servers that require them, kept for all other commands.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate_client::oauth::{self, Client, LoginReport, LoopbackBrowser, Scopes};

use super::failure::Failure;
use super::interrupt::Interrupt;
use super::{output, resolve};
use crate::term::clean;
use crate::term::style::Paint;

/// Log in to a server with the browser.
///
/// All other commands then use the login, and so does the gateway.
#[derive(Args)]
#[command(after_help = super::exit::HELP)]
pub(crate) struct Login {
    /// The URL of the server, or the name of a configured server that has one.
    #[arg(value_name = "URL")]
    url: String,

    /// A tidegate.toml or mcpServers file; URL is then the name of a server in it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// An additional scope to request. Can be repeated.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,

    /// The client id, if the authorization server requires registration.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,

    /// The client secret; safer in the environment variable, where other users cannot see it.
    #[arg(
        long,
        env = "TIDEGATE_CLIENT_SECRET",
        value_name = "SECRET",
        requires = "client_id",
        hide_env_values = true
    )]
    client_secret: Option<String>,

    /// The local port for the redirect from the browser. [default: any free port]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Print the URL of the login page instead of opening a browser.
    #[arg(long)]
    no_browser: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Delete the login to a server.
#[derive(Args)]
#[command(after_help = super::exit::HELP)]
pub(crate) struct Logout {
    /// The URL of the server, or the name of a configured server that has one.
    #[arg(value_name = "URL")]
    url: String,

    /// A tidegate.toml or mcpServers file; URL is then the name of a server in it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn login(login: Login) -> Result<(), Failure> {
    let url = resolve::url(&login.url, login.config.as_deref())?;
    let scopes = Scopes::parse(&login.scopes.join(" "));
    let mut browser = LoopbackBrowser::new();
    if let Some(port) = login.port {
        browser = browser.with_port(port);
    }
    if login.no_browser {
        browser = browser.with_opener(|_| false);
    }
    let client = login.client_id.map(|id| match login.client_secret {
        Some(secret) => Client::with_secret(id, secret),
        None => Client::public(id),
    });
    let interrupt = Interrupt::listen();
    let report = interrupt
        .or(async {
            let logging_in = oauth::login(&url, |builder| {
                let builder = builder.browser(browser).scopes(scopes);
                match client {
                    Some(client) => builder.client(client),
                    None => builder,
                }
            });
            logging_in.await.map_err(|error| Failure::of(&error))
        })
        .await?;
    if login.json { output::text(&to_json(&report).to_string()) } else { output::text(&shown(&report)) }
}

fn to_json(report: &LoginReport) -> serde_json::Value {
    let seconds =
        |at: std::time::SystemTime| at.duration_since(std::time::UNIX_EPOCH).map(|d| d.as_secs()).ok();
    json!({
        "server": report.server,
        "issuer": report.issuer,
        "scopes": report.scopes.to_string(),
        "expiresAt": report.expires_at.and_then(seconds),
        "renewable": report.renewable,
        "place": report.place,
    })
}

fn shown(report: &LoginReport) -> String {
    let paint = Paint::stdout();
    let mut lines = vec![format!(
        "{} to {} at {}.",
        paint.good("Logged in"),
        clean::line(&report.server),
        clean::line(&report.issuer)
    )];
    let scopes = clean::line(&report.scopes.to_string());
    if !scopes.is_empty() {
        lines.push(format!("Scopes: {scopes}"));
    }
    lines.push(match (report.renewable, report.expires_at) {
        (true, _) => "It is renewed automatically.".to_owned(),
        (false, Some(at)) => {
            let left = at.duration_since(std::time::SystemTime::now()).unwrap_or_default().as_secs();
            format!("It is valid for {}.", humantime::format_duration(std::time::Duration::from_secs(left)))
        }
        (false, None) => "The server does not say how long it is valid.".to_owned(),
    });
    lines.push(paint.dim(format!("Stored in {}", report.place)));
    lines.join("\n")
}

pub(crate) async fn logout(logout: Logout) -> Result<(), Failure> {
    let url = resolve::url(&logout.url, logout.config.as_deref())?;
    let removed = oauth::logout(&url).await.map_err(|error| Failure::of(&error))?;
    if logout.json {
        return output::text(&json!({ "removed": removed }).to_string());
    }
    output::text(if removed == 0 { "You were not logged in." } else { "Logged out." })
}
