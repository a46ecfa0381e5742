//! The program with `[auth]`, and who calls it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{self, Answer, Headers, Stream, until};
use crate::issuer::Issuer;

/// The issuer that knows Ann, Bob and Cid.
pub(crate) const REEF_ID: &str = "https://id.reef.example";
/// The one that knows another Ann.
pub(crate) const OTHER_ID: &str = "https://id.other.example";

/// A person, as an issuer knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    /// What the tests call them.
    pub(crate) name: &'static str,
    issuer: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) tenant: &'static str,
}

pub(crate) const ANN: User = User { name: "Ann", issuer: REEF_ID, subject: "ann", tenant: "reef" };
pub(crate) const BOB: User = User { name: "Bob", issuer: REEF_ID, subject: "bob", tenant: "reef" };
pub(crate) const CID: User = User { name: "Cid", issuer: REEF_ID, subject: "cid", tenant: "tide" };
/// The same name in the same tenant, said by somebody else.
pub(crate) const NAMESAKE: User =
    User { name: "the other Ann", issuer: OTHER_ID, subject: "ann", tenant: "reef" };
/// The same name from the same issuer, in another tenant.
pub(crate) const MOVED: User =
    User { name: "Ann of another tenant", issuer: REEF_ID, subject: "ann", tenant: "tide" };

/// A running program, in a directory of its own. Killed and removed at the end.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
    pub(crate) issuers: Vec<Issuer>,
}

/// The servers of every configuration.
pub(crate) const SERVERS: &str = r#"
[servers.demo]
builtin = "demo"
[servers.memory]
builtin = "memory"
prefix = ""
"#;

/// What every configuration has: both issuers with their keys in files, and a file of API keys.
pub(crate) const AUTH: &str = r#"
[auth]
keys = "keys.toml"
scopes = ["mcp"]
[auth.tool_scopes]
"files:write" = ["demo_add"]
[auth.scope_includes]
"files:admin" = ["files:write", "files:read"]
[[auth.jwt]]
issuer = "https://id.reef.example"
jwks = "reef.json"
tenant = "org"
roles = "roles"
[[auth.jwt]]
issuer = "https://id.other.example"
jwks = "other.json"
tenant = "org"
"#;

impl Gateway {
    /// Serves the demonstration and the memory, and whatever else is written.
    pub(crate) fn start(more: &str) -> Gateway {
        Gateway::start_exactly(&format!("{more}\n{SERVERS}{AUTH}"))
    }

    /// Serves this configuration. Beside it are the files of both issuers, and one with API keys, which is empty.
    pub(crate) fn start_exactly(config: &str) -> Gateway {
        Gateway::try_start(config).unwrap_or_else(|(status, log)| panic!("it ended with {status}: {log}"))
    }

    /// The same, where it may refuse to start: the exit code and what it said.
    pub(crate) fn try_start(config: &str) -> Result<Gateway, (i32, String)> {
        Gateway::try_start_in(Gateway::folder(config), vec![])
    }

    /// A directory with a configuration and what belongs to it.
    pub(crate) fn folder(config: &str) -> (TempDir, Vec<Issuer>) {
        let folder = tempfile::tempdir().unwrap();
        let issuers = vec![Issuer::new(REEF_ID, "reef-1"), Issuer::new(OTHER_ID, "other-1")];
        write(folder.path(), "reef.json", &issuers[0].jwks().to_string());
        write(folder.path(), "other.json", &issuers[1].jwks().to_string());
        write(folder.path(), "keys.toml", "");
        write(folder.path(), "tidegate.toml", &format!("state_dir = \"state\"\n{config}"));
        (folder, issuers)
    }

