//! `[log]` of the built program: a file with its rotation, both formats, a level that changes, and files that cannot be written.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Answer, request, until};
use crate::rig::{Gateway, SERVERS, command};

/// A running program whose log goes to `logs/tidegate.log`.
struct Logged {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Logged {
    fn start(log: &str) -> Logged {
        Logged::start_with(log, &[], &[])
    }

    fn start_with(log: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Logged {
        let (folder, _) = Gateway::folder(&config(log));
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let mut serve = command(folder.path());
        serve.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments).envs(environment.iter().copied());
        let child = serve.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        let mut logged = Logged { child, address: ([127, 0, 0, 1], 0).into(), folder };
        until("it says where it is", || {
            // Where lines are JSON, one of them says it.
            let said = logged.read("out") + &logged.log() + &logged.err();
            let url = said.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
            url.and_then(|url| url.trim().parse().ok()).map(|address| logged.address = address).is_some()
        });
        until("it is ready", || request(logged.address, "GET", "/ready", &[], "").status == 200);
        logged
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn log(&self) -> String {
        self.read("logs/tidegate.log")
    }

    fn err(&self) -> String {
        self.read("err")
    }

    /// Waits until this is in the log.
    #[track_caller]
    fn logs(&self, text: &str) {
        until(&format!("{text:?} is logged"), || self.log().contains(text));
    }

    /// Writes the configuration anew.
    fn edit(&self, log: &str) {
        std::fs::write(self.path("new.toml"), format!("state_dir = \"state\"\n{}", config(log))).unwrap();
        std::fs::rename(self.path("new.toml"), self.path("tidegate.toml")).unwrap();
    }

    /// Calls as a client of this name.
    fn call(&self, client: &str) -> Answer {
        let params = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let headers =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "demo_add")];
        request(self.address, "POST", "/mcp", &headers, &body)
    }

