//! Policies that are none: at the start, for `check`, and while a gateway runs.

use std::process::Stdio;

use serde_json::json;

use crate::http::until;
use crate::rig::{Gateway, command, write};

const BASE: &str = "[auth]\nkeys = \"keys.toml\"\n[servers.demo]\nbuiltin = \"demo\"\n";

/// What follows after [`BASE`] and the first line of a folder, so from line 6 on; the line that is named, and the sentence.
const MISTAKES: [(&str, u32, &str); 18] = [
    ("[policy", 6, "is not valid TOML"),
    ("[policy]\ndefault = \"maybe\"", 7, "policy.default"),
    ("[policy]\nmode = \"shade\"", 7, "policy.mode"),
    ("[policy]\ndefault = \"deny\"", 6, "lets nobody do anything"),
    ("[[policy.rules]]\nallow = \"*\"", 7, "allow"),
    ("[[policy.rules]]\nname = \"idle\"", 6, "neither allows nor denies anything"),
    ("[[policy.rules]]\nallow = [\"a\"]\ndeny = [\"b\"]", 6, "both allows and denies"),
    ("[[policy.rules]]\nallow = [\"*\"]\nrole = [\"dev\"]", 8, "did you mean \"roles\"?"),
    ("[[policy.rules]]\nallow = [\"*\"]\nroles = []", 8, "for nobody"),
    ("[[policy.rules]]\nallow = [\"*\"]\nroles = [\"dev*\"]", 8, "compared as they are"),
    ("[[policy.rules]]\nallow = [\"*\"]\nendpoints = [\"nowhere\"]", 8, "there is no such endpoint"),
    ("[[policy.rules]]\nallow = [\"a[\"]", 7, "not a valid glob"),
    // Conditions that do not compile.
    ("[[policy.rules]]\nallow = [\"tool:*\"]\nwhen = 'args.x =='", 8, "is not valid CEL, at character"),
    ("[[policy.rules]]\nallow = [\"tool:*\"]\nwhen = 'arg.x == 1'", 8, "did you mean args?"),
    ("[[policy.rules]]\nallow = [\"*\"]\nwhen = 'args.x == 1'", 8, "not there for everything"),
    ("[[policy.rules]]\nallow = [\"tool:*\"]\nwhen = 'args.x.matches(args.y)'", 8, "must be string literals"),
    // Rules that contradict each other.
    (
        "[[policy.rules]]\nname = \"all\"\nallow = [\"*\"]\n[[policy.rules]]\ndeny = [\"demo_add\"]",
        9,
        "contradicts the rule \"all\" (line 6)",
    ),
    (
        "[[policy.rules]]\nname = \"one\"\nallow = [\"a\"]\n[[policy.rules]]\nname = \"one\"\nallow = [\"b\"]",
        10,
        "is also the name of the rule \"one\" (line 6)",
    ),
];

#[test]
fn a_gateway_does_not_start_with_one_and_check_says_the_same() {
    for (mistake, line, said) in MISTAKES {
        let (folder, issuers) = Gateway::folder(&format!("{BASE}{mistake}\n"));
        let at = format!("tidegate.toml:{line}:");
        let checked = command(folder.path()).arg("check").stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(2), "{mistake}: {told}");
        assert!(told.contains(&at) && told.contains(said), "{mistake}: {told}");
        let Err((code, told)) = Gateway::try_start_in((folder, issuers), vec![]) else {
            panic!("it starts with {mistake}")
        };
        assert_eq!(code, 2, "{mistake}: {told}");
        assert!(told.contains(&at) && told.contains(said), "{mistake}: {told}");
    }
}

#[test]
fn while_it_runs_the_old_policy_stays_in_force() {
    let good = |rule: &str| format!("state_dir = \"state\"\n{BASE}[[policy.rules]]\nallow = [{rule:?}]\n");
    let (folder, issuers) = Gateway::folder("");
    write(folder.path(), "tidegate.toml", &good("demo_echo"));
    let key = command(folder.path()).args(["keys", "add", "ann"]).output().unwrap();
    let key = String::from_utf8(key.stdout).unwrap().trim_end().to_owned();
    let gateway =
        Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|ended| panic!("{ended:?}"));
    let ann = gateway.with_token(&key);
    let session = ann.session();
    let may = |tool: &str| {
        let arguments =
            if tool == "demo_add" { json!({"a": 1, "b": 2}) } else { json!({"message": "hello"}) };
        let modern = ann.call(tool, arguments.clone()).is_fine();
        let legacy = ann.in_session(&session, "tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(modern, legacy.is_fine(), "{tool} in both eras: {legacy:?}");
        modern
    };
    assert!(may("demo_echo") && !may("demo_add"));
    for (mistake, _, said) in MISTAKES {
        let before = gateway.log().len();
        gateway.write("tidegate.toml", &format!("state_dir = \"state\"\n{BASE}{mistake}\n"));
        until(&format!("it is said what is wrong with {mistake}"), || {
            let log = gateway.log();
            let new = &log[before..];
            new.contains("Configuration not changed, because the file has errors") && new.contains(said)
        });
        assert!(may("demo_echo") && !may("demo_add"), "{mistake}");
    }
    // Another one that is good counts, also in the session of before, which is told so.
    let mut stream = ann.stream(&session, &[]);
    assert_eq!(stream.status(), 200);
    gateway.write("tidegate.toml", &good("demo_add"));
    stream.until("notifications/tools/list_changed");
    until("the new policy is in force", || ann.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    assert!(may("demo_add") && !may("demo_echo"));
}
