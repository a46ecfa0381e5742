//! An identity provider that is not ours, our gateway behind it, and people who log in.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::paths;
use crate::server::{Program, Serving};

/// How long a program or an answer may take: it tells slow from stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// `oidc-provider`, and a gateway that trusts it.
pub(crate) struct Rig {
    provider: Serving,
    pub(crate) gateway: Gateway,
}

impl Rig {
    /// Starts both. `name` is that of the test.
    pub(crate) async fn start(name: &str) -> Rig {
        let provider = tokio::task::block_in_place(|| Serving::start(&node("provider.mjs")));
        let issuer = origin(&provider);
        let introspection = format!("{issuer}/token/introspection");
        let dir = paths::scratch(&format!("identity/{name}"));
        // No difference between clocks is allowed for, so that a token that has expired is one that is refused.
        let text = format!(
            r#"
            state_dir = {state}
            [servers.demo]
            builtin = "demo"
            [auth]
            scopes = ["mcp"]
            [auth.tool_scopes]
            "files:write" = ["demo_add"]
            [[auth.jwt]]
            issuer = {issuer}
            tenant = "org"
            roles = "roles"
            clock_skew = "0s"
            [[auth.introspection]]
            issuer = {issuer}
            url = {introspection}
            client_id = "tidegate"
            client_secret = "the secret of the gateway"
            tenant = "org"
            roles = "roles"
            [endpoints.brief]
            [endpoints.opaque]
            "#,
            state = json!(dir.join("state")),
            issuer = json!(issuer),
            introspection = json!(introspection),
        );
        let file = dir.join("tidegate.toml");
        write_privately(&file, &text);
        Rig { provider, gateway: Gateway::start(&file).await }
    }

    /// The issuer.
    pub(crate) fn issuer(&self) -> String {
        origin(&self.provider)
    }

    /// The address of an endpoint; "" is the usual one.
    pub(crate) fn url(&self, endpoint: &str) -> String {
        match endpoint {
            "" => self.gateway.url.clone(),
            _ => self.gateway.url.replace("/mcp", &format!("/{endpoint}/mcp")),
        }
    }

    /// How many tokens the provider has given out for such a grant at this address.
    pub(crate) fn granted(&self, grant: &str, url: &str) -> usize {
        let all = request("GET", &format!("{}/granted", self.issuer()), &[], "").json();
        let mine = |one: &&Value| one["grant"] == grant && one["resource"] == url;
        all.as_array().expect("a list").iter().filter(mine).count()
    }

    /// Takes a token back, at the provider.
    pub(crate) fn revoke(&self, login: &Login, token: &str) {
        let form = format!("token={token}&client_id={}", login.client_id);
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let url = format!("{}/token/revocation", self.issuer());
        assert_eq!(request("POST", &url, &headers, &form).status, 200);
    }
}

fn origin(provider: &Serving) -> String {
    provider.target("").url.as_str().trim_end_matches('/').to_owned()
}

/// A secret is in it, which nobody else may read.
fn write_privately(file: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, text).expect("a writable target directory");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("its mode");
}

/// A script of the identity provider.
fn node(script: &str) -> Program {
    Program::new(paths::node(), &[&paths::identity(script)])
        .env("TIDEGATE_NODE_MODULES", paths::npm().display().to_string())
}

/// Somebody with a home directory, where logins are kept.
pub(crate) struct Person {
    name: &'static str,
    home: PathBuf,
}

/// What a login gave.
pub(crate) struct Login {
    pub(crate) scopes: String,
    pub(crate) access_token: String,
    pub(crate) refresh_token: String,
    client_id: String,
}

impl Person {
    /// `test` is the name of the test.
    pub(crate) fn new(name: &'static str, test: &str) -> Person {
        Person { name, home: paths::scratch(&format!("identity/{test}/home-{name}")) }
    }

    fn tidegate(&self, args: &[&str]) -> Command {
        let mut command = Command::new(paths::tidegate());
        command.args(args).current_dir(&self.home).env("HOME", &self.home).stdin(Stdio::null());
        for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command of ours.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        Done::from(self.tidegate(args).output().expect("tidegate starts"))
    }

    /// Calls a tool.
    pub(crate) fn call(&self, url: &str, tool: &str, args: &[&str]) -> Done {
        self.run(&[&["call", url, tool], args].concat())
    }

    /// Logs in with a browser that agrees to everything.
    pub(crate) fn login(&self, url: &str, args: &[&str]) -> Login {
        let mut command = self.tidegate(&["login", url, "--no-browser", "--json"]);
        let child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("tidegate starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let page = said.find(|line| line.starts_with("http")).expect("the address of the login page");
        let Program { program, args, env } = node("browse.mjs");
        let browser = Command::new(program).args(args).args([&page, self.name]).envs(env).output();
        let browser = browser.expect("Node.js starts");
        assert!(browser.status.success(), "{}", String::from_utf8_lossy(&browser.stderr));
        // Whatever else it says is read, so that it can end.
        let rest: Vec<String> = said.collect();
        let done = Done::from(child.wait_with_output().expect("it ends"));
        assert_eq!(done.code, 0, "{done:?} {rest:?}");
        let report: Value = serde_json::from_str(&done.out).expect("JSON");
        let kept = std::fs::read_to_string(report["place"].as_str().expect("a place")).expect("a file");
        let kept: Value = serde_json::from_str(&kept).expect("JSON");
        let of = |place: &str| kept.pointer(place).and_then(Value::as_str).expect(place).to_owned();
        Login {
            scopes: report["scopes"].as_str().unwrap_or_default().to_owned(),
            access_token: of("/tokens/access"),
            refresh_token: of("/tokens/refresh"),
            client_id: of("/registration/client_id"),
        }
    }
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Done {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The value of a header, or "".
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.trim()).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One request on a connection of its own, in HTTP/1.0, so that the answer is plain.
pub(crate) fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let rest = url.strip_prefix("http://").expect("an address of this machine");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let mut head = format!("{method} /{path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it reads");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("it answers");
    let (head, body) = all.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// Lists the tools with this token.
pub(crate) fn list_tools(url: &str, token: Option<&str>) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "identity", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let authorization = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    headers.extend(authorization.as_deref().map(|value| ("Authorization", value)));
    request("POST", url, &headers, &body.to_string())
}
