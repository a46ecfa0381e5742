//! The page at `/`: what this is, what is mounted, and how to connect.

use std::fmt::Write;

use tidegate::edge::http::Page;
use tidegate_config::{DisabledCause, DisabledServer};
use tidegate_gateway::{Gateway, Health, ServerStatus};

use super::builtin_pages::PageLink;
use super::queues::Queues;
use crate::term::clean;

/// Where its style is. Pages may have no style of their own, so that nobody can smuggle one in.
const STYLE_PATH: &str = "/tidegate.css";

/// Who can see the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// Whoever is on this machine.
    Local,
    /// Others as well. They are told no more than callers are: where programs are and what they wrote is for the log.
    Remote,
    /// Whoever has a key or a token. What is mounted is not everybody's business: they ask for the tools that they may use.
    Authenticated,
}

/// The page and its style. `url` is where the endpoint is, `links` to the pages of servers that are served.
pub(super) fn pages(
    gateway: Gateway,
    url: String,
    audience: Audience,
    links: impl Fn() -> Vec<PageLink> + Send + Sync + 'static,
) -> [Page; 2] {
    let make = move || {
        // Tenants and users have names.
        let queues = (audience == Audience::Local).then(|| Queues::of(&gateway));
        page(&gateway.status(), &gateway.disabled(), &url, audience, queues.as_ref(), &links())
    };
    [
        Page::made("/", "text/html; charset=utf-8", make),
        Page::new(STYLE_PATH, "text/css; charset=utf-8", STYLE),
    ]
}

fn page(
    servers: &[ServerStatus],
    disabled: &[DisabledServer],
    url: &str,
    audience: Audience,
    queues: Option<&Queues>,
    links: &[PageLink],
) -> String {
    let url = escape(url);
    let is_starting =
        audience != Audience::Authenticated && servers.iter().any(|server| server.health == Health::Starting);
    // Writing to a string does not fail.
    let mut html = String::new();
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{}\
         <title>Tidegate</title>\n<link rel=\"stylesheet\" href=\"{STYLE_PATH}\">\n</head>\n<body>\n<main>\n\
         <h1>Tidegate <small>{}</small></h1>\n<p>One endpoint for all your MCP servers.</p>\n",
        if is_starting { "<meta http-equiv=\"refresh\" content=\"2\">\n" } else { "" },
        env!("CARGO_PKG_VERSION"),
    );
    let _ = write!(
        html,
        "<h2>Connect</h2>\n<dl>\n<dt>Endpoint (Streamable HTTP)</dt>\n<dd><code>{url}</code></dd>\n\
         <dt>Claude Code</dt>\n<dd><code>claude mcp add --transport http tidegate {url}</code></dd>\n\
         <dt>Other clients: an mcpServers entry</dt>\n\
         <dd><code>&quot;tidegate&quot;: {{ &quot;type&quot;: &quot;http&quot;, &quot;url&quot;: &quot;{url}&quot; }}</code></dd>\n\
         </dl>\n",
    );
    if audience == Audience::Authenticated {
        return html + "</main>\n</body>\n</html>\n";
    }
    html += "<h2>Servers</h2>\n";
    if servers.is_empty() && disabled.is_empty() {
        html += "<p>No servers yet. Add one with <code>tidegate add NAME URL</code> or <code>tidegate add NAME -- \
                 COMMAND</code>.</p>\n";
    } else {
        html += "<table>\n<thead><tr><th>Server</th><th>State</th><th>Tools</th></tr></thead>\n<tbody>\n";
        servers.iter().for_each(|server| html += &row(server, audience));
        disabled.iter().for_each(|server| html += &disabled_row(server, audience));
        html += "</tbody>\n</table>\n";
    }
    if let Some(queues) = queues {
        html += "<h2>Calls</h2>\n";
        html += &queues.html(escape);
    }
    for link in links {
        let _ = writeln!(html, "<p><a href=\"{}\">{}</a></p>", escape(link.path), escape(link.words));
    }
    html + "</main>\n</body>\n</html>\n"
}

fn row(server: &ServerStatus, audience: Audience) -> String {
    let state = match &server.health {
        Health::Starting => "starting".to_owned(),
        Health::Ready => "ready".to_owned(),
        Health::Resting => "stopped until it is called".to_owned(),
        Health::Down { why, told } => {
            let reason = if audience == Audience::Local { why } else { told };
            format!("not available<br><small>{}</small>", escape(reason))
        }
        _ => escape(server.health.as_str()),
    };
    format!(
        "<tr class=\"{}\"><td>{}</td><td>{state}</td><td>{}</td></tr>\n",
        escape(server.health.as_str()),
        escape(&server.name),
        server.tools
    )
}

