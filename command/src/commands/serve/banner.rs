//! The first lines on standard output: what is served, where, and how to connect to it.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;

use tidegate_config::Settings;

use crate::commands::failure::Failure;
use crate::commands::output;
use crate::term::clean;
use crate::term::style::Paint;

/// What there is to say.
pub(super) struct Banner<'a> {
    /// The URL of the endpoint.
    pub(super) url: &'a str,
    /// The URLs of the endpoints beside it.
    pub(super) endpoints: Vec<String>,
    /// What the pages of servers are called, and their URLs.
    pub(super) pages: Vec<(&'static str, String)>,
    /// The address that is listened on.
    pub(super) address: SocketAddr,
    pub(super) settings: &'a Settings,
    /// The configuration; `None` if there is none.
    pub(super) file: Option<&'a Path>,
    /// Whether the demonstration server is served, and no configuration.
    pub(super) demo: bool,
}

/// More names than this are only counted.
const NAMED: usize = 4;

impl Banner<'_> {
    /// Says it: as text on standard output or, if the log is JSON, as a line of the log.
    pub(super) fn show(&self) -> Result<(), Failure> {
        if tidegate::logging::is_json() {
            let file = self.file.map(|file| file.display().to_string());
            let servers = self.settings.servers.len();
            let pages = self.pages.iter().map(|(_, url)| url.as_str()).collect::<Vec<_>>().join(" ");
            let pages = (!pages.is_empty()).then_some(pages);
            let endpoints = (!self.endpoints.is_empty()).then(|| self.endpoints.join(" "));
            let callers = self.callers();
            let address = self.settings.listen.public_url.is_some().then(|| self.address.to_string());
            tracing::info!(
                endpoint = self.url,
                address,
                endpoints,
                pages,
                callers,
                config = file,
                servers,
                "Listening"
            );
            if let Some(warning) = self.warning() {
                tracing::warn!("{warning}");
            }
            return Ok(());
        }
        // Where records go, nothing else does.
        if self.settings.audit.as_ref().is_some_and(|audit| audit.stdout) {
            output::note(&self.text(Paint::stderr(), std::io::stderr().is_terminal()));
            return Ok(());
        }
        output::text(&self.text(Paint::stdout(), std::io::stdout().is_terminal()))
    }

    fn text(&self, paint: Paint, is_terminal: bool) -> String {
        let url = self.url;
        let mut lines = vec![
            format!("{} {} at {}", paint.bold(NAME), self.what(), paint.name(url)),
            String::new(),
            format!("  Connect   claude mcp add --transport http tidegate {url}{}", self.header()),
        ];
        if self.settings.listen.public_url.is_some() {
            lines.push(format!("  Address   {}", self.address));
        }
        let shown = self.endpoints.iter().take(NAMED);
        lines.extend(shown.map(|url| format!("  Endpoint  {url}")));
        if self.endpoints.len() > NAMED {
            lines.push(format!("            and {} more", self.endpoints.len() - NAMED));
        }
        lines.extend(self.callers().map(|callers| format!("  Callers   {callers}")));
        lines.extend(self.pages.iter().map(|(title, url)| format!("  {title:<9} {url}")));
        lines.push(format!("  Config    {}", self.config()));
        if is_terminal {
            lines.push("  Stop      Ctrl-C".to_owned());
        }
        lines.extend(
            self.warning().map(|warning| format!("\n{}", paint.warning(format!("WARNING: {warning}")))),
        );
        lines.push(String::new());
        lines.join("\n") + "\n"
    }

    /// What is behind the endpoint.
    fn what(&self) -> String {
        let names: Vec<String> =
            self.settings.servers.iter().map(|server| clean::line(&server.name)).collect();
        match &names[..] {
            _ if self.demo => "is serving the demo server".to_owned(),
            _ if self.file.is_none() => "is serving the memory".to_owned(),
            [] => "has no servers yet, and is listening".to_owned(),
            [only] => format!("is serving {only}"),
            [first @ .., last] if names.len() <= NAMED => {
                format!("is serving {} and {last}", first.join(", "))
            }
            _ => format!("is serving {} servers", names.len()),
        }
    }

    /// Who may call, where somebody is asked.
    fn callers(&self) -> Option<String> {
        let auth = self.settings.auth.as_ref()?;
        let keys =
            auth.keys.iter().map(|file| format!("API keys of {}", clean::line(&file.display().to_string())));
        let issuers = auth.jwt.iter().map(|jwt| &jwt.issuer);
        let mut issuers: Vec<String> = issuers
            .chain(auth.introspection.iter().map(|asked| &asked.issuer))
            .map(|issuer| clean::line(issuer))
            .collect();
        issuers.dedup();
        let tokens = issuers.into_iter().map(|issuer| format!("access tokens of {issuer}"));
        Some(keys.chain(tokens).collect::<Vec<_>>().join(", "))
    }

    /// What has to be added to a command line that knows no other way to get in.
    fn header(&self) -> &'static str {
        match &self.settings.auth {
            Some(auth) if auth.jwt.is_empty() && auth.introspection.is_empty() => {
                " --header \"Authorization: Bearer $KEY\""
            }
            _ => "",
        }
    }

    fn config(&self) -> String {
        match self.file {
            Some(file) => {
                format!("{} (changes apply while running)", clean::line(&file.display().to_string()))
            }
            None if self.demo => "none (--demo)".to_owned(),
            None => "none yet; add a server while this is running: tidegate add NAME URL, or\n            \
                     tidegate add NAME -- COMMAND"
                .to_owned(),
        }
    }

    fn warning(&self) -> Option<String> {
        match self.address.ip().to_canonical().is_loopback() {
            true => None,
            false => exposure_warning(&self.address.to_string(), self.settings),
        }
    }
}

