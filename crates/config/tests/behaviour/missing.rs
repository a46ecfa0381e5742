//! Servers that refer to what does not exist, and the `.env` beside a configuration.

use tidegate_config::{Config, DisabledCause, ServerEntry, Settings, missing_note};

use crate::folder::Folder;
use crate::{command, env, parse, remote};

fn load(folder: &Folder) -> Settings {
    Config::load(&folder.path("tidegate.toml"), &crate::builtins(), &env).unwrap()
}

fn names(settings: &Settings) -> Vec<&str> {
    settings.servers.iter().map(|server| server.name.as_str()).collect()
}

#[test]
fn an_unset_variable_disables_that_server_and_no_other() {
    let settings = parse(
        "[servers.github]\nurl = \"https://example.com\"\n\n[servers.github.headers]\n\
         Authorization = \"Bearer ${GITHUB_TOKEN}\"\n\n[servers.time]\ncommand = \"time\"\n",
    )
    .unwrap();
    assert_eq!(names(&settings), ["time"]);
    let [disabled] = settings.disabled.as_slice() else { panic!("{:?}", settings.disabled) };
    assert_eq!((disabled.name.as_str(), disabled.cause), ("github", DisabledCause::Missing));
    assert_eq!(disabled.missing, ["GITHUB_TOKEN"]);
    assert_eq!(
        settings.notes,
        ["Server \"github\" is disabled: the environment variable GITHUB_TOKEN is not set \
          (servers.github.headers.Authorization, line 5). Set it, or put it in .env beside tidegate.toml."]
    );
}

#[test]
fn all_that_is_missing_is_in_one_note() {
    let settings = parse(
        r#"
        [servers.a]
        command = "run ${ONE} ${TOKEN} ${TWO}"
        args = ["${THREE}"]
        env = { K = "${file:/does/not/exist}", L = "${ONE}" }
        env_file = "/does/not/exist/either"
        "#,
    )
    .unwrap();
    assert_eq!(settings.disabled[0].missing, ["ONE", "TWO", "THREE"]);
    insta::assert_snapshot!("all_that_is_missing", settings.notes.join("\n"));
}

#[test]
fn whatever_a_field_would_have_been_nothing_false_is_said_about_it() {
    for field in [
        "url = \"${NONE}\"",
        "command = \"${NONE}\"",
        "command = [\"${NONE}\"]",
        "builtin = \"${NONE}\"",
        "url = \"http://a\"\ntransport = \"${NONE}\"",
        "command = \"a\"\nera = \"${NONE}\"",
        "command = \"a\"\ntimeout = \"${NONE}\"",
        "command = \"a\"\nmax_message = \"${NONE}\"",
        "command = \"a\"\nprefix = \"${NONE}\"",
        "command = \"a\"\nallow = [\"${NONE}[\"]",
        "command = \"a\"\ncwd = \"${NONE}\"",
        "command = \"a\"\nenv_file = \"${NONE}\"",
        "command = \"a\"\ntools.t.name = \"${NONE}\"",
        "command = \"a\"\nbreaker.open_for = \"${NONE}\"",
    ] {
        let settings =
            parse(&format!("[servers.x]\n{field}")).unwrap_or_else(|error| panic!("{field}: {error}"));
        assert!(settings.servers.is_empty(), "{field}");
        assert_eq!(settings.disabled[0].missing, ["NONE"], "{field}");
    }
}

#[test]
fn a_server_with_mistakes_is_wrong_even_if_something_is_missing() {
    let error = parse("[servers.x]\nurl = \"${NONE}\"\ntiemout = \"5s\"\n").unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].ends_with("2:1: servers.x.url: the environment variable NONE is not set. Set it, or put it in .env beside tidegate.toml."), "{error}");
    assert!(lines[1].contains("3:1: servers.x: unknown field"), "{error}");
}

