//! What users read, as files that a reviewer can read: `tests/snapshots`. After a change that is meant, run
//! `INSTA_UPDATE=always cargo test -p tidegate-command --test cli snapshots` and look at the difference.

use std::time::Duration;

use serde_json::Value;

use crate::rig::{CANNED, Folder, TIDEGATE, tidegate, until};
use crate::serve::Served;
use crate::terminal::at_a_terminal_in;

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Three servers: one of the program, one that cannot be started, and a script.
fn three_servers() -> Folder {
    let folder = Folder::new();
    folder.write("server.sh", &format!("echo 'reading the charts' >&2\n{CANNED}"));
    let servers = r#"
        [servers.demo]
        builtin = "demo"
        [servers.github]
        command = ["no-such-program", "--token", "x"]
        [servers.tides]
        command = ["sh", "server.sh"]
        env = { TOOLS = '[{"name":"high","inputSchema":{"type":"object"}}]' }
    "#;
    folder.write("tidegate.toml", servers);
    folder
}

/// Without what is different each time: times, ports, versions, places; and in one order.
fn usual(text: &str, folder: &Folder) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.replace(&folder.path().display().to_string(), "/home/ada").lines() {
        let line = line.replace(env!("CARGO_PKG_VERSION"), "1.2.3");
        lines.push(without_durations(&without_clock(&without_port(&line))));
    }
    // Servers come up in any order.
    let is_about_one = |line: &String| line.starts_with("12:00:00 ") && line.contains('[');
    let first = lines.iter().position(is_about_one).unwrap_or(0);
    let count = lines[first..].iter().take_while(|line| is_about_one(line)).count();
    lines[first..first + count].sort();
    lines.join("\n") + "\n"
}

fn without_port(line: &str) -> String {
    let mut parts = line.split("127.0.0.1:");
    let mut usual = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        usual += "127.0.0.1:8765";
        usual += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    usual
}

fn without_clock(line: &str) -> String {
    let start = line.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    match line[start..].split_at_checked(8) {
        Some((clock, rest)) if clock.matches(':').count() == 2 => format!("12:00:00{rest}"),
        _ => line.to_owned(),
    }
}

/// `(2025-11-25, 0.1 s)` for any time.
fn without_durations(line: &str) -> String {
    match line.strip_suffix(" s)").and_then(|rest| rest.rsplit_once(", ")) {
        Some((before, _)) => format!("{before}, 0.1 s)"),
        None => line.to_owned(),
    }
}

#[test]
fn help() {
    let all = tidegate(&["--help"]).exits(0).out;
    snapshot("help", &all);
    let commands = all.split("\nOptions:\n").next().unwrap();
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        snapshot(&format!("help-{name}"), &tidegate(&[name, "--help"]).exits(0).out);
    }
}

#[test]
fn other_products_are_not_in_the_help() {
    let help = tidegate(&["serve", "--help"]).exits(0).out;
    for word in ["PERCOLATE", "Percolate", "legacy-errors", "LOG_FORMAT", "gbif", "docling"] {
        assert!(!help.contains(word), "{word}: {help}");
    }
    // What is hidden works all the same.
    tidegate(&["serve", "--demo", "--legacy-errors", "gbif", "--listen", "nowhere"]).exits(2);
}

#[test]
fn banner_and_log_lines_on_a_terminal() {
    let folder = three_servers();
    let line = format!("exec env NO_COLOR=1 {TIDEGATE} serve --listen 0");
    let answers = [("servers ready: ", "\u{3}")];
    let Some((screen, code)) = at_a_terminal_in(&folder, &line, &answers) else { return };
    assert_eq!(code, 0, "{screen}");
    assert_eq!(screen.matches("servers ready: ").count(), 1, "{screen}");
    snapshot("serve-on-a-terminal", &usual(&screen.replace("^C", ""), &folder));
}

#[test]
fn nothing_configured_on_a_terminal() {
    let folder = Folder::new();
    let line = format!("exec env NO_COLOR=1 {TIDEGATE} serve --listen 0");
    let Some((screen, code)) = at_a_terminal_in(&folder, &line, &[("server ready: ", "\u{3}")]) else {
        return;
    };
    assert_eq!(code, 0, "{screen}");
    snapshot("serve-without-configuration", &usual(&screen.replace("^C", ""), &folder));
}

#[test]
fn a_reload_on_a_terminal() {
    let folder = three_servers();
    let file = folder.path().join("tidegate.toml");
    let (new, broken) = ("[servers.time]\nbuiltin = \"demo\"\n", "[servers.time\n");
    // What is typed is not a program's business: the file is changed from beside.
    let change = std::thread::spawn({
        let out = folder.path().join("out");
        move || {
            let shows = |part: &str| std::fs::read_to_string(&out).is_ok_and(|text| text.contains(part));
            until(|| shows("servers ready: "));
            std::fs::write(&file, new).unwrap();
            until(|| shows("1 server ready: "));
            std::fs::write(&file, broken).unwrap();
        }
    });
    let line = format!("NO_COLOR=1 {TIDEGATE} serve --listen 0 2>&1 | tee out");
    // Behind a pipe it is no terminal: full times and fields.
    let Some((screen, _)) = at_a_terminal_in(&folder, &line, &[("has errors", "\u{3}")]) else { return };
    change.join().unwrap();
    for (part, count) in
        [("servers ready: ", 1), ("1 server ready: 4 tools", 1), ("Configuration changed: reloading", 1)]
    {
        assert_eq!(screen.matches(part).count(), count, "{part}: {screen}");
    }
    assert!(screen.contains("INFO removed server=github"), "{screen}");
    assert!(screen.contains("server=time state=ready tools=4"), "{screen}");
}

#[test]
fn log_lines_as_json() {
    let mut served = Served::start(three_servers(), &["--log-format", "json", "serve", "--listen", "0"]);
    until(|| served.log().contains("servers ready: "));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(served.end(), Some(0));
    let mut lines: Vec<String> = Vec::new();
    for line in served.log().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        line["timestamp"] = "2026-07-28 12:00:00".into();
        let message = without_durations(line["message"].as_str().unwrap());
        line["message"] = message.into();
        let text = line.to_string().replace(&served.folder.path().display().to_string(), "/home/ada");
        lines.push(without_port(&text));
    }
    let is_about_one = |line: &String| line.contains("\"server\":");
    let first = lines.iter().position(is_about_one).unwrap();
    let count = lines[first..].iter().take_while(|line| is_about_one(line)).count();
    lines[first..first + count].sort();
    snapshot("serve-log-json", &(lines.join("\n") + "\n"));
}
