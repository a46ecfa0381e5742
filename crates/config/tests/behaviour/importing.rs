//! Taking over the servers of other programs.

use tidegate_config::Config;
use tidegate_config::import::{ImportError, Origin, import};

use crate::folder::Folder;
use crate::{command, env, remote};

const THEIRS: &str = r#"{
    // Comments are fine.
    "inputs": [{"id": "api-key"}],
    "servers": {
        "My Server": {"command": "npx", "args": ["-y", 5, "${workspaceFolder}/x", "${input:api-key}"],
            "env": {"A": "${env:TOKEN}", "B_TOKEN": "literal-hush", "C": "plain", "D": "${what ever}"}, "cwd": "sub"},
        "web": {"type": "sse", "url": "https://example.com", "headers": {"Authorization": "Bearer literal-hush"},
            "timeout": 60},
        "off": {"command": "x", "disabled": true},
        "nothing": {},
        "worse": 5
    }
}"#;

#[test]
fn servers_are_taken_over_with_their_references() {
    let folder = Folder::new();
    let theirs = folder.write(".vscode/mcp.json", THEIRS);
    let path = folder.path("tidegate.toml");
    let imported = import(&path, &Origin::File(theirs.clone()), false, false).unwrap();
    let names: Vec<&str> = imported.servers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["My-Server", "off", "web"]);
    assert_eq!(imported.files, [theirs]);
    let text = std::fs::read_to_string(&path).unwrap();
    for part in [
        "A = \"${TOKEN}\"",
        "\"${API_KEY}\"",
        "B_TOKEN = \"literal-hush\"",
        "D = \"$${what ever}\"",
        "enabled = false",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let settings = Config::load(&path, &|name| match name {
        "API_KEY" => Some("key".to_owned()),
        name => env(name),
    })
    .unwrap();
    let program = command(&settings.servers[0]);
    let here = folder.path("");
    let here = here.to_str().unwrap().trim_end_matches('/');
    assert_eq!(program.args, ["-y", "5", &format!("{here}/x"), "key"]);
    assert_eq!((program.env["A"].as_str(), program.env["D"].as_str()), ("hush", "${what ever}"));
    assert_eq!(program.cwd, Some(folder.path("sub")));
    assert!(remote(&settings.servers[1]).sse);
    let notes = imported.notes.join("\n");
    for part in [
        "\"My Server\" is called \"My-Server\" here",
        "\"My-Server\": the value of B_TOKEN looks like a secret",
        "write ${B_TOKEN}",
        "\"web\": the value of Authorization looks like a secret",
        "\"web\": \"timeout\" is left out",
        "\"nothing\" is left out: it has neither a command nor a url",
        "\"worse\" is left out: it is not an object",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("hush") && !format!("{imported:?}").contains("hush"));
    assert_eq!(notes.matches("looks like a secret").count(), 2, "{notes}");
}

#[test]
fn what_is_there_stays_unless_it_is_to_be_replaced() {
    let folder = Folder::new();
    let theirs =
        folder.write("mcp.json", r#"{"mcpServers": {"a": {"command": "new"}, "b": {"command": "b"}}}"#);
    let before = "[servers.a]\ncommand = \"old\"\n";
    let path = folder.write("tidegate.toml", before);
    let from = Origin::File(theirs);
    let dry = import(&path, &from, false, true).unwrap();
    assert_eq!(dry.servers.len(), 1);
    assert_eq!(dry.notes, ["\"a\" is there already and stays as it is"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "a dry run writes nothing");
    import(&path, &from, false, false).unwrap();
    let programs = || {
        let settings = Config::load(&path, &env).unwrap();
        settings.servers.iter().map(|server| command(server).program).collect::<Vec<_>>()
    };
    assert_eq!(programs(), ["old", "b"]);
    assert_eq!(import(&path, &from, true, false).unwrap().servers.len(), 2);
    assert_eq!(programs(), ["new", "b"]);
}

#[test]
fn sources_that_are_not_there() {
    let folder = Folder::new();
    let path = folder.path("tidegate.toml");
    let error = import(&path, &Origin::File(folder.path("gone.json")), false, false).unwrap_err();
    assert!(matches!(error, ImportError::File(_)) && error.to_string().contains("gone.json"), "{error}");
    assert!(!path.exists());
    for (text, from) in [
        ("claude", Origin::Claude),
        ("Cursor", Origin::Cursor),
        ("vscode", Origin::VsCode),
        ("./claude", Origin::File("./claude".into())),
    ] {
        assert_eq!(Origin::parse(text), from);
    }
}