#[test]
fn a_file_beside_the_configuration_has_variables_for_it() {
    let folder = Folder::new();
    folder.write(
        "tidegate.toml",
        "[servers.x]\ncommand = \"run ${LATER}\"\nenv = { T = \"${TOKEN}\", L = \"${LATER}\" }\n",
    );
    assert!(names(&load(&folder)).is_empty());
    // The environment comes first, and nothing else of the file reaches the program.
    folder.write(".env", "# mine\nLATER='sk-dotenv-0001'\nTOKEN=other\nUNUSED=1\n");
    let settings = load(&folder);
    let program = command(&settings.servers[0]);
    assert_eq!(program.args, ["sk-dotenv-0001"]);
    assert_eq!((program.env["T"].as_str(), program.env["L"].as_str()), ("hush", "sk-dotenv-0001"));
    assert_eq!(program.env.len(), 2);
    assert!(settings.disabled.is_empty());
    assert!(!format!("{settings:?}").contains("sk-dotenv-0001"));
    assert_eq!(tidegate_service::secrets::mask("key sk-dotenv-0001"), "key ***");
    // The same goes for the file of another program.
    let theirs =
        folder.write("mcp.json", r#"{"mcpServers": {"y": {"url": "https://example.com/${LATER}"}}}"#);
    assert_eq!(
        remote(&Config::load(&theirs, &crate::builtins(), &env).unwrap().servers[0]).url.path(),
        "/sk-dotenv-0001"
    );
}

#[test]
fn a_broken_file_of_variables_stops_nothing() {
    let folder = Folder::new();
    folder.write("tidegate.toml", "[servers.x]\nurl = \"https://example.com/${LATER}\"\n");
    folder.write(".env", "LATER=x\nhush hush\n1=2\n");
    let settings = load(&folder);
    assert_eq!(names(&settings), ["x"]);
    let notes = settings.notes.join("\n");
    assert!(
        notes.contains("Line 2 of ") && notes.contains("and 1 more are ignored: they are not NAME=value."),
        "{notes}"
    );
    assert!(!notes.contains("hush"), "{notes}");
    folder.write(".env", format!("LATER={}", "x".repeat(1024 * 1024)));
    let settings = load(&folder);
    assert_eq!(settings.disabled[0].missing, ["LATER"]);
    assert!(
        settings.notes.join("\n").contains(".env is larger than 1 MiB. It is ignored."),
        "{:?}",
        settings.notes
    );
    // A virtual environment of Python.
    std::fs::remove_file(folder.path(".env")).unwrap();
    std::fs::create_dir(folder.path(".env")).unwrap();
    assert_eq!(load(&folder).notes.len(), 1);
}

#[cfg(unix)]
#[test]
fn files_with_secrets_that_others_can_read_are_noted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let text = "[servers.x]\ncommand = \"run\"\nenv_file = \"vars\"\n\
                env = { API_KEY = \"hush\", LEVEL = \"1\", T = \"${LATER}\", U_TOKEN = \"${LATER}\" }\n\
                [memory.embeddings]\nurl = \"http://127.0.0.1:1\"\nmodel = \"m\"\napi_key = \"hush\"\n";
    let files =
        [folder.write("tidegate.toml", text), folder.write(".env", "LATER=x"), folder.write("vars", "A=1")];
    let mode = |mode: u32| {
        for file in &files {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    mode(0o600);
    assert_eq!(load(&folder).notes, [""; 0]);
    mode(0o640);
    let notes = load(&folder).notes.join("\n").replace(folder.path("").to_str().unwrap(), "");
    insta::assert_snapshot!("files_that_others_can_read", notes);
    let key = "0123456789abcdef0123456789abcdef";
    folder.write(
        "tidegate.toml",
        format!("sealing_keys = [\"${{NONE:-}}\", {key:?}]\n[servers.x]\ncommand = \"run\"\n"),
    );
    let notes = load(&folder).notes;
    assert!(notes.iter().any(|note| note.contains("secrets in plain text (sealing_keys)")), "{notes:?}");
    // Nobody needs to hear of a file that is not used, or of a configuration without secrets.
    folder.write("tidegate.toml", "[servers.x]\ncommand = \"run\"\n");
    assert_eq!(load(&folder).notes, [""; 0]);
}

#[test]
fn commands_can_ask_what_is_missing() {
    let folder = Folder::new();
    folder.write(".env", "KNOWN=1");
    let entry = ServerEntry {
        command: Some("run".to_owned()),
        args: vec!["${ONE} ${KNOWN}".to_owned(), "${TWO:-x}".to_owned()],
        env: [("A".to_owned(), "${THREE} ${ONE} ${TOKEN}".to_owned())].into(),
        ..ServerEntry::default()
    };
    let config = folder.path("tidegate.toml");
    let missing = entry.missing_variables(&config, &env);
    assert_eq!(missing, ["ONE", "THREE"]);
    assert_eq!(
        missing_note("x", &missing, &config),
        "\"x\" needs ONE and THREE, which are not set. Set them, or put them in .env beside tidegate.toml."
    );
    assert_eq!(
        missing_note("x", &missing[..1], &config),
        "\"x\" needs ONE, which is not set. Set it, or put it in .env beside tidegate.toml."
    );
}

#[test]
fn defaults_have_variables_for_every_program() {
    let folder = Folder::new();
    folder.write("vars", "FILE=own\nBOTH=own\n");
    folder.write(
        "tidegate.toml",
        r#"
        [defaults]
        env = { ALL = "${TOKEN}", BOTH = "default", FILE = "default", LINE = "default" }
        [servers.a]
        command = "a"
        [servers.b]
        command = "LINE=own b"
        env_file = "vars"
        env = { BOTH = "nearest" }
        [servers.c]
        url = "https://example.com"
        "#,
    );
    let settings = load(&folder);
    let of = |at: usize, name: &str| command(&settings.servers[at]).env[name].clone();
    assert_eq!((of(0, "ALL"), of(0, "BOTH")), ("hush".to_owned(), "default".to_owned()));
    assert_eq!((of(1, "ALL"), of(1, "BOTH")), ("hush".to_owned(), "nearest".to_owned()));
    assert_eq!((of(1, "FILE"), of(1, "LINE")), ("own".to_owned(), "own".to_owned()));
    let about = |note: &String| note.contains("has no effect");
    assert!(
        !settings.notes.iter().any(about),
        "it is no news that an address starts no program: {:?}",
        settings.notes
    );
}
