//! Files: what they are, where they are, and those of other programs.

use std::path::Path;

use tidegate_client::Target;
use tidegate_config::{Config, DisabledCause, Source};

use crate::folder::Folder;
use crate::{command, env};

fn error(path: &Path) -> String {
    Config::load(path, &crate::builtins(), &env).unwrap_err().to_string()
}

#[test]
fn what_is_no_configuration() {
    let folder = Folder::new();
    for (path, expected) in [
        (folder.path("gone.toml"), "the configuration cannot be read: there is no such file"),
        (folder.path(""), "the configuration is a directory, not a file"),
        (folder.write("bytes.toml", b"a = \"b\"\n\xff\xfe"), "is not valid UTF-8 (line 2)"),
        (folder.write("large.toml", " ".repeat(1024 * 1024 + 1)), "is larger than 1 MiB"),
        (folder.write("large.json", " ".repeat(1024 * 1024 + 1)), "is larger than 1 MiB"),
        (folder.write("broken.json", "{"), "is not valid JSON"),
        (folder.write("other.json", "{\"name\": \"package\"}"), "has no MCP servers"),
    ] {
        let error = error(&path);
        assert!(error.contains(expected) && error.contains(path.to_str().unwrap()), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn paths_start_from_the_file() {
    let folder = Folder::new();
    folder.write("secrets/key", "hush\n");
    folder.write("my tool", "");
    folder.write(".env", "A=file\nB=file\n");
    let path = folder.write(
        "Tidegate.TOML",
        "[servers.x]\ncommand = \"my tool\"\nenv_file = \".env\"\nenv = { B = \"own\", K = \"${file:secrets/key}\" }",
    );
    let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
    let command = command(&settings.servers[0]);
    assert_eq!((command.program.as_str(), command.args.len()), ("my tool", 0));
    let env: Vec<_> = command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("A", "file"), ("B", "own"), ("K", "hush")]);
    assert_eq!(settings.tools.lock_file, folder.path("tidegate.lock"));
}

#[test]
fn a_bad_file_of_variables_is_named_by_its_line() {
    let folder = Folder::new();
    folder.write("vars", "A=1\nhush\n");
    let error = error(&folder.write("t.toml", "[servers.x]\ncommand = \"a\"\nenv_file = \"vars\""));
    assert!(error.contains("3:1: servers.x.env_file: line 2 of ") && !error.contains("hush"), "{error}");
}

#[test]
fn files_of_other_programs_are_taken_as_they_are() {
    let folder = Folder::new();
    let path = folder.write(
        ".mcp.json",
        r#"{"mcpServers": {
            "Brave Search": {"command": "npx", "args": ["brave"], "env": {"KEY": "${TOKEN}"}},
            "off": {"command": "x", "disabled": true},
            "unset": {"url": "https://example.com/${NONE}"},
            "web": {"type": "sse", "url": "https://example.com/sse", "timeout": 5}
        }}"#,
    );
    let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
    let names: Vec<&str> = settings.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["Brave-Search", "web"]);
    assert_eq!(command(&settings.servers[0]).env["KEY"], "hush");
    assert!(settings.servers.iter().all(|server| server.digest.len() == 64));
    assert!(matches!(&settings.servers[1].source, Source::Target(Target::Url(remote)) if remote.sse));
    let notes = settings.notes.join("\n");
    for part in [
        "Server \"Brave Search\" is called \"Brave-Search\" here.",
        "Server \"off\" is disabled (in .mcp.json).",
        "Server \"unset\" is disabled: the environment variable NONE is not set (url). Set it, or put it in .env beside \
         .mcp.json.",
        "Server \"web\": \"timeout\" is ignored.",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("hush"));
    let disabled: Vec<_> = settings
        .disabled
        .iter()
        .map(|server| (server.name.as_str(), server.cause, server.missing.concat()))
        .collect();
    assert_eq!(
        disabled,
        [("off", DisabledCause::Off, String::new()), ("unset", DisabledCause::Missing, "NONE".to_owned()),]
    );
    assert_eq!(settings.tools.lock_file, folder.path("tidegate.lock"));
}

#[test]
fn what_was_asked_for_is_found_whether_or_not_it_exists() {
    let path = Path::new("/does/not/exist.toml");
    assert_eq!(Config::find(Some(path)).as_deref(), Some(path));
    assert!(Config::of_user().unwrap().ends_with("tidegate/tidegate.toml"));
}