fn disabled_row(server: &DisabledServer, audience: Audience) -> String {
    let reason = match (audience, server.cause) {
        (Audience::Local, _) | (_, DisabledCause::Off) => server.reason.clone(),
        _ => "its configuration is incomplete".to_owned(),
    };
    format!(
        "<tr class=\"disabled\"><td>{}</td><td>disabled<br><small>{}</small></td><td></td></tr>\n",
        escape(&server.name),
        escape(&reason),
    )
}

/// Text of others as part of a page: nothing in it is markup.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in clean::line(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2rem 1rem; }
h1 { margin: 0; }
h2 { margin: 2rem 0 0.5rem; font-size: 1.1rem; }
small { font-size: 0.8rem; font-weight: normal; opacity: 0.7; }
dt { margin-top: 0.75rem; opacity: 0.7; }
dd { margin: 0.25rem 0 0; }
code { display: inline-block; max-width: 100%; box-sizing: border-box; padding: 0.2rem 0.5rem; overflow-x: auto;
  border-radius: 0.3rem; background: color-mix(in srgb, currentColor 8%, transparent);
  font-family: ui-monospace, monospace; font-size: 0.9rem; white-space: nowrap; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.4rem 0.5rem; border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent);
  text-align: left; vertical-align: top; }
th { font-weight: normal; opacity: 0.7; }
th:last-child, td:last-child { text-align: right; }
td:first-child { font-weight: 600; }
.ready td:nth-child(2) { color: light-dark(#18794e, #4cc38a); }
.down td:nth-child(2) { color: light-dark(#cd2b31, #ff9592); }
";

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::queues::tests::busy;
    use super::*;
    use tidegate_service::layers::BreakerState;

    fn server(name: &str, health: Health, tools: usize) -> ServerStatus {
        let (since, listed) = (Instant::now(), [tools, 0, 0, 0]);
        let breaker = BreakerState::Closed;
        ServerStatus {
            name: name.to_owned(),
            health,
            since,
            revision: None,
            breaker,
            in_flight: 0,
            listed,
            tools,
            in_use: Default::default(),
        }
    }

    fn disabled() -> Vec<DisabledServer> {
        let text = "[servers.github]\nurl = \"https://example.com/${GITHUB_TOKEN}\"\n\
                    [servers.old]\ncommand = \"x\"\nenabled = false\n";
        tidegate_config::Config::parse(text, "tidegate.toml", &Default::default(), &|_| None)
            .unwrap()
            .disabled
    }

    #[test]
    fn it_shows_what_is_mounted_and_how_to_connect() {
        let down = Health::Down { why: "/srv/secret".to_owned(), told: "It cannot be <started>".to_owned() };
        let servers = [
            server("time", Health::Ready, 2),
            server("<script>alert('x')</script>", down, 0),
            server("files", Health::Resting, 11),
        ];
        let memory = PageLink { title: "Memory", words: "Browse the memory", path: "/memory" };
        let disabled = disabled();
        let html = page(&servers, &disabled, "http://127.0.0.1:8765/mcp", Audience::Remote, None, &[memory]);
        assert!(!html.contains("GITHUB_TOKEN"), "{html}");
        let here = page(&servers, &disabled, "u", Audience::Local, Some(&busy()), &[]);
        for part in [
            "/srv/secret",
            "the environment variable GITHUB_TOKEN is not set",
            "enabled = false",
            "3 calls running, 6 waiting",
            "tenant &lt;reef&gt;",
        ] {
            assert!(here.contains(part), "{part} is missing in {here}");
        }
        assert!(
            !html.contains("<script") && !html.contains("/srv/secret") && !html.contains("refresh"),
            "{html}"
        );
        let html = html.replace(env!("CARGO_PKG_VERSION"), "1.2.3");
        insta::with_settings!({
            snapshot_path => "../../../tests/snapshots",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!("front-page", html);
        });
    }

    #[test]
    fn those_with_keys_are_told_how_to_connect_and_nothing_else() {
        let servers = [server("time", Health::Ready, 2), server("files", Health::Starting, 0)];
        let html =
            page(&servers, &disabled(), "https://mcp.example.com/mcp", Audience::Authenticated, None, &[]);
        assert!(html.contains("https://mcp.example.com/mcp") && html.ends_with("</html>\n"), "{html}");
        for part in ["time", "files", "github", "<h2>Servers", "refresh"] {
            assert!(!html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn it_looks_again_while_a_server_starts() {
        let starting = [server("time", Health::Starting, 0)];
        let html = page(&starting, &[], "http://127.0.0.1:8765/mcp", Audience::Local, None, &[]);
        assert!(html.contains("http-equiv=\"refresh\"") && !html.contains("Browse the memory"), "{html}");
        assert!(page(&[], &[], "u", Audience::Local, None, &[]).contains("No servers yet"));
    }
}