/// What others can do or read at an address beyond this machine, if they can.
pub(in crate::commands) fn exposure_warning(address: &str, settings: &Settings) -> Option<String> {
    let listen = &settings.listen;
    let is_encrypted = listen.tls.is_some() || (!listen.trusted_proxies.is_empty() && !listen.insecure);
    match &settings.auth {
        None => Some(format!(
            "listening on {address} without authentication: anyone who can reach this port can call every tool \
             and read everything that the servers can."
        )),
        Some(_) if !is_encrypted => Some(format!(
            "listening on {address} without encryption: anyone on the way can read and use the keys and tokens of \
             callers."
        )),
        Some(_) => None,
    }
}

const NAME: &str = concat!("Tidegate ", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_builtin::Builtins;
    use tidegate_config::Config;

    fn banner(servers: &[&str], address: &str, file: Option<&str>, demo: bool) -> String {
        banner_with("", servers, address, file, demo)
    }

    fn banner_with(top: &str, servers: &[&str], address: &str, file: Option<&str>, demo: bool) -> String {
        let servers: String =
            servers.iter().map(|name| format!("[servers.{name}]\nurl = \"http://localhost/\"\n")).collect();
        let settings =
            Config::parse(&format!("{top}{servers}"), "tidegate.toml", &Builtins::default(), &|_| None)
                .unwrap();
        let banner = Banner {
            url: "http://127.0.0.1:8765/mcp",
            endpoints: settings
                .endpoints
                .iter()
                .map(|endpoint| format!("http://127.0.0.1:8765{}", endpoint.path))
                .collect(),
            pages: file
                .is_none()
                .then(|| ("Memory", "http://127.0.0.1:8765/memory".to_owned()))
                .into_iter()
                .collect(),
            address: address.parse().unwrap(),
            settings: &settings,
            file: file.map(Path::new),
            demo,
        };
        banner.text(Paint::plain(), true).replace(env!("CARGO_PKG_VERSION"), "1.2.3")
    }

    #[test]
    fn it_says_what_where_and_how() {
        let file = Some("/home/ada/.config/tidegate/tidegate.toml");
        let all = [
            banner(&["memory"], "127.0.0.1:8765", None, false),
            banner(&["time", "github", "files"], "127.0.0.1:8765", file, false),
            banner(&["a", "b", "c", "d", "e"], "0.0.0.0:8765", file, false),
            banner(&[], "127.0.0.1:8765", file, false),
            banner_with(
                "[auth]\nkeys = \"/srv/keys.toml\"\n[endpoints.research]\n[endpoints.ops]\n",
                &["time"],
                "0.0.0.0:8765",
                file,
                false,
            ),
            banner_with(
                "public_url = \"https://mcp.example.com\"\ntrusted_proxies = [\"10.0.0.7\"]\n[auth]\nkeys = \"/srv/keys.toml\"\n[[auth.jwt]]\nissuer = \"https://id.example.com\"\n",
                &["time"],
                "0.0.0.0:8765",
                file,
                false,
            ),
        ];
        insta::with_settings!({
            snapshot_path => "../../../tests/snapshots",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!("serve-banners", all.join("---\n"));
        });
    }
}
