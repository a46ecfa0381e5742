//! `tidegate serve` for those who have a key: who gets in, what ends when a key does, endpoints, and HTTPS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::rig::{Folder, PATIENCE, command, tidegate_in, until};
use crate::serve::Served;

const CONFIG: &str =
    "listen = 0\nstate_dir = \"state\"\n[auth]\nkeys = \"keys.toml\"\n[servers.demo]\nbuiltin = \"demo\"\n";

/// A folder with this configuration and keys of these people, and the keys.
fn with_keys<const N: usize>(config: &str, people: [&[&str]; N]) -> (Folder, [String; N]) {
    let folder = Folder::new();
    folder.write("tidegate.toml", config);
    let add = |args: &[&str]| keys(&folder, &[&["add"], args].concat());
    let made = people.map(add);
    (folder, made)
}

/// What `tidegate keys` prints.
fn keys(folder: &Folder, args: &[&str]) -> String {
    tidegate_in(folder, &[&["keys"], args].concat(), "").exits(0).out.trim().to_owned()
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    stream: TcpStream,
}

impl Answer {
    fn body(mut self) -> String {
        let mut body = String::new();
        self.stream.read_to_string(&mut body).unwrap();
        body
    }

    fn json(self) -> Value {
        let body = self.body();
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }
}

