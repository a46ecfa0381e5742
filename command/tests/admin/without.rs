//! No gateway runs: commands say so, and what files say.

use serde_json::{Value, json};

use crate::rig::{Gateway, command, write};
use crate::{DEMO, json_said, refused, said, tidegate};

const CONFIG: &str = "listen = \"127.0.0.1:1\"\n[servers.demo]\nbuiltin = \"demo\"\n[servers.off]\ncommand = \"nothing\"\nenabled = false\n[servers.needs]\nurl = \"https://example.com/mcp\"\nheaders = { Authorization = \"Bearer ${NEEDED_TOKEN}\" }\n";

#[test]
fn status_and_list_say_what_the_files_say() {
    let (folder, _) = Gateway::folder(CONFIG);
    let folder = folder.path();
    let status = tidegate(folder, &["status"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.status.code(), Some(3), "{text}");
    for part in [
        "No gateway runs",
        "tidegate.toml",
        "demo",
        "configured",
        "enabled = false",
        "NEEDED_TOKEN is not set",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let status: Value = serde_json::from_slice(&tidegate(folder, &["status", "--json"]).stdout).unwrap();
    assert_eq!(status["running"], false);
    let states = |said: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        said["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (text(&one["name"]), text(&one["state"])))
            .collect()
    };
    let expected = [("demo", "configured"), ("off", "disabled"), ("needs", "disabled")];
    let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
    assert_eq!(states(&status), expected);
    let list = json_said(folder, &["list"]);
    assert_eq!((states(&list), &list["running"]), (expected.to_vec(), &json!(false)));
    assert_eq!(said(folder, &["list"]).lines().count(), 4);
}

#[test]
fn what_was_last_listed_is_remembered() {
    let (folder, _) = Gateway::folder(&format!("listen = \"127.0.0.1:1\"\n{DEMO}"));
    let mut serving = command(folder.path());
    let serving = serving.args(["serve", "--listen", "127.0.0.1:0"]).stdout(std::process::Stdio::null());
    let mut serving = serving.stderr(std::process::Stdio::null()).spawn().unwrap();
    let lists = folder.path().join("state/lists");
    crate::http::until("its lists are kept", || {
        std::fs::read_dir(&lists).is_ok_and(|mut files| {
            files.any(|file| file.is_ok_and(|file| file.path().extension().is_some_and(|it| it == "json")))
        })
    });
    serving.kill().unwrap();
    serving.wait().unwrap();
    let list = json_said(folder.path(), &["list"]);
    assert_eq!((&list["running"], &list["servers"][0]["tools"]), (&json!(false), &json!(4)), "{list}");
}

#[test]
fn what_needs_a_gateway_fails_with_a_sentence() {
    let (folder, _) = Gateway::folder(CONFIG);
    for arguments in [
        &["restart", "demo"][..],
        &["reset", "demo"],
        &["disable", "demo", "--until-restart"],
        &["enable", "demo", "--until-restart"],
        &["logs", "--set-level", "debug"],
        &["explain"],
    ] {
        let (code, why) = refused(folder.path(), arguments);
        assert_eq!(code, Some(3), "{arguments:?}: {why}");
        assert!(why.contains("no gateway answers at http://127.0.0.1:1"), "{why}");
        assert!(why.contains("tidegate serve"), "{why}");
    }
    let (code, why) = refused(folder.path(), &["logs"]);
    assert_eq!(code, Some(3), "{why}");
    assert!(why.contains("there is nothing to show"), "{why}");
}

#[test]
fn enable_and_disable_change_the_file_and_nothing_else_in_it() {
    let (folder, _) = Gateway::folder("");
    let before = "# Mine.\nstate_dir = \"state\"\nlisten = \"127.0.0.1:1\"\n\n[servers.demo] # the demonstration\nbuiltin = \"demo\"\n\n[servers.other]\ncommand = \"x\"\n[servers.other.env]\nA = \"b\"\n";
    write(folder.path(), "tidegate.toml", before);
    let file = || std::fs::read_to_string(folder.path().join("tidegate.toml")).unwrap();
    said(folder.path(), &["disable", "other"]);
    assert_eq!(file(), before.replace("command = \"x\"\n", "command = \"x\"\nenabled = false\n"));
    let again = json_said(folder.path(), &["disable", "other"]);
    assert_eq!((&again["enabled"], &again["running"]), (&json!(false), &json!(false)));
    said(folder.path(), &["enable", "other"]);
    assert_eq!(file(), before);
    let (code, why) = refused(folder.path(), &["disable", "othre"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("did you mean \"other\"?"), "{why}");
    // A file of another program is not ours to change.
    write(folder.path(), "servers.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}");
    let (code, why) = refused(folder.path(), &["disable", "a", "--config", "servers.json"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("belongs to another program"), "{why}");
}

#[test]
fn a_name_that_cannot_be_one_asks_nobody() {
    let (folder, _) = Gateway::folder(CONFIG);
    for name in ["../status", "a/b", "", "a b"] {
        let done = command(folder.path()).args(["restart", "--", name]).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{done:?}");
    }
}

#[test]
fn the_end_of_the_log_file_is_shown() {
    for format in ["pretty", "json"] {
        let log = format!("[log]\nfile = \"gateway.log\"\nformat = \"{format}\"\n");
        let (folder, _) = Gateway::folder(&format!("listen = \"127.0.0.1:1\"\n{DEMO}{log}"));
        let mut serving = command(folder.path());
        let mut serving = serving
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let file = || std::fs::read_to_string(folder.path().join("gateway.log")).unwrap_or_default();
        crate::http::until("it is ready", || file().contains("1 server ready"));
        serving.kill().unwrap();
        serving.wait().unwrap();
        let text = said(folder.path(), &["logs"]);
        assert!(text.contains("1 server ready: 4 tools"), "{format}: {text}");
        assert!(said(folder.path(), &["logs", "--server", "demo"]).contains("ready: 4 tools"));
        assert_eq!(said(folder.path(), &["logs", "--limit", "1"]).lines().count(), 1);
        assert_eq!(said(folder.path(), &["logs", "--level", "error"]), "", "{format}: {text}");
        let (_, note) = refused(folder.path(), &["logs"]);
        assert!(note.contains("no gateway runs; this is the end of"), "{note}");
        let lines = said(folder.path(), &["logs", "--json"]);
        lines.lines().for_each(|line| assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}"));
    }
}
