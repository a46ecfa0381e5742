//! What is in the trail, how it is found, and what is noticed when somebody changes it.

use serde_json::{Value, json};

use crate::rig::Folder;

#[test]
fn a_call_and_a_refused_login_are_there_and_tampering_is_named() {
    let folder = Folder::new("file = \"audit.jsonl\"");
    let ann = folder.key("ann");
    let served = folder.serve();
    assert!(served.call(Some(&ann), "demo_add", json!({"b": 2, "a": 1})).is_fine());
    // Clients ask without credentials first, to learn where to log in: that is no login.
    assert_eq!(served.call(None, "demo_add", json!({})).status, 401);
    assert_eq!(served.call(Some("wrong"), "demo_add", json!({})).status, 401);
    assert_eq!(served.call(Some("tidegate_nonsense"), "demo_add", json!({})).status, 401);
    assert!(!served.call(Some(&ann), "no_such_tool", json!({"secret": "hush"})).is_fine());
    served.stop();

    let records = folder.records();
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"start"));
    assert_eq!(kinds.last(), Some(&"stop"));
    let text = folder.read("audit.jsonl");
    assert!(!text.contains("hush") && !text.contains(&ann) && !text.contains('\u{1b}'), "{text}");
    let find = |member: &str, value: &str| records.iter().find(|record| record[member] == value).unwrap();
    let call = find("name", "demo_add");
    for (member, value) in [
        ("kind", "call"),
        ("subject", "ann"),
        ("tenant", "reef"),
        ("issuer", "tidegate:keys"),
        ("method", "tools/call"),
        ("server", "demo"),
        ("outcome", "ok"),
        ("revision", "2026-07-28"),
    ] {
        assert_eq!(call[member], value, "{member} in {call}");
    }
    let refused: Vec<&Value> = records.iter().filter(|record| record["kind"] == "login_refused").collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|record| record["address"] == "127.0.0.1" && record["reason"].is_string()));
    assert!(records.iter().any(|record| record["error"] == "TOOL_NOT_FOUND"), "{records:?}");

    let verified = folder.run(&["audit", "verify"]).exits(0).out;
    assert!(verified.contains("audit.jsonl is sound: "), "{verified}");
    let head = verified.lines().find_map(|line| line.strip_prefix("Head: ")).unwrap();
    folder.run(&["audit", "verify", "--expect", head]).exits(0);
    let json = folder.run(&["audit", "verify", "--json"]).exits(0).json();
    assert_eq!((&json["ok"], &json["head"]), (&json!(true), &json!(head)));

    let search =
        |arguments: &[&str]| folder.run(&[&["audit", "search", "--json"], arguments].concat()).exits(0).out;
    for arguments in [
        &["--subject", "ann", "--tool", "demo_add"][..],
        &["--args", "{\"a\": 1.0, \"b\": 2}"],
        &["--server", "demo", "--outcome", "ok", "--method", "tools/call", "--since", "1h"],
        &["--tenant", "reef", "--name", "demo_add", "--until", "2999-01-01"],
    ] {
        let found = search(arguments);
        assert_eq!(found.lines().count(), 1, "{arguments:?}: {found}");
        assert_eq!(serde_json::from_str::<Value>(&found).unwrap()["seq"], call["seq"]);
    }
    assert_eq!(search(&["--kind", "login_refused"]).lines().count(), 2);
    assert_eq!(search(&["--kind", "login_refused", "--limit", "1"]).lines().count(), 1);
    assert_eq!(search(&["--subject", "bob"]), "");
    let shown = folder.run(&["audit", "search"]).exits(0).out;
    assert!(
        shown.contains("ann (reef)") && shown.contains("tools/call demo_add") && !shown.contains('\u{1b}'),
        "{shown}"
    );

    let seq = call["seq"].as_u64().unwrap();
    folder.write("audit.jsonl", &text.replacen("\"subject\":\"ann\"", "\"subject\":\"bob\"", 1));
    let damaged = folder.run(&["audit", "verify"]).exits(1).out;
    assert!(damaged.contains(&format!("record {seq} was changed")), "{damaged}");
    assert!(damaged.contains("audit.jsonl is damaged"), "{damaged}");
    let without: String =
        text.lines().filter(|line| !line.contains("demo_add")).map(|line| format!("{line}\n")).collect();
    folder.write("audit.jsonl", &without);
    let json = folder.run(&["audit", "verify", "--json"]).exits(1).json();
    assert_eq!((&json["damage"][0]["what"], &json["damage"][0]["seq"]), (&json!("missing"), &json!(seq)));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new("file = \"audit.jsonl\"");
    for (arguments, said) in [
        (&["verify"][..], "there is no audit trail at "),
        (&["verify", "none.jsonl"], "there is no audit trail at none.jsonl"),
        (&["search", "--since", "yesterday"], "must be a time in UTC"),
        (&["search", "--decision", "denied"], "allowed, refused, would_refuse"),
        (&["search", "--outcome", "okay"], "tool_error"),
        (&["search", "--kind", "calls"], "login_refused"),
        (&["search", "--limit", "0"], "--limit"),
        (&["verify", "--expect", "12"], "must be the number and the hash of a record"),
    ] {
        let refused = folder.run(&[&["audit"], arguments].concat()).exits(2);
        assert!(refused.err.contains(said), "{arguments:?}: {refused:?}");
    }
    folder.write("audit.jsonl", "");
    let refused = folder.run(&["audit", "search", "--args", "{"]).exits(2);
    assert!(refused.err.contains("--args is not JSON"), "{refused:?}");
    let elsewhere = Folder::new("stdout = true");
    let refused = elsewhere.run(&["audit", "verify"]).exits(2);
    assert!(refused.err.contains("names no file for an audit trail"), "{refused:?}");
}