fn send(to: SocketAddr, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        stream,
        "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nConnection: close\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut head = String::new();
    let mut byte = [0];
    while !head.ends_with("\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(char::from(byte[0]));
    }
    let status = head.split(' ').nth(1).unwrap_or_else(|| panic!("{head:?}")).parse().unwrap();
    Answer { status, head, stream }
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

/// A request of somebody, to an endpoint.
fn request(to: SocketAddr, path: &str, key: &str, method: &str) -> Answer {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
    match key {
        "" => send(to, "POST", path, &[], &message),
        key => send(to, "POST", path, &[("Authorization", &bearer(key))], &message),
    }
}

/// The names of the tools that somebody has at an endpoint.
fn tools(to: SocketAddr, path: &str, key: &str) -> Vec<String> {
    let answer = request(to, path, key, "tools/list").json();
    let list = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Opens a legacy session.
fn session(to: SocketAddr, key: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let answer = send(to, "POST", "/mcp", &[("Authorization", &bearer(key))], &hello.to_string());
    let id = answer.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
    let id = id.unwrap_or_else(|| panic!("{}", answer.head));
    let headers = [("Authorization", &*bearer(key)), ("Mcp-Session-Id", &id)];
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send(to, "POST", "/mcp", &headers, told).status, 202);
    id
}

fn in_session(to: SocketAddr, key: &str, session: &str, verb: &str) -> Answer {
    let headers = [("Authorization", &*bearer(key)), ("Mcp-Session-Id", session)];
    let ping = if verb == "POST" { r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"# } else { "" };
    send(to, verb, "/mcp", &headers, ping)
}

#[test]
fn only_those_with_a_key_get_in() {
    let (folder, [ann]) = with_keys(CONFIG, [&["ann", "--tenant", "acme"]]);
    let served = Served::start(folder, &["serve"]);
    let at = served.address();
    let out = served.folder.read("out");
    assert!(out.contains("  Callers   API keys of ") && out.contains("Authorization: Bearer $KEY"), "{out}");
    assert!(!out.contains("WARNING") && !out.contains(&ann), "{out}");
    until(|| served.log().contains("1 server ready"));
    for path in ["/mcp", "/", "/tidegate.css", "/nowhere"] {
        for verb in ["GET", "POST", "DELETE"] {
            let refused = send(at, verb, path, &[], "");
            assert_eq!(refused.status, 401, "{verb} {path}: {}", refused.head);
            assert!(refused.head.contains("www-authenticate: Bearer\r\n"), "{}", refused.head);
        }
    }
    let (start, last) = ann.split_at(ann.len() - 1);
    let nearly = format!("{start}{}", if last == "0" { "1" } else { "0" });
    for wrong in ["tidegate_x", "hush", &nearly, &ann.to_uppercase()] {
        let refused = request(at, "/mcp", wrong, "tools/list");
        assert!(
            refused.status == 401 && refused.head.contains("error=\"invalid_token\""),
            "{}",
            refused.head
        );
    }
    // There is nobody to get a token from.
    assert_eq!(send(at, "GET", "/.well-known/oauth-protected-resource", &[], "").status, 404);
    assert_eq!(tools(at, "/mcp", &ann).len(), 4);
    // Whoever is in is told how to connect, and not what is mounted for others.
    let page = send(at, "GET", "/", &[("Authorization", &bearer(&ann))], "").body();
    assert!(page.contains("Connect") && !page.contains("demo"), "{page}");
    until(|| {
        tidegate_in(&served.folder, &["keys", "list", "--json"], "").json()["keys"][0]["lastUsed"].is_string()
    });
    assert!(!served.log().contains(&ann) && !served.log().contains("hush"), "{}", served.log());
}

#[test]
fn what_a_key_has_opened_ends_with_it() {
    let (folder, [ann, bob]) = with_keys(CONFIG, [&["ann"], &["bob"]]);
    let served = Served::start(folder, &["serve"]);
    let at = served.address();
    let (of_ann, of_bob) = (session(at, &ann), session(at, &bob));
    let stream = in_session(at, &ann, &of_ann, "GET");
    assert_eq!(stream.status, 200, "{}", stream.head);
    assert_eq!(in_session(at, &bob, &of_ann, "POST").status, 404, "a session is nobody else's");
    keys(&served.folder, &["revoke", "ann"]);
    // The stream ends by itself.
    stream.body();
    until(|| in_session(at, &ann, &of_ann, "POST").status == 401);
    assert_eq!(request(at, "/mcp", &ann, "tools/list").status, 401);
    assert_eq!(in_session(at, &bob, &of_bob, "POST").status, 200, "others do not notice");
    // A new key of the same person goes on with what the old one has opened.
    let next = keys(&served.folder, &["rotate", "bob", "--grace", "1h"]);
    until(|| in_session(at, &next, &of_bob, "POST").status == 200);
    assert_eq!(in_session(at, &bob, &of_bob, "POST").status, 200, "the old one has its grace period");
    let last = keys(&served.folder, &["rotate", "bob"]);
    until(|| in_session(at, &bob, &of_bob, "POST").status == 401);
    assert_eq!(in_session(at, &next, &of_bob, "POST").status, 401);
    assert_eq!(in_session(at, &last, &of_bob, "POST").status, 200);
}

#[test]
fn a_broken_file_of_keys_is_refused_and_changes_nothing_while_running() {
    let (folder, [ann]) = with_keys(CONFIG, [&["ann"]]);
    let good = folder.read("keys.toml");
    for (text, said) in
        [(Some("[[keys]]\nname = 5\n"), "is not valid"), (None, "There is no file of API keys")]
    {
        match text {
            Some(text) => drop(folder.write("keys.toml", text)),
            None => std::fs::remove_file(folder.path().join("keys.toml")).unwrap(),
        }
        let failed = tidegate_in(&folder, &["serve"], "").exits(2);
        assert!(failed.err.contains(said), "{}", failed.err);
        assert_eq!(failed.out, "");
    }
    // Nobody else can read what a test writes.
    write_privately(&folder, &good);
    let served = Served::start(folder, &["serve"]);
    let at = served.address();
    assert_eq!(request(at, "/mcp", &ann, "tools/list").status, 200);
    write_privately(&served.folder, "[[keys]]\nname = 5\n");
    until(|| served.log().contains("keys.toml is not valid"));
    assert_eq!(request(at, "/mcp", &ann, "tools/list").status, 200, "the last good one counts");
    assert_eq!(request(at, "/mcp", "", "tools/list").status, 401);
    write_privately(&served.folder, "");
    until(|| request(at, "/mcp", &ann, "tools/list").status == 401);
    assert!(!served.log().contains(&ann));
}

fn write_privately(folder: &Folder, text: &str) {
    let path = folder.write("keys.toml", text);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    #[cfg(not(unix))]
    drop(path);
}

#[test]
fn endpoints_have_a_selection_and_come_and_go() {
    let endpoints = "[endpoints.quiet]\ntools = [\"*_echo\"]\n[endpoints.none]\ntools = []\n";
    let config = format!("{CONFIG}{endpoints}");
    let (folder, [ann, bob]) = with_keys(&config, [&["ann"], &["bob", "--endpoint", "quiet"]]);
    let served = Served::start(folder, &["serve"]);
    let at = served.address();
    assert!(served.folder.read("out").contains("/quiet/mcp\n"), "{}", served.folder.read("out"));
    until(|| tools(at, "/mcp", &ann).len() == 4);
    assert_eq!(tools(at, "/quiet/mcp", &ann), ["demo_echo"]);
    assert!(tools(at, "/none/mcp", &ann).is_empty());
    // A key of one endpoint is good for no other.
    assert_eq!(tools(at, "/quiet/mcp", &bob), ["demo_echo"]);
    for path in ["/mcp", "/none/mcp", "/"] {
        assert_ne!(request(at, path, &bob, "tools/list").status, 200, "{path}");
    }
    assert_eq!(request(at, "/quiet/mcp", "", "tools/list").status, 401);
    assert_eq!(request(at, "/late/mcp", &ann, "tools/list").status, 404);
    served.folder.write("tidegate.toml", &format!("{CONFIG}[endpoints.late]\ntools = [\"*_echo\"]\n"));
    until(|| request(at, "/late/mcp", &ann, "tools/list").status == 200);
    assert_eq!(tools(at, "/late/mcp", &ann), ["demo_echo"]);
    assert_eq!(request(at, "/quiet/mcp", &ann, "tools/list").status, 404);
    assert_ne!(request(at, "/late/mcp", &bob, "tools/list").status, 200);
    // Whether anybody is asked at all needs a restart.
    served.folder.write("tidegate.toml", &CONFIG.replace("[auth]\nkeys = \"keys.toml\"\n", ""));
    until(|| served.log().contains("[auth] has been removed: restart to apply that"));
    until(|| request(at, "/late/mcp", &ann, "tools/list").status == 404);
    assert_eq!(request(at, "/mcp", "", "tools/list").status, 401);
    assert_eq!(request(at, "/mcp", &ann, "tools/list").status, 200);
}

#[test]
fn an_endpoint_over_stdio() {
    let folder = Folder::new();
    folder.write("tidegate.toml", &format!("{CONFIG}[endpoints.quiet]\ntools = [\"*_echo\"]\n"));
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    let names = |args: &[&str]| {
        let all = [&["serve", "--stdio", "--lenient-init"], args].concat();
        let done = tidegate_in(&folder, &all, list).exits(0);
        let answer: Value = serde_json::from_str(done.out.lines().next().unwrap()).unwrap();
        answer["result"]["tools"].as_array().unwrap().len()
    };
    // Nobody needs a key there: it is the local user.
    assert_eq!((names(&[]), names(&["--endpoint", "quiet"])), (4, 1));
    assert_eq!(names(&["--endpoint", "default"]), 4);
    let unknown = tidegate_in(&folder, &["serve", "--stdio", "--endpoint", "quite"], "").exits(2);
    assert!(
        unknown.err.contains("there is no endpoint \"quite\"; did you mean \"quiet\"?"),
        "{}",
        unknown.err
    );
    let nothing = tidegate_in(&Folder::new(), &["serve", "--stdio", "--endpoint", "a"], "").exits(2);
    assert!(nothing.err.contains("The configuration has no endpoints"), "{}", nothing.err);
    // Elsewhere it would have no effect, and everything would be served.
    for more in [&[][..], &["--listen", "0"], &["--insecure"], &["--listen", "0", "--insecure"]] {
        let refused = tidegate_in(&folder, &[&["serve", "--endpoint", "quiet"], more].concat(), "").exits(2);
        assert!(refused.err.contains("--endpoint"), "{}", refused.err);
    }
}

/// A file of the certificates that the tests of HTTPS have.
fn certificate(name: &str) -> String {
    format!("{}/../crates/edge/tests/edge/certificates/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn https() {
    let (cert, key) = (certificate("first.pem"), certificate("first.key"));
    let tls = format!("[tls]\ncert = {cert:?}\nkey = {key:?}\n");
    let (folder, [ann]) = with_keys(&format!("{CONFIG}{tls}"), [&["ann"]]);
    let served = Served::start(folder, &["serve"]);
    let mut port = None;
    until(|| {
        let out = served.folder.read("out");
        port = out
            .split("https://127.0.0.1:")
            .nth(1)
            .and_then(|rest| rest.split('/').next()?.parse::<u16>().ok());
        port.is_some()
    });
    let url = format!("https://localhost:{}/mcp", port.unwrap());
    let call = |authorization: Option<&str>| {
        let mut command = command(served.folder.path());
        command.env("SSL_CERT_FILE", &cert).args(["tools", &url, "--json"]);
        if let Some(key) = authorization {
            command.args(["-H", &format!("Authorization: Bearer {key}")]);
        }
        crate::rig::Running::start(command).wait()
    };
    until(|| call(Some(&ann)).code == 0);
    assert_eq!(call(Some(&ann)).json()["tools"].as_array().unwrap().len(), 4);
    assert_ne!(call(None).code, 0);
    // What is wrong with a certificate is said at once.
    for (cert, key, said) in [
        (certificate("first.pem"), certificate("second.key"), "does not fit the first certificate"),
        ("gone.pem".to_owned(), certificate("first.key"), "gone.pem"),
        (certificate("first.pem"), certificate("encrypted.key"), "is encrypted"),
    ] {
        let folder = Folder::new();
        folder.write("tidegate.toml", &format!("listen = 0\n[tls]\ncert = {cert:?}\nkey = {key:?}\n"));
        for verb in ["serve", "check"] {
            let failed = tidegate_in(&folder, &[verb], "");
            assert!(
                failed.code != 0 && format!("{}{}", failed.out, failed.err).contains(said),
                "{verb}: {failed:?}"
            );
        }
    }
}

#[test]
fn other_machines_are_let_in_on_purpose_only() {
    let demo = ["serve", "--demo", "--listen", "0.0.0.0:0"];
    let refused = tidegate_in(&Folder::new(), &demo, "").exits(2);
    assert!(
        refused.err.contains("cannot listen on 0.0.0.0:0: other machines can reach this address"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("or use --insecure (in the configuration, insecure = true)"),
        "{}",
        refused.err
    );
    let refused = tidegate_in(&Folder::new(), &[&demo[..], &["--insecure"]].concat(), "").exits(2);
    assert!(refused.err.contains("or --allow-host with the names"), "{}", refused.err);
    // The file goes by the same rules, and so does the command line with a file that is fine without it.
    let folder = Folder::new();
    let with = |text: &str| folder.write("tidegate.toml", text);
    with("listen = \"0.0.0.0:0\"\n");
    for verb in ["serve", "check"] {
        let refused = tidegate_in(&folder, &[verb], "").exits(2);
        assert!(
            refused.err.contains("tidegate.toml:1:1: listen: other machines can reach"),
            "{}",
            refused.err
        );
    }
    tidegate_in(&folder, &["serve", "--stdio"], "").exits(0);
    // A name is needed, too, by both.
    with("listen = \"0.0.0.0:0\"\ninsecure = true\n");
    for verb in ["serve", "check"] {
        let refused = tidegate_in(&folder, &[verb], "").exits(2);
        assert!(
            refused.err.contains("or allow_hosts with the names by which clients come"),
            "{}",
            refused.err
        );
    }
    with(&CONFIG.replace("listen = 0\n", ""));
    keys(&folder, &["add", "ann"]);
    let refused = tidegate_in(&folder, &["serve", "--listen", "0.0.0.0:0"], "").exits(2);
    assert!(refused.err.contains("keys and tokens would be sent unencrypted: add [tls]"), "{}", refused.err);
    let mut command = command(folder.path());
    command.env("PERCOLATE_API_HOST", "0.0.0.0").arg("serve");
    let refused = crate::rig::Running::start(command).wait().exits(2);
    assert!(refused.err.contains("would be sent unencrypted"), "{}", refused.err);
}

#[test]
fn callers_other_than_the_proxy_are_sent_away() {
    let config = CONFIG.replace("listen = 0\n", "listen = \"0.0.0.0:0\"\nallow_hosts = [\"localhost\"]\n");
    let proxies = |network: &str| format!("trusted_proxies = [{network:?}]\n{config}");
    let (folder, [ann]) = with_keys(&proxies("192.0.2.7"), [&["ann"]]);
    let served = Served::start(folder, &["serve"]);
    assert_eq!(request(served.address(), "/mcp", &ann, "tools/list").status, 403);
    let (folder, [ann]) = with_keys(&proxies("127.0.0.0/8"), [&["ann"]]);
    let served = Served::start(folder, &["serve"]);
    assert_eq!(request(served.address(), "/mcp", &ann, "tools/list").status, 200);
    assert!(!served.folder.read("out").contains("WARNING"));
}

#[test]
fn no_server_gets_to_know_anything_of_callers() {
    let folder = Folder::new();
    let script = r#"
while read -r line; do
    printf '%s\n' "$line" >> seen
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case "$line" in
        *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}}\n' "$id" ;;
        *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
        *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" ;;
    esac
done
"#;
    folder.write("server.sh", &format!("env > environment\n{script}"));
    let config = CONFIG
        .replace("[servers.demo]\nbuiltin = \"demo\"", "[servers.x]\ncommand = [\"sh\", \"server.sh\"]");
    folder.write("tidegate.toml", &config);
    let ann = keys(&folder, &["add", "ann"]);
    let served = Served::start(folder, &["serve"]);
    let at = served.address();
    until(|| tools(at, "/mcp", &ann) == ["x_a"]);
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x_a", "arguments": {}}});
    let called = send(at, "POST", "/mcp", &[("Authorization", &bearer(&ann))], &call.to_string());
    assert_eq!(called.status, 200);
    until(|| served.folder.read("seen").contains("tools/call"));
    let all = served.folder.read("seen") + &served.folder.read("environment");
    assert!(!all.contains(&ann) && !all.contains("tidegate_") && !all.contains("Bearer"), "{all}");
}

#[test]
fn clients_are_told_where_to_get_a_token_and_never_what_they_asked_by() {
    let jwt = "public_url = \"https://mcp.example.com\"\n[[auth.jwt]]\nissuer = \"https://id.example.com\"\njwks = \"jwks.json\"\n";
    let config = CONFIG.replace("[auth]\nkeys = \"keys.toml\"\n", "");
    let with = |endpoints: &str| {
        let (top, servers) = config.split_once("[servers").unwrap();
        format!("{top}{jwt}{endpoints}[servers{servers}")
    };
    let folder = Folder::new();
    // The key of RFC 7515, appendix A.3.
    folder.write(
        "jwks.json",
        r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
    );
    folder.write("tidegate.toml", &with("[endpoints.quiet]\n"));
    let served = Served::start(folder, &["serve"]);
    let mut port = None;
    until(|| {
        let out = served.folder.read("out");
        port = out.split("  Address   127.0.0.1:").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        port.is_some()
    });
    assert!(served.folder.read("out").contains(" at https://mcp.example.com/mcp\n"));
    let at = SocketAddr::from(([127, 0, 0, 1], port.unwrap()));
    let document =
        |path: &str| send(at, "GET", &format!("/.well-known/oauth-protected-resource{path}"), &[], "");
    for path in ["", "/mcp", "/quiet/mcp"] {
        let told = document(path).json();
        let resource = if path.is_empty() { "/mcp" } else { path };
        assert_eq!(told["resource"], format!("https://mcp.example.com{resource}"));
        assert_eq!(told["authorization_servers"], json!(["https://id.example.com"]));
        assert!(!told.to_string().contains("localhost"), "{told}");
    }
    let refused = request(at, "/quiet/mcp", "", "tools/list");
    let place =
        "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/quiet/mcp\"";
    assert!(refused.status == 401 && refused.head.contains(place), "{}", refused.head);
    served.folder.write("tidegate.toml", &with("[endpoints.late]\n"));
    until(|| document("/late/mcp").status == 200);
    until(|| document("/quiet/mcp").status == 404);
}
