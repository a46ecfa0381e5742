//! A policy that is changed while the gateway runs, and what `check --as` knows of those who have keys.

use serde_json::json;

use crate::decisions::{AUTH, RULES, find, serve};
use crate::rig::command;

#[test]
fn a_policy_that_is_changed_or_gone_is_in_the_log_and_in_the_trail() {
    let (gateway, callers) = serve(RULES, &[("bob", "none")]);
    let (bob, folder) = (&callers[0], gateway.folder.path());
    let said = json!({"message": "hello"});
    assert!(!bob.call("demo_echo", said.clone()).is_fine());
    let at_first = find(folder, &["--kind", "policy"], 1).remove(0);
    assert_eq!((&at_first["mode"], &at_first["default"]), (&json!("enforce"), &json!("deny")), "{at_first}");
    assert_eq!(at_first["rules"], 3, "{at_first}");

    let (before, _) = RULES.split_once("[policy]").unwrap();
    gateway.write("tidegate.toml", &format!("state_dir = \"state\"\n{AUTH}{before}"));
    gateway.logs("no policy: everybody who may call may do everything, unlike before");
    let changes = find(folder, &["--kind", "policy"], 2);
    let gone = changes.iter().find(|record| record["mode"] == "none");
    assert_eq!(gone.map(|record| &record["rules"]), Some(&json!(0)), "{changes:?}");
    assert!(bob.call("demo_echo", said.clone()).is_fine(), "nothing forbids it any more");

    // What is no policy changes nothing.
    gateway.write("tidegate.toml", &format!("state_dir = \"state\"\n{AUTH}{RULES}when = 'args.'\n"));
    gateway.logs("when");
    assert!(bob.call("demo_echo", said.clone()).is_fine());
    gateway.write("tidegate.toml", &format!("state_dir = \"state\"\n{AUTH}{RULES}"));
    let again = find(folder, &["--kind", "policy"], 3);
    let same = again.iter().filter(|record| record["digest"] == at_first["digest"]).count();
    assert_eq!(same, 2, "the same rules have the same digest: {again:?}");
    assert!(!bob.call("demo_echo", said).is_fine());
    let verified = command(folder).args(["audit", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn check_knows_the_roles_and_the_tenant_of_a_key() {
    let rules = "[servers.demo]\nbuiltin = \"demo\"\n[[policy.rules]]\nname = \"testers of reef\"\nallow = [\"demo_echo\"]\n\
                 roles = [\"tester\"]\ntenants = [\"reef\"]\n";
    let (gateway, _) = serve(rules, &[("bob", "none")]);
    let folder = gateway.folder.path();
    gateway.add_key(&["ann", "--role", "tester", "--tenant", "reef"]);
    let asks = |arguments: &[&str]| {
        let mut check = command(folder);
        check.args(["check", "--call", "demo_echo", "--args", "{}", "--json", "--as"]).args(arguments);
        let done = check.output().unwrap();
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.code(), out)
    };
    for (arguments, is_allowed) in [
        (&["ann"][..], true),
        (&["bob"], false),
        (&["bob", "--role", "tester", "--tenant", "reef"], true),
        // What is said counts instead of what the key says.
        (&["ann", "--role", "other"], false),
        (&["ann", "--tenant", "tide"], false),
        (&["somebody"], false),
    ] {
        let (code, out) = asks(arguments);
        let allowed = out.contains("testers of reef") && out.contains("\"allowed\":true");
        assert_eq!(allowed, is_allowed, "{arguments:?}: {code:?} {out}");
    }
}
