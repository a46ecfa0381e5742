//! Taking over the servers of other programs.

use tidegate_config::Config;
use tidegate_config::import::{ImportError, ImportSettings, Origin, Program, import};

use crate::folder::Folder;
use crate::{command, env, remote};

/// Nothing is replaced, and everything is written.
const ADD: ImportSettings = ImportSettings { replace: false, dry_run: false };

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
fn what_is_no_reference_elsewhere_becomes_none_here() {
    let folder = Folder::new();
    folder.write("secret.txt", "TOPSECRETFILE");
    let deep = format!("{}x{}", "${A_NONE:-".repeat(3000), "}".repeat(3000));
    for text in [
        "${A_NONE:-${file:secret.txt}}",
        "${env:file:secret.txt}",
        "${env:A_NONE:-${file:secret.txt}}",
        &deep,
    ] {
        let theirs =
            serde_json::json!({"mcpServers": {"x": {"url": "http://127.0.0.1:9/", "headers": {"Z": text}}}});
        let theirs = folder.write("theirs.json", theirs.to_string());
        let path = folder.path("tidegate.toml");
        let options = ImportSettings { replace: true, dry_run: false };
        import(&path, &Origin::File(theirs), options, &env).unwrap();
        let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
        for server in &settings.servers {
            assert!(!remote(server).headers["Z"].contains("TOPSECRETFILE"), "{text}");
        }
    }
}

#[test]
fn servers_are_taken_over_with_their_references() {
    let folder = Folder::new();
    let theirs = folder.write(".vscode/mcp.json", THEIRS);
    let path = folder.path("tidegate.toml");
    let imported = import(&path, &Origin::File(theirs.clone()), ADD, &env).unwrap();
    let names: Vec<&str> = imported.servers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["My-Server", "off", "web"]);
    assert_eq!(imported.files, [theirs]);
    assert_eq!(imported.missing, [("My-Server".to_owned(), vec!["API_KEY".to_owned()])], "D is no reference");
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
    let settings = Config::load(&path, &crate::builtins(), &|name| match name {
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
        "\"My Server\" is called \"My-Server\" here.",
        "\"My-Server\": the value of B_TOKEN looks like a secret",
        "refer to it as ${B_TOKEN}.",
        "\"web\": the value of Authorization looks like a secret",
        "\"web\": \"timeout\" is ignored.",
        "\"nothing\" is skipped: it needs a \"command\" or a \"url\".",
        "\"worse\" is skipped: it must be an object with a \"command\" or a \"url\".",
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
    let dry = import(&path, &from, ImportSettings { dry_run: true, ..ADD }, &env).unwrap();
    assert_eq!(dry.servers.len(), 1);
    assert_eq!(dry.notes, ["\"a\" already exists and is unchanged; replace it with --replace."]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "a dry run writes nothing");
    import(&path, &from, ADD, &env).unwrap();
    let programs = || {
        let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
        settings.servers.iter().map(|server| command(server).program).collect::<Vec<_>>()
    };
    assert_eq!(programs(), ["old", "b"]);
    assert_eq!(import(&path, &from, ImportSettings { replace: true, ..ADD }, &env).unwrap().servers.len(), 2);
    assert_eq!(programs(), ["new", "b"]);
}

#[test]
fn sources_that_are_not_there() {
    let folder = Folder::new();
    let path = folder.path("tidegate.toml");
    let error = import(&path, &Origin::File(folder.path("gone.json")), ADD, &env).unwrap_err();
    assert!(matches!(error, ImportError::File(_)) && error.to_string().contains("gone.json"), "{error}");
    assert!(!path.exists());
    for (text, from) in [
        ("claude", Origin::Program(Program::Claude)),
        ("Cursor", Origin::Program(Program::Cursor)),
        ("vscode", Origin::Program(Program::VsCode)),
        ("claude-desktop", Origin::Program(Program::ClaudeDesktop)),
        ("./claude", Origin::File("./claude".into())),
    ] {
        assert_eq!(Origin::parse(text), from);
    }
}

#[test]
fn what_has_an_equivalent_is_carried_over() {
    let folder = Folder::new();
    let theirs = folder.write(
        "codex/config.toml",
        r#"
        model = "gpt-5"
        [mcp_servers.docs]
        command = "npx"
        args = ["-y", "docs"]
        env_vars = ["TOKEN"]
        startup_timeout_sec = 20
        tool_timeout_sec = 90
        enabled_tools = ["search", "read[1]"]
        disabled_tools = ["drop"]
        required = true
        [mcp_servers.web]
        url = "https://example.com/mcp"
        bearer_token_env_var = "WEB_TOKEN"
        env_http_headers = { X-Team = "TEAM" }
        enabled = false
        [mcp_servers.gate]
        url = "http://127.0.0.1:9123/mcp"
        "#,
    );
    let path = folder.write("tidegate.toml", "listen = \"127.0.0.1:9123\"\n");
    let imported = import(&path, &Origin::File(theirs), ADD, &env).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    insta::assert_snapshot!("carried_over", text);
    assert_eq!(
        imported.notes,
        ["\"docs\": \"required\" is ignored.", "\"gate\" is skipped: it is Tidegate itself."]
    );
    assert!(imported.missing.is_empty(), "what is disabled needs nothing");
    let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
    let docs = &settings.servers[0];
    assert!(docs.offers("read[1]") && !docs.offers("read1") && !docs.offers("drop"));
    assert_eq!(docs.options.init_timeout, std::time::Duration::from_secs(20));
}

#[test]
fn words_that_are_no_program_are_told_apart_from_files() {
    let folder = Folder::new();
    let path = folder.path("tidegate.toml");
    let error = |text: &str| import(&path, &Origin::parse(text), ADD, &env).unwrap_err();
    assert_eq!(
        error("curser").to_string(),
        "there is no file \"curser\", and no program of that name is known; did you mean \"cursor\"?"
    );
    assert!(matches!(error("emacs"), ImportError::Unknown { near: None, .. }));
    assert!(matches!(error("./emacs"), ImportError::File(_)));
}