    /// Starts the program in a directory that was prepared.
    pub(crate) fn try_start_in(
        (folder, issuers): (TempDir, Vec<Issuer>),
        arguments: Vec<&str>,
    ) -> Result<Gateway, (i32, String)> {
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let mut command = command(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        let mut gateway = Gateway { child, address: ([127, 0, 0, 1], 0).into(), folder, issuers };
        let (mut found, mut ended) = (None, None);
        until("it says where it is", || {
            let out = std::fs::read_to_string(gateway.folder.path().join("out")).unwrap_or_default();
            found = said_address(&out);
            ended = gateway.child.try_wait().unwrap();
            found.is_some() || ended.is_some()
        });
        if let Some(status) = ended {
            return Err((status.code().unwrap_or(-1), gateway.log()));
        }
        gateway.address = found.unwrap();
        // Until then a call may be told that its server is still starting.
        let ready = [" servers ready: ", " server ready: ", " is not ready"];
        until("its servers are ready", || ready.iter().any(|ready| gateway.log().contains(ready)));
        Ok(gateway)
    }

    /// The URL of an endpoint; "" is the usual one.
    pub(crate) fn url(&self, endpoint: &str) -> String {
        format!("http://{}{}", self.address, path_of(endpoint))
    }

    /// A person with a new token for the usual endpoint.
    pub(crate) fn as_user(&self, user: User) -> Caller {
        self.at_endpoint("", user)
    }

    /// A person with a new token for this endpoint, who calls there.
    pub(crate) fn at_endpoint(&self, endpoint: &str, user: User) -> Caller {
        self.with_token(&self.token(endpoint, user, |_| {})).at(&path_of(endpoint))
    }

    /// A token of a person for this endpoint, with something changed about its claims.
    pub(crate) fn token(&self, endpoint: &str, user: User, change: impl FnOnce(&mut Value)) -> String {
        let issuer = self.issuers.iter().find(|issuer| issuer.name == user.issuer).unwrap();
        let mut claims = issuer.claims(user.subject, &self.url(endpoint));
        claims["org"] = user.tenant.into();
        change(&mut claims);
        issuer.sign(&issuer.header(), &claims)
    }

    /// Whoever has this token or key.
    pub(crate) fn with_token(&self, token: &str) -> Caller {
        Caller { authorization: Some(format!("Bearer {token}")), ..self.nobody() }
    }

    /// Somebody without credentials.
    pub(crate) fn nobody(&self) -> Caller {
        Caller { address: self.address, authorization: None, path: path_of("") }
    }

    /// Makes an API key: `tidegate keys add …`.
    pub(crate) fn add_key(&self, arguments: &[&str]) -> String {
        let done = self.keys(&[&["add"], arguments].concat());
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }

    /// `tidegate keys …`.
    pub(crate) fn keys(&self, arguments: &[&str]) -> Output {
        command(self.folder.path()).arg("keys").args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.path().join("err")).unwrap_or_default())
            .into_owned()
    }

    /// Writes a file of its directory anew, as editors do.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let beside = format!("{name}.new");
        write(self.folder.path(), &beside, text);
        std::fs::rename(self.folder.path().join(beside), self.folder.path().join(name)).unwrap();
    }

    /// Waits until this is in the log.
    #[track_caller]
    pub(crate) fn logs(&self, text: &str) {
        until(&format!("{text:?} is logged"), || self.log().contains(text));
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in what the program says at its start: that of the endpoint, unless a `public_url` stands for it.
fn said_address(out: &str) -> Option<SocketAddr> {
    let line = out.lines().find_map(|line| line.trim().strip_prefix("Address "));
    let url = out.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
    line.or(url)?.trim().parse().ok()
}

/// Where an endpoint is.
pub(crate) fn path_of(endpoint: &str) -> String {
    if endpoint.is_empty() { "/mcp".to_owned() } else { format!("/{endpoint}/mcp") }
}

/// A command line of the program in an empty environment.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.env_clear().env("HOME", folder).current_dir(folder);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Writes a file that nobody else may read.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Somebody who calls.
#[derive(Clone)]
pub(crate) struct Caller {
    address: SocketAddr,
    authorization: Option<String>,
    path: String,
}

impl Caller {
    /// The same, who calls at this path.
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    /// A request to this path, and its whole answer.
    pub(crate) fn send(&self, method: &str, path: &str, headers: Headers<'_>, body: &str) -> Answer {
        let mut stream = self.open(method, path, headers, body);
        stream.read_to_end();
        stream.answer()
    }

    /// A request whose answer may not end.
    pub(crate) fn open(&self, method: &str, path: &str, headers: Headers<'_>, body: &str) -> Stream {
        let own = self.authorization.as_deref().map(|value| ("Authorization", value));
        let headers: Vec<_> = own.into_iter().chain(headers.iter().copied()).collect();
        Stream::open(self.address, method, path, &headers, body)
    }

    /// A request of 2026-07-28.
    pub(crate) fn modern(&self, method: &str, params: Value) -> Answer {
        let mut stream = self.open_modern(method, params);
        stream.read_to_end();
        stream.answer()
    }

    /// The same, whose answer may not end.
    pub(crate) fn open_modern(&self, method: &str, mut params: Value) -> Stream {
        let about = ["name", "uri", "taskId"].iter().find_map(|member| params[*member].as_str());
        let about = about.filter(|_| method.contains('/')).map(str::to_owned);
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "tests", "version": "1"});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({
            "elicitation": {"form": {}}, "sampling": {"tools": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(about.as_deref().map(|name| ("Mcp-Name", name)));
        self.open("POST", &self.path, &headers, &body)
    }

    /// Calls a tool, as a client of 2026-07-28.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.modern("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The handshake of 2025-11-25.
    pub(crate) fn initialize(&self) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}, "tasks": {"list": {}, "cancel": {}}},
            "clientInfo": {"name": "tests", "version": "1"}}});
        self.send("POST", &self.path, &[], &body.to_string())
    }

    /// Opens a session of 2025-11-25, and gives its id.
    #[track_caller]
    pub(crate) fn session(&self) -> String {
        let answer = self.initialize();
        let session = answer.header("mcp-session-id").to_owned();
        assert!(!session.is_empty(), "{answer:?}");
        let told = self.in_session(&session, "notifications/initialized", Value::Null);
        assert_eq!(told.status, 202, "{told:?}");
        session
    }

    /// A message in a session.
    pub(crate) fn in_session(&self, session: &str, method: &str, params: Value) -> Answer {
        let mut stream = self.open_in_session(session, method, params);
        stream.read_to_end();
        stream.answer()
    }

    /// The same, whose answer may not end.
    pub(crate) fn open_in_session(&self, session: &str, method: &str, params: Value) -> Stream {
        let mut body = json!({"jsonrpc": "2.0", "method": method});
        if !method.starts_with("notifications/") {
            body["id"] = 2.into();
        }
        if !params.is_null() {
            body["params"] = params;
        }
        self.open("POST", &self.path, &session_headers(session), &body.to_string())
    }

    /// The stream of a session.
    pub(crate) fn stream(&self, session: &str, headers: Headers<'_>) -> Stream {
        let own = session_headers(session);
        let accept = [("Accept", "text/event-stream")];
        self.open("GET", &self.path, &[&own[..], &accept, headers].concat(), "")
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &str) -> Answer {
        self.send("DELETE", &self.path, &session_headers(session), "")
    }
}

fn session_headers(session: &str) -> [(&str, &str); 2] {
    [("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")]
}

/// A request that nobody signed.
pub(crate) fn request(
    gateway: &Gateway,
    method: &str,
    path: &str,
    headers: Headers<'_>,
    body: &str,
) -> Answer {
    http::request(gateway.address, method, path, headers, body)
}
