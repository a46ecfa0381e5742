//! `tidegate keys`: what is made, where, and what is said about it.

use crate::rig::{Done, Folder, tidegate_in};

fn keys(folder: &Folder, args: &[&str]) -> Done {
    tidegate_in(folder, &[&["keys"], args].concat(), "")
}

/// A folder whose configuration has keys.
fn with_auth() -> Folder {
    let folder = Folder::new();
    folder.write(
        "tidegate.toml",
        "state_dir = \"state\"\n[auth]\nkeys = \"secrets/keys.toml\"\n[endpoints.research]\n[servers.demo]\nbuiltin = \"demo\"\n",
    );
    folder
}

fn is_key(text: &str) -> bool {
    let line = text.strip_suffix('\n').unwrap_or_default();
    let rest = line.strip_prefix("tidegate_").and_then(|rest| rest.split_once('_'));
    rest.is_some_and(|(id, secret)| {
        let word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        id.len() == 8 && secret.len() == 49 && word(id) && word(secret)
    })
}

#[test]
fn a_key_is_alone_on_standard_output_and_nowhere_else() {
    let folder = with_auth();
    let args = ["add", "ann", "--tenant", "acme", "--role", "dev", "--role", "ops", "--scope", "mcp"];
    let more = ["--endpoint", "research", "--endpoint", "default", "--expires", "90d"];
    let added = keys(&folder, &[&args[..], &more].concat()).exits(0);
    assert!(is_key(&added.out), "{}", added.out);
    assert!(added.err.starts_with("Added a key for ann to "), "{}", added.err);
    assert!(added.err.contains("keys.toml. It is good until 20"), "{}", added.err);
    assert!(!added.err.contains("[auth]"), "the configuration has it: {}", added.err);
    let key = added.out.trim();
    let file = folder.read("secrets/keys.toml");
    assert!(!file.contains(key) && !added.err.contains(key));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path().join("secrets/keys.toml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let listed = keys(&folder, &["list", "--json"]).exits(0).json();
    let ann = &listed["keys"][0];
    assert_eq!((&ann["name"], &ann["tenant"]), (&"ann".into(), &"acme".into()));
    assert_eq!(ann["roles"], serde_json::json!(["dev", "ops"]));
    assert_eq!(ann["scopes"], serde_json::json!(["mcp"]));
    assert_eq!(ann["endpoints"], serde_json::json!(["research", "default"]));
    assert_eq!((&ann["state"], &ann["lastUsed"]), (&"valid".into(), &serde_json::Value::Null));
    assert!(key.contains(ann["id"].as_str().unwrap()));
    let shown = keys(&folder, &["list"]).exits(0).out;
    assert!(shown.lines().nth(1).unwrap().starts_with("ann "), "{shown}");
    assert!(shown.contains("never") && shown.contains("valid until 20") && !shown.contains(key), "{shown}");
}

#[test]
fn what_is_wrong_makes_no_key() {
    let folder = with_auth();
    keys(&folder, &["add", "ann"]).exits(0);
    let before = folder.read("secrets/keys.toml");
    for (args, said) in [
        (&["add", "ann"][..], "ann"),
        (&["add", ""], "The name of a key"),
        (&["add", "bob\u{200b}"], "The name of a key"),
        (&["add", "bob", "--tenant", " acme"], "A tenant is"),
        (&["add", "bob", "--role", "a b"], "cannot be a role"),
        (&["add", "bob", "--scope", "a b"], "cannot be a scope"),
        (
            &["add", "bob", "--endpoint", "reserch"],
            "there is no endpoint \"reserch\"; did you mean \"research\"?",
        ),
        (&["add", "bob", "--expires", "0s"], "must be longer than 0"),
        (&["add", "bob", "--expires", "soon"], "must be a time"),
        (&["revoke", "anm"], "did you mean \"ann\"?"),
        (&["rotate", "zoe"], "tidegate keys list shows the keys."),
        (&["list", "--file", "none.toml"], "There is no file of API keys at none.toml"),
        (&["list", "--config", "none.toml"], "none.toml"),
    ] {
        let refused = keys(&folder, args).exits(2);
        assert!(refused.err.contains(said), "{args:?}: {}", refused.err);
        assert_eq!(refused.out, "", "{args:?}");
    }
    assert_eq!(folder.read("secrets/keys.toml"), before);
    let taken = keys(&folder, &["add", "ann"]).err;
    assert!(taken.contains("tidegate keys rotate"), "{taken}");
    folder.write("secrets/keys.toml", "[[keys]]\nname = 5\n");
    assert!(keys(&folder, &["add", "bob"]).exits(2).err.contains("is not valid"));
    assert_eq!(
        folder.read("secrets/keys.toml"),
        "[[keys]]\nname = 5\n",
        "what cannot be read is not overwritten"
    );
}

#[test]
fn keys_are_revoked_and_rotated() {
    let folder = with_auth();
    let first = keys(&folder, &["add", "ann", "--tenant", "acme", "--expires", "1h"]).exits(0).out;
    let second = keys(&folder, &["rotate", "ann", "--grace", "24h"]).exits(0);
    assert!(is_key(&second.out) && second.out != first);
    assert!(second.err.contains("the old one is good until 20"), "{}", second.err);
    let states = || {
        let listed = keys(&folder, &["list", "--json"]).exits(0).json();
        let all = listed["keys"].as_array().unwrap().clone();
        all.iter().map(|key| key["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(), ["valid", "valid"]);
    let third = keys(&folder, &["rotate", "ann"]).exits(0);
    assert!(is_key(&third.out) && third.err.contains("the old one is not good any more"), "{}", third.err);
    assert_eq!(states(), ["revoked", "revoked", "valid"], "what was there before is seen");
    let listed = keys(&folder, &["list", "--json"]).json();
    assert_eq!(listed["keys"][2]["tenant"], "acme", "the holder stays the same");
    let id = listed["keys"][2]["id"].as_str().unwrap();
    let revoked = keys(&folder, &["revoke", id]).exits(0);
    assert_eq!((revoked.out.as_str(), revoked.err), ("", format!("Revoked the key {id} of ann.\n")));
    assert_eq!(states(), ["revoked", "revoked", "revoked"]);
    assert!(keys(&folder, &["revoke", "ann"]).exits(0).err.contains("was revoked before"));
    // Nobody gets access back by a command that is about something else.
    let before = folder.read("secrets/keys.toml");
    for args in
        [&["rotate", "ann"][..], &["rotate", id], &["rotate", "ann", "--grace", "1h"], &["add", "ann"]]
    {
        let refused = keys(&folder, args).exits(2);
        assert!(
            refused.err.contains("a revoked name is not used again: make a key under another name"),
            "{}",
            refused.err
        );
        assert!(!refused.err.contains("keys rotate") && refused.out.is_empty(), "{}", refused.err);
    }
    assert_eq!(folder.read("secrets/keys.toml"), before);
}

#[test]
fn a_configuration_that_does_not_know_the_file_is_told_how() {
    // Such a configuration cannot be served before it has keys.
    let folder = Folder::new();
    folder.write("tidegate.toml", "listen = \"0.0.0.0:8765\"\n[servers.demo]\nbuiltin = \"demo\"\n");
    let added = keys(&folder, &["add", "ann"]).exits(0);
    assert!(is_key(&added.out));
    assert!(added.err.contains("it needs these lines:\n\n[auth]\nkeys = \"keys.toml\"\n"), "{}", added.err);
    assert!(folder.read("keys.toml").contains("name = \"ann\""));
    // Elsewhere: by its whole path.
    let other = keys(&folder, &["add", "bob", "--file", "sub/other.toml"]).exits(0);
    let whole = folder.path().join("sub/other.toml");
    assert!(other.err.contains(&format!("keys = \"{}\"", whole.display())), "{}", other.err);
    // What it has is not asked for.
    folder.write("tidegate.toml", "[[auth.jwt]]\nissuer = \"https://id.example.com\"\n");
    let line = keys(&folder, &["add", "cid"]).exits(0).err;
    assert!(line.contains("it needs this line below [auth]:\n\nkeys = \"keys.toml\"\n"), "{line}");
    folder.write("tidegate.toml", "[auth]\nkeys = \"keys.toml\"\n");
    let instead = keys(&folder, &["add", "dan", "--file", "sub/other.toml"]).exits(0).err;
    assert!(instead.contains("has another file of keys") && !instead.contains("\n[auth]"), "{instead}");
    // Without any configuration a file has to be named.
    let alone = Folder::new();
    assert!(keys(&alone, &["add", "ann"]).exits(2).err.contains("no tidegate.toml here"));
    let named = keys(&alone, &["add", "ann", "--file", "mine.toml"]).exits(0);
    assert!(is_key(&named.out) && !named.err.contains("[auth]"), "{}", named.err);
    assert!(keys(&alone, &["list", "--file", "mine.toml"]).exits(0).out.contains("ann"));
}

#[test]
fn a_key_that_lacks_what_everybody_needs_is_warned_about() {
    let folder = Folder::new();
    folder.write(
        "tidegate.toml",
        "[auth]\nkeys = \"keys.toml\"\nscopes = [\"mcp\", \"read\"]\n[auth.scope_includes]\nadmin = [\"all\"]\nall = [\"mcp\", \"read\"]\n",
    );
    let warned = keys(&folder, &["add", "ann", "--scope", "mcp"]).exits(0);
    assert!(warned.err.contains("scopes that this key does not have: read. Until"), "{}", warned.err);
    for (name, scopes) in
        [("bob", &["--scope", "admin"][..]), ("cid", &[]), ("dan", &["--scope", "mcp", "--scope", "read"])]
    {
        let fine = keys(&folder, &[&["add", name], scopes].concat()).exits(0);
        assert!(!fine.err.contains("warning"), "{}", fine.err);
    }
}
