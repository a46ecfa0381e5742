//! `tidegate serve` over HTTP: where it listens, who may call, what it says at `/`, in its log, and when it ends.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::rig::{CANNED, Folder, PATIENCE, command, tidegate_in, until};
use crate::server;

/// A gateway that runs in a folder, killed at the end.
pub(crate) struct Served {
    child: Child,
    pub(crate) folder: Folder,
}

impl Served {
    /// Serves what the folder has.
    pub(crate) fn start(folder: Folder, args: &[&str]) -> Served {
        let mut served = command(folder.path());
        served.args(args);
        Served::run(folder, served)
    }

    fn run(folder: Folder, mut served: Command) -> Served {
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let child = served.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        Served { child, folder }
    }

    /// What it says of where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        let mut found = None;
        until(|| {
            let out = self.folder.read("out");
            let address = out.split("http://").nth(1).and_then(|rest| rest.split('/').next());
            found = address.and_then(|address| address.rsplit_once(':')?.1.parse().ok());
            found.is_some()
        });
        SocketAddr::from(([127, 0, 0, 1], found.unwrap()))
    }

    pub(crate) fn log(&self) -> String {
        self.folder.read("err")
    }

    /// SIGTERM; gives the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
        let mut status = None;
        until(|| {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer to a request: head and body.
fn request(to: SocketAddr, verb: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "{verb} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(to: SocketAddr, path: &str) -> String {
    request(to, "GET", path, "localhost")
}

#[test]
fn a_port_and_localhost_are_addresses() {
    for listen in ["0", ":0", "localhost:0", "127.0.0.1:0"] {
        let mut served = Served::start(Folder::new(), &["serve", "--demo", "--listen", listen]);
        let answer = get(served.address(), "/");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{listen}: {answer}");
        assert_eq!(served.end(), Some(0));
    }
    let folder = Folder::new();
    folder.write("tidegate.toml", "listen = 0\n[servers.demo]\nbuiltin = \"demo\"\n");
    assert!(get(Served::start(folder, &["serve"]).address(), "/").contains("<td>demo</td>"));
    for wrong in ["localhost", "http://localhost:80", "::1:80", "70000"] {
        let refused = tidegate_in(&Folder::new(), &["serve", "--listen", wrong], "").exits(2);
        assert!(
            refused.err.contains("is not an address to listen on: use a port (8080), a host"),
            "{}",
            refused.err
        );
    }
}

#[test]
fn a_port_in_use_is_said_before_any_server_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = Folder::new();
    folder.write("tidegate.toml", "[servers.x]\ncommand = [\"sh\", \"-c\", \"touch started; cat\"]\n");
    let failed = tidegate_in(&folder, &["serve", "--listen", &port], "").exits(3);
    assert!(failed.err.contains(&format!("error: port {port} is already in use")), "{}", failed.err);
    assert!(failed.err.contains("choose another port with --listen "), "{}", failed.err);
    if cfg!(target_os = "linux") {
        assert!(failed.err.contains(&format!("(pid {})", std::process::id())), "{}", failed.err);
    }
    assert_eq!(failed.out, "");
    assert!(!folder.path().join("started").exists(), "a server was started");
}

#[test]
fn a_host_is_a_name_and_no_wildcard() {
    for (host, part) in
        [("", "must not be empty"), ("*", "wildcards are not supported"), ("a:80", "only the host name")]
    {
        let refused = tidegate_in(&Folder::new(), &["serve", "--demo", "--allow-host", host], "").exits(2);
        assert!(refused.err.contains(part), "{}", refused.err);
        let folder = Folder::new();
        folder.write("tidegate.toml", &format!("allow_hosts = [{host:?}]\n"));
        let refused = tidegate_in(&folder, &["serve"], "").exits(2);
        assert!(refused.err.contains("allow_hosts") && refused.err.contains(part), "{}", refused.err);
    }
    let refused = tidegate_in(&Folder::new(), &["serve", "--demo", "--allow-origin", "*"], "").exits(2);
    assert!(refused.err.contains("an origin is what browsers send"), "{}", refused.err);
}

/// An address of this machine that is not loopback, if it has one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[test]
fn off_loopback_only_allowed_hosts_are_served_and_the_banner_warns() {
    let args = ["serve", "--demo", "--insecure", "--listen", "0.0.0.0:0", "--allow-host", "mcp.example.com"];
    let served = Served::start(Folder::new(), &args);
    let here = served.address();
    let out = served.folder.read("out");
    assert!(out.contains("WARNING: listening on 0.0.0.0:"), "{out}");
    assert!(
        out.contains("without authentication: anyone who can reach this port can call every tool"),
        "{out}"
    );
    assert!(out.contains(&format!(" at http://mcp.example.com:{}/mcp\n", here.port())), "{out}");
    assert!(get(here, "/").starts_with("HTTP/1.1 200 "));
    let Some(own) = own_address() else { return };
    let there = SocketAddr::new(own, here.port());
    for host in ["localhost", "127.0.0.1"] {
        let refused = request(there, "GET", "/", host);
        assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
        assert!(refused.contains(&format!("--allow-host {host}")), "{refused}");
    }
    assert!(request(there, "GET", "/", "mcp.example.com").starts_with("HTTP/1.1 200 "));
}

#[test]
fn the_front_page_says_what_is_mounted_now() {
    let folder = Folder::new();
    let broken = "[servers.broken]\ncommand = \"/nowhere/at/all\"\n";
    folder.write("tidegate.toml", &format!("[servers.demo]\nbuiltin = \"demo\"\n{broken}"));
    let served = Served::start(folder, &["serve", "--listen", "0"]);
    let at = served.address();
    until(|| get(at, "/").contains("<td>demo</td><td>ready</td><td>4</td>"));
    until(|| get(at, "/").contains("<td>broken</td><td>not available<br>"));
    let page = get(at, "/");
    for part in [
        "content-type: text/html; charset=utf-8",
        "cache-control: no-store",
        "content-security-policy: default-src 'none'",
        &format!("<code>claude mcp add --transport http tidegate http://{at}/mcp</code>"),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(
        page.contains("/nowhere/at/all") && !page.contains("/memory"),
        "whoever is here may know: {page}"
    );
    let head = request(at, "HEAD", "/", "localhost");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(get(at, "/tidegate.css").contains("content-type: text/css"));
    assert!(request(at, "POST", "/", "localhost").starts_with("HTTP/1.1 405 "));
    assert!(request(at, "GET", "/", "evil.example.com").starts_with("HTTP/1.1 403 "));
    assert!(get(at, "/memory").starts_with("HTTP/1.1 404 "));
    // Another configuration, another page.
    served.folder.write("tidegate.toml", "[servers.memory]\nbuiltin = \"memory\"\n");
    until(|| get(at, "/").contains("href=\"/memory\""));
    assert!(!get(at, "/").contains("demo"));
    assert!(get(at, "/memory").starts_with("HTTP/1.1 200 "));
}

#[test]
fn an_endpoint_at_the_root_stays_there() {
    let folder = Folder::new();
    folder.write("tidegate.toml", "path = \"/\"\n[servers.demo]\nbuiltin = \"demo\"\n");
    let served = Served::start(folder, &["serve", "--listen", "0"]);
    let answer = get(served.address(), "/");
    assert!(!answer.contains("text/html"), "{answer}");
}

#[test]
fn the_first_configuration_is_noticed() {
    let served = Served::start(Folder::new(), &["serve", "--listen", "0"]);
    let at = served.address();
    until(|| get(at, "/").contains("<td>memory</td><td>ready</td>"));
    assert!(
        served.folder.read("out").contains("Config    none yet; add a server"),
        "{}",
        served.folder.read("out")
    );
    let (url, _) = server::start();
    tidegate_in(&served.folder, &["add", "tests", &url], "").exits(0);
    until(|| get(at, "/").contains("<td>tests</td><td>ready</td>"));
    assert!(get(at, "/").contains("<td>memory</td>"), "the memory stays");
    assert!(served.log().contains("Found a configuration: serving "), "{}", served.log());
    until(|| served.log().contains("2 servers ready: "));
    // From now on it is followed.
    tidegate_in(&served.folder, &["remove", "tests"], "").exits(0);
    until(|| !get(at, "/").contains("<td>tests</td>"));
}

#[test]
fn a_configuration_that_was_named_must_be_there() {
    let failed = tidegate_in(&Folder::new(), &["serve", "--config", "gone.toml"], "").exits(2);
    assert!(
        failed.err.contains("gone.toml: the configuration cannot be read: there is no such file"),
        "{}",
        failed.err
    );
}

/// The lines of a JSON log.
fn lines(log: &str) -> Vec<Value> {
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn twice_verbose_shows_what_is_exchanged_with_clients_and_servers() {
    let (url, _) = server::start();
    for era in ["modern", "legacy"] {
        let folder = Folder::new();
        let headers = "headers = { Authorization = \"Bearer sk-serve-0001\" }";
        folder.write("tidegate.toml", &format!("[servers.far]\nurl = {url:?}\nera = {era:?}\n{headers}\n"));
        let args = ["--log-format", "json", "serve", "-vv", "--listen", "0"];
        let served = Served::start(folder, &args);
        let mut endpoint = None;
        until(|| {
            let listening = lines(&served.log()).into_iter().find(|line| line["message"] == "Listening");
            endpoint = listening.and_then(|line| Some(line["endpoint"].as_str()?.to_owned()));
            endpoint.is_some()
        });
        let endpoint = endpoint.unwrap();
        let called = ["call", &*endpoint, "far_mixed", "count=7", "tags=sea", "fast=true"];
        until(|| tidegate_in(&Folder::new(), &called, "").code == 0);
        let log = served.log();
        let traffic: Vec<Value> =
            lines(&log).into_iter().filter(|line| line["target"] == "tidegate::wire").collect();
        let has = |direction: &str, server: Option<&str>, part: &str| {
            traffic.iter().any(|line| {
                line["message"] == direction
                    && line["server"].as_str() == server
                    && line["content"].as_str().is_some_and(|content| content.contains(part))
            })
        };
        for (direction, server, part) in [
            ("received", None, "far_mixed"),
            ("sent", Some("far"), "\"mixed\""),
            ("received", Some("far"), "7 sea true"),
            ("sent", None, "7 sea true"),
        ] {
            assert!(has(direction, server, part), "{era}: {direction} {server:?} {part}: {log}");
        }
        assert!(!log.contains("sk-serve-0001"), "{log}");
        assert_eq!(served.folder.read("out"), "", "only JSON");
    }
}

#[test]
fn it_ends_without_noise() {
    let folder = Folder::new();
    folder.write(
        "server.sh",
        &format!("trap 'echo trapped >&2; exit 3' TERM\n{CANNED}\necho goodbye >&2; exit 4\n"),
    );
    let servers = "[servers.canned]\ncommand = [\"sh\", \"server.sh\"]\n[servers.demo]\nbuiltin = \"demo\"\n\
                   [servers.broken]\ncommand = \"/nowhere/at/all\"\n";
    folder.write("tidegate.toml", servers);
    let mut served = Served::start(folder, &["serve", "--listen", "0"]);
    until(|| served.log().contains("2 of 3 servers ready: 4 tools; not available: broken"));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(served.end(), Some(0));
    let log = served.log();
    assert_eq!(log.matches("servers ready: ").count(), 1, "{log}");
    let (_, end) = log.split_once("Shutting down").unwrap_or_else(|| panic!("{log}"));
    let rest: Vec<&str> = end.trim().lines().collect();
    assert!(matches!(rest[..], [only] if only.contains("Final statistics: 0 calls")), "{log}");
}

#[test]
fn what_is_disabled_is_said_and_shown() {
    let folder = Folder::new();
    let broken = "[servers.broken]\ncommand = [\"sh\", \"-c\", \"echo the reason >&2; exit 3\"]\n";
    let servers = "[servers.demo]\nbuiltin = \"demo\"\n[servers.off]\nbuiltin = \"demo\"\nenabled = false\n\
                   [servers.web]\nurl = \"http://127.0.0.1:1/${TIDEGATE_TEST_NOT_SET}\"\n";
    folder.write("tidegate.toml", &format!("{broken}{servers}"));
    let served = Served::start(folder, &["serve", "--listen", "0"]);
    until(|| {
        served.log().contains("1 of 2 servers ready: 4 tools; not available: broken; 2 disabled: off, web")
    });
    let page = get(served.address(), "/");
    for part in [
        "<td>off</td><td>disabled<br><small>enabled = false</small></td>",
        "<td>web</td><td>disabled<br><small>the environment variable TIDEGATE_TEST_NOT_SET is not set (servers.web.url",
        "<td>broken</td><td>not available<br><small>",
        "exited with status 3; it wrote: the reason",
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
}

#[test]
fn mistakes_in_a_configuration_are_listed_one_below_the_other() {
    let folder = Folder::new();
    let text = "[servers.a]\ncomand = \"x\"\n[servers.b]\nbuiltin = \"demo\"\ntimeout = \"soon\"\n";
    folder.write("tidegate.toml", text);
    let failed = tidegate_in(&folder, &["serve", "--listen", "0"], "").exits(2);
    let lines: Vec<&str> = failed.err.lines().collect();
    assert_eq!(lines[0], "error: tidegate.toml has 2 errors", "{}", failed.err);
    assert_eq!(lines.len(), 3, "{}", failed.err);
    assert!(lines[1..].iter().all(|line| line.starts_with("  tidegate.toml:")), "{}", failed.err);
    assert!(
        failed.err.contains(
            "  tidegate.toml:2:1: servers.a: unknown field \"comand\"; did you mean \"command\"?\n"
        )
    );
    assert_eq!(failed.out, "", "it says nothing else");
    // A file that breaks while it is served is told of in the same lines, and changes nothing.
    folder.write("tidegate.toml", "[servers.b]\nbuiltin = \"demo\"\n");
    let served = Served::start(folder, &["serve", "--listen", "0"]);
    until(|| served.log().contains("1 server ready: 4 tools"));
    served.folder.write("tidegate.toml", text);
    until(|| served.log().contains("Configuration not changed, because the file has errors:"));
    until(|| served.log().contains("timeout"));
    let log = served.log();
    assert_eq!(
        log.lines().filter(|line| line.contains("ERROR") && line.contains("tidegate.toml:")).count(),
        2,
        "{log}"
    );
}

#[cfg(unix)]
#[test]
fn over_stdio_a_hangup_is_ignored_once_there_is_a_file() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    let mut command = command(folder.path());
    command.args(["serve", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child =
        command.stderr(std::fs::File::create(folder.path().join("err")).unwrap()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let served = Served { child, folder };
    let mut answers = BufReader::new(output).lines();
    let mut ask = |id: usize| {
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
        answers.next().unwrap().unwrap()
    };
    ask(1);
    served.folder.write(".config/tidegate/tidegate.toml", "[servers.demo]\nbuiltin = \"demo\"\n");
    until(|| served.log().contains("1 server ready: 4 tools"));
    let sent = Command::new("kill").args(["-HUP", &served.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    ask(2);
    drop(input);
    until(|| served.log().contains("Shutting down: "));
    assert!(served.log().contains("Shutting down: standard input was closed"), "{}", served.log());
}
