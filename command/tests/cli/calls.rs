//! call: arguments, results, progress, log messages, questions without a terminal, files.

use serde_json::json;

use crate::rig::{Folder, demo, tidegate, tidegate_in, with_canned, with_demo};
use crate::server;

#[test]
fn text_for_people_and_the_result_as_it_came_for_programs() {
    for era in ["legacy", "modern"] {
        assert_eq!(demo(&["call", "add", "a=1", "b=2"], era).exits(0).out, "{\"sum\":3.0}\n");
        for option in ["--json", "--raw"] {
            let json = demo(&["call", "add", "a=1", "b=2", option], era).exits(0).json();
            assert_eq!(json["structuredContent"], json!({"sum": 3.0}));
        }
    }
    // Spaces, order and numbers survive.
    let result =
        r#"{"z": [1.50, 1e3],  "content": [{"type":"text","text":"\u0041"}],"a":12345678901234567890}"#;
    let tools = r#"[{"name":"t","inputSchema":{"type":"object"}}]"#;
    let args = with_canned(&["call", "t", "--json"], &[("RESULT", result), ("TOOLS", tools)]);
    assert_eq!(tidegate(&args).exits(0).out, format!("{result}\n"));
}

#[test]
fn arguments_follow_the_schema() {
    let (url, _) = server::start();
    let words = ["count=3", "tags=x", "tags=007", "fast=true"];
    let call = |args: &[&str], input: &str| {
        let folder = Folder::new();
        folder.write("args.json", r#"{"count": 3, "tags": ["x", "007"], "fast": true}"#);
        let all: Vec<&str> = ["call", url.as_str(), "mixed"].iter().chain(args).copied().collect();
        tidegate_in(&folder, &all, input)
    };
    let expected = "3 x+007 true\n";
    assert_eq!(call(&words, "").exits(0).out, expected);
    assert_eq!(call(&["count:=3", "tags:=[\"x\",\"007\"]", "fast:=true"], "").exits(0).out, expected);
    let whole = r#"{"count": 3, "tags": ["x", "007"], "fast": true}"#;
    assert_eq!(call(&["--args", whole], "").exits(0).out, expected);
    assert_eq!(call(&["--args", "@args.json"], "").exits(0).out, expected);
    assert_eq!(call(&["--args", "-"], whole).exits(0).out, expected);
}

#[test]
fn a_tool_that_fails_is_1() {
    let (url, _) = server::start();
    for era in ["legacy", "modern"] {
        let failed = tidegate(&["call", &url, "fails", "--era", era]).exits(1);
        assert_eq!(failed.out, "The tool reported an error:\nThe tide is out\n");
        let failed = tidegate(&["call", &url, "fails", "--era", era, "--json"]).exits(1);
        assert_eq!(failed.json()["isError"], true);
    }
}

#[test]
fn progress_and_log_messages_are_lines_with_v() {
    for era in ["legacy", "modern"] {
        let told = demo(&["call", "count", "to=3", "-v"], era).exits(0);
        assert_eq!(told.out, "Counted to 3\n");
        assert!(told.err.contains("progress 2 of 3 counted to 2\n"), "{}", told.err);
        assert_eq!(demo(&["call", "count", "to=3"], era).exits(0).err, "");
    }
    let (url, _) = server::start();
    for era in ["legacy", "modern"] {
        let told = tidegate(&["call", &url, "logs", "-v", "--era", era]).exits(0);
        assert!(told.err.contains("server info: the water rises\n"), "{era}: {}", told.err);
    }
}

#[test]
fn without_a_terminal_questions_are_declined() {
    for era in ["legacy", "modern"] {
        let declined = demo(&["call", "greet"], era).exits(0);
        assert_eq!(declined.out, "Hello, whoever you are!\n");
        let note = "note: the server asks \"[demo] What is your name?\"; declined, because there is no terminal to ask on\n";
        assert_eq!(declined.err, note);
    }
}

#[test]
fn files_are_saved_and_never_over_others() {
    let (url, _) = server::start();
    let folder = Folder::new();
    let args = ["call", &url, "picture", "--save", "pictures"];
    assert!(tidegate_in(&folder, &args, "").exits(0).err.contains("saved pictures/picture.png (8 bytes)"));
    assert!(tidegate_in(&folder, &args, "").exits(0).err.contains("saved pictures/picture-2.png (8 bytes)"));
    let saved = std::fs::read(folder.path().join("pictures/picture.png")).unwrap();
    assert_eq!(saved, b"\x89PNG\r\n\x1a\n");
}

#[test]
fn results_are_checked_on_request() {
    let tools =
        r#"[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["n"]}}]"#;
    let result = r#"{"content":[],"structuredContent":{"m":1}}"#;
    let variables = [("TOOLS", tools), ("RESULT", result)];
    tidegate(&with_canned(&["call", "t"], &variables)).exits(0);
    let wrong = tidegate(&with_canned(&["call", "t", "--validate"], &variables)).exits(4);
    assert!(wrong.err.contains("does not fit its output schema"), "{}", wrong.err);
    tidegate(&with_demo(&["call", "add", "a=1", "b=2", "--validate"], "both")).exits(0);
}