    #[track_caller]
    fn calls(&self) {
        let answer = self.call("tests");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(log: &str) -> String {
    format!("{SERVERS}[log]\n{log}\n")
}

const FILE: &str = "file = \"logs/tidegate.log\"\n";
const CALLED: &str = "MCP tool called server=demo outcome=ok";

#[test]
fn a_file_is_put_aside_when_it_is_large_and_only_some_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let logged = Logged::start(&format!(
        "{FILE}max_size = \"64KiB\"\nkeep = 2\nlevel = \"info,tidegate::wire=debug\""
    ));
    let aside = |number: usize| format!("logs/tidegate.log.{number}");
    let mut oldest = String::new();
    // Until a file that was put aside is gone.
    for _ in 0..5_000 {
        logged.calls();
        let second = logged.read(&aside(2));
        match oldest.is_empty() {
            true => oldest = second,
            false if second != oldest => break,
            false => {}
        }
    }
    until("two are kept", || logged.path(&aside(1)).exists() && logged.path(&aside(2)).exists());
    assert_ne!(logged.read(&aside(2)), oldest);
    assert!(!logged.path(&aside(3)).exists());
    for name in [aside(1), aside(2)] {
        let about = std::fs::metadata(logged.path(&name)).unwrap();
        assert!((60 << 10..=64 << 10).contains(&about.len()), "{}", about.len());
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        let text = logged.read(&name);
        assert!(text.ends_with('\n') && text.lines().all(|line| line.get(10..11) == Some("T")), "{text}");
        assert!(text.contains(CALLED));
    }
    let err = logged.err();
    assert!(err.contains("Log lines go to ") && !err.contains(CALLED), "{err}");
}

#[test]
fn what_others_wrote_stays_one_line_in_both_formats() {
    let forged = "x\n2026-07-28T12:00:00.000000Z ERROR all is lost\u{1b}[2J";
    for (format, is_json) in [("pretty", false), ("json", true)] {
        let logged = Logged::start(&format!("{FILE}format = \"{format}\""));
        assert_eq!(logged.call(forged).status, 200);
        logged.calls();
        logged.logs("all is lost");
        logged.logs(if is_json { r#""client":"tests""# } else { "client=tests" });
        let log = logged.log();
        assert!(!log.contains(|c: char| c.is_control() && c != '\n'), "{log}");
        for line in log.lines() {
            match is_json {
                true => assert!(serde_json::from_str::<Value>(line).unwrap()["level"].is_string(), "{line}"),
                false => assert!(!line[27..].starts_with(" ERROR"), "{line}"),
            }
        }
    }
}

#[test]
fn the_level_follows_the_configuration_and_the_rest_needs_a_restart() {
    let logged = Logged::start(&format!("{FILE}level = \"warn\""));
    logged.calls();
    logged.edit(&format!("{FILE}level = \"info\""));
    until("calls are logged", || {
        logged.calls();
        logged.log().contains(CALLED)
    });
    let debug = "level = \"info,tidegate::wire=debug,tidegate::access=off\"";
    logged.edit(&format!("{FILE}{debug}"));
    until("messages are logged", || {
        logged.calls();
        logged.log().contains("DEBUG received")
    });
    let calls = || logged.log().matches(CALLED).count();
    let before = calls();
    logged.calls();
    logged.edit(&format!("file = \"elsewhere.log\"\n{debug}"));
    logged.logs("([log] format, file): restart to apply that");
    assert_eq!(calls(), before, "lines about calls follow the level, too");
    assert!(!logged.path("elsewhere.log").exists());
    logged.edit(&format!("{FILE}level = \"loud\""));
    logged.logs("is not a log level: use error, warn, info");
    // Without one, it is as it would have been.
    logged.edit(FILE);
    until("calls are logged again", || {
        logged.calls();
        calls() > before
    });
}

#[test]
fn the_command_line_and_the_environment_count_more() {
    let said = format!("{FILE}level = \"warn\"\nformat = \"json\"");
    for (arguments, environment) in [
        (vec![], vec![("LOG_LEVEL", "info"), ("LOG_FORMAT", "pretty")]),
        (
            vec!["--log-level", "info", "--log-format", "pretty"],
            vec![("LOG_LEVEL", "off"), ("LOG_FORMAT", "json")],
        ),
    ] {
        let logged = Logged::start_with(&said, &arguments, &environment);
        logged.calls();
        logged.logs(CALLED);
        logged.edit(&format!("{FILE}level = \"off\"\nformat = \"json\""));
        logged.logs("which has no effect: the command line or LOG_LEVEL says another");
        let before = logged.log().matches(CALLED).count();
        logged.calls();
        until("it is logged as before", || logged.log().matches(CALLED).count() > before);
    }
}

#[test]
fn calls_go_on_while_the_file_cannot_be_written() {
    let logged = Logged::start(FILE);
    logged.calls();
    logged.logs(CALLED);
    let path = logged.path("logs/tidegate.log");
    std::fs::rename(&path, logged.path("moved")).unwrap();
    std::fs::create_dir(&path).unwrap();
    let cannot = "tidegate.log cannot be written: ";
    until("standard error says so", || {
        logged.calls();
        logged.err().contains(cannot)
    });
    (0..20).for_each(|_| logged.calls());
    std::fs::remove_dir(&path).unwrap();
    until("it is written again", || {
        logged.calls();
        logged.log().contains(" lines could not be written here: ") && logged.log().contains(CALLED)
    });
    until("standard error says that, too", || logged.err().contains("tidegate.log is written again; "));
    assert_eq!(logged.err().matches(cannot).count(), 1, "{}", logged.err());
    // Somebody removes it, with its directory.
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    until("it is there again", || {
        logged.calls();
        logged.log().contains(CALLED)
    });
}

#[test]
fn a_full_disk_stops_no_call() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let logged = Logged::start("file = \"/dev/full\"");
    until("standard error says so", || {
        logged.calls();
        logged.err().contains("The log file /dev/full cannot be written: No space left on device")
    });
    (0..100).for_each(|_| logged.calls());
    assert_eq!(logged.err().matches("cannot be written").count(), 1, "{}", logged.err());
}
