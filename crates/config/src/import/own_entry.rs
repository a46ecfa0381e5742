//! Recognizing Tidegate among the servers of other programs: who uses it has it there, and a gateway behind itself would
//! call itself without end.

use tidegate_client::{Description, Remote, Target};

use crate::edit::OpenFile;
use crate::settings::ListenSettings;

/// What Tidegate is called as a program and as a package.
const NAME: &str = "tidegate";
/// The package that the command is built from.
const PACKAGE: &str = "tidegate-command";

/// How the gateway of a configuration is reached.
pub(super) struct OwnEntries {
    ports: Vec<u16>,
}

impl OwnEntries {
    /// The gateway of this configuration, or one with the default port.
    pub(super) fn of(config: &OpenFile) -> OwnEntries {
        let usual = ListenSettings::default().address;
        let port = |address: &str| address.rsplit(':').next().and_then(|port| port.parse().ok());
        OwnEntries {
            ports: config
                .listen()
                .iter()
                .map(String::as_str)
                .chain([usual.as_str()])
                .filter_map(port)
                .collect(),
        }
    }

    /// Whether this server is Tidegate.
    pub(super) fn contains(&self, server: &Description) -> bool {
        match (&server.program, &server.url) {
            (_, Some(url)) => self.is_endpoint(url),
            (Some(program), None) => {
                let launched = Target::command(program, &server.args).name();
                let launched = launched.rsplit('/').next().unwrap_or_default();
                // Bridges such as mcp-remote are given the address.
                launched.eq_ignore_ascii_case(NAME)
                    || is_cargo_run(program, &server.args)
                    || server.args.iter().any(|arg| self.is_endpoint(arg))
            }
            (None, None) => false,
        }
    }

    fn is_endpoint(&self, url: &str) -> bool {
        let Ok(Remote { url, .. }) = Remote::parse(url) else { return false };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let is_loopback = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback() || address.is_unspecified());
        is_loopback && url.port_or_known_default().is_some_and(|port| self.ports.contains(&port))
    }
}

/// `cargo run -p tidegate-command`, `cargo run --manifest-path …/tidegate/Cargo.toml`.
fn is_cargo_run(program: &str, args: &[String]) -> bool {
    let is_cargo =
        program.rsplit(['/', '\\']).next().is_some_and(|name| name.trim_end_matches(".exe") == "cargo");
    let names = |arg: &String| arg.split(['/', '\\', '=']).any(|part| part == NAME || part == PACKAGE);
    let ours = args.iter().take_while(|arg| *arg != "--");
    is_cargo && args.first().is_some_and(|verb| verb == "run" || verb == "r") && ours.into_iter().any(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_client::ServersFile;

    #[test]
    fn tidegate_is_recognized_however_it_is_started() {
        let own = OwnEntries { ports: vec![9000, 8765] };
        for (server, is_own) in [
            (r#"{"command": "tidegate", "args": ["serve", "--stdio"]}"#, true),
            (r#"{"command": "/opt/bin/tidegate"}"#, true),
            (r#"{"command": "tidegate.exe"}"#, true),
            (r#"{"command": "npx", "args": ["-y", "tidegate@latest", "serve"]}"#, true),
            (r#"{"command": "docker", "args": ["run", "-i", "ghcr.io/tidegate/tidegate:1"]}"#, true),
            (r#"{"command": "cargo", "args": ["run", "-p", "tidegate", "--", "serve"]}"#, true),
            (r#"{"command": "cargo", "args": ["run", "-p", "tidegate-command", "--", "serve"]}"#, true),
            (r#"{"command": "npx", "args": ["mcp-remote", "http://127.0.0.1:8765/mcp"]}"#, true),
            (r#"{"url": "http://127.0.0.1:8765/mcp"}"#, true),
            (r#"{"url": "http://localhost:9000/mcp"}"#, true),
            (r#"{"url": "http://[::1]:8765/mcp"}"#, true),
            (r#"{"url": "http://127.0.0.1:8766/mcp"}"#, false),
            (r#"{"url": "https://example.com:8765/mcp"}"#, false),
            (r#"{"url": "${URL}"}"#, false),
            (r#"{"command": "tidegate-like"}"#, false),
            (r#"{"command": "npx", "args": ["other", "tidegate"]}"#, false),
            (r#"{"command": "cargo", "args": ["run", "-p", "other", "--", "tidegate"]}"#, false),
        ] {
            let file =
                ServersFile::parse(&format!("{{\"mcpServers\": {{\"x\": {server}}}}}"), "a.json").unwrap();
            assert_eq!(own.contains(&file.describe("x").unwrap()), is_own, "{server}");
        }
    }
}
