use super::*;
use crate::target::{Command, Remote};

fn around() -> Surroundings<'static> {
    Surroundings {
        variable: &|name| match name {
            "TOKEN" => Some("hush".to_owned()),
            "BASE" => Some("https://example.com".to_owned()),
            "NEWLINE" => Some("hush\nhush".to_owned()),
            _ => None,
        },
        home: Some("/home/me".into()),
        here: "/srv/app".into(),
    }
}

fn file(text: &str) -> Result<ServersFile, ServersFileError> {
    parse::parse(text, Path::new("/srv/app/.mcp.json"), &around())
}

fn get(text: &str, name: &str) -> Result<Entry, ServersFileError> {
    file(text)?.get_in(name, &around())
}

/// The entry `x` of a file whose servers are `{"x": …}`.
fn entry(description: &str) -> Result<Entry, ServersFileError> {
    get(&format!("{{\"mcpServers\": {{\"x\": {description}}}}}"), "x")
}

fn command(entry: Entry) -> Command {
    match entry.target {
        Target::Command(command) => command,
        other => panic!("{other:?}"),
    }
}

fn remote(entry: Entry) -> Remote {
    match entry.target {
        Target::Url(remote) => remote,
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_are_found_in_every_form_of_file() {
    let x = r#"{"x": {"command": "a"}}"#;
    for text in [
        format!(r#"{{"mcpServers": {x}}}"#),
        format!(r#"{{"mcpServers": {x}, "mcp": {{"allowed": []}}, "theme": "dark"}}"#),
        format!(r#"{{"servers": {x}, "inputs": []}}"#),
        format!(r#"{{"editor.fontSize": 12, "mcp": {{"inputs": [], "servers": {x}}}}}"#),
        format!(r#"{{"numStartups": 3, "projects": {{"/srv/app": {{"mcpServers": {x}}}}}}}"#),
        format!("// mine\n{{\"mcpServers\": /* all */ {x},}}"),
        x.to_owned(),
        r#"{"$schema": "https://example.com", "x": {"command": "a"}}"#.to_owned(),
    ] {
        assert_eq!(command(get(&text, "x").unwrap()).program, "a", "{text}");
    }
    let claude = r#"{"mcpServers": {"x": {"command": "user"}, "y": {"command": "user"}},
        "projects": {"/srv/app": {"mcpServers": {"x": {"command": "local"}}}, "/else": {"mcpServers": {"z": {}}}}}"#;
    assert_eq!(command(get(claude, "x").unwrap()).program, "local");
    assert_eq!(file(claude).unwrap().names().collect::<Vec<_>>(), ["x", "y"]);
    for empty in ["", " \n", "{\"mcpServers\": {}}", "{\"servers\": {},}", "{\"projects\": {}}"] {
        assert_eq!(file(empty).unwrap().names().len(), 0, "{empty}");
    }
}

#[test]
fn files_without_servers_are_refused() {
    for (text, part) in [
        ("{", "is not valid JSON (EOF while parsing an object at line 1 column 1)"),
        ("{\n// comment\n\"a\": x}", "line 3 column 6"),
        ("[]", "it is not a JSON object"),
        ("{}", r#"they look like {"mcpServers""#),
        (r#"{"mcpServers": []}"#, "must be an object that maps names"),
        (r#"{"command": "a"}"#, "one server without a name"),
        (r#"{"name": "package", "version": "1"}"#, "has no MCP servers"),
    ] {
        let error = file(text).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(".mcp.json"), "{text}: {error}");
    }
    let error = ServersFile::load("/does/not/exist.json").unwrap_err().to_string();
    assert!(error.starts_with("cannot read /does/not/exist.json: "), "{error}");
}

#[test]
fn programs() {
    let read = command(
        entry(
            r#"{"type": "stdio", "command": "~/bin/a", "args": ["-t", "${TOKEN}", 5, true, "$TOKEN"],
                "env": {"T": "Bearer ${env:TOKEN}", "N": 3, "GONE": null}, "cwd": "sub"}"#,
        )
        .unwrap(),
    );
    assert_eq!(read.program, "/home/me/bin/a");
    assert_eq!(read.args, ["-t", "hush", "5", "true", "$TOKEN"]);
    let env: Vec<_> = read.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("N", "3"), ("T", "Bearer hush")]);
    assert_eq!(read.cwd.as_deref(), Some(Path::new("/srv/app/sub")));
    assert_eq!(command(entry(r#"{"command": "a"}"#).unwrap()).cwd, None);
}

#[test]
fn addresses() {
    for (description, url, sse) in [
        (r#"{"url": "https://a.example/mcp"}"#, "https://a.example/mcp", false),
        (r#"{"type": "http", "url": "${BASE}/mcp"}"#, "https://example.com/mcp", false),
        (r#"{"url": "https://a.example/", "transport": "http"}"#, "https://a.example/", false),
        (r#"{"type": "streamableHttp", "url": "https://a.example/"}"#, "https://a.example/", false),
        (r#"{"type": "streamable-http", "url": "https://a.example/"}"#, "https://a.example/", false),
        (r#"{"type": "sse", "url": "https://a.example/sse"}"#, "https://a.example/sse", true),
        (r#"{"transport": "sse", "url": "https://a.example/sse"}"#, "https://a.example/sse", true),
        (r#"{"serverUrl": "https://a.example/"}"#, "https://a.example/", false),
        (r#"{"httpUrl": "https://a.example/", "url": "https://b.example/"}"#, "https://a.example/", false),
        (r#"{"type": "http", "command": "x", "url": "https://a.example/"}"#, "https://a.example/", false),
    ] {
        let read = remote(entry(description).unwrap());
        assert_eq!((read.url.as_str(), read.sse), (url, sse), "{description}");
    }
    let headers =
        r#"{"url": "https://a.example", "headers": {"Authorization": "Bearer ${TOKEN}", "X-N": 1}}"#;
    let headers = remote(entry(headers).unwrap()).headers;
    assert_eq!((headers["Authorization"].as_str(), headers["X-N"].as_str()), ("Bearer hush", "1"));
}

#[test]
fn what_is_ignored_is_noted() {
    let cline = entry(
        r#"{"command": "a", "disabled": true, "autoApprove": ["t"], "timeout": 60, "headers": {"A": "${UNSET}"}}"#,
    )
    .unwrap();
    assert!(cline.disabled);
    assert_eq!(cline.notes[0], "\"autoApprove\" is ignored");
    assert!(cline.notes[1].starts_with("\"headers\" is ignored: "), "{:?}", cline.notes);
    assert_eq!(cline.notes[2], "\"timeout\" is ignored");
    let code =
        entry(r#"{"url": "https://a.example", "dev": {}, "env": {"A": "1"}, "enabled": false}"#).unwrap();
    assert!(code.disabled);
    assert_eq!(code.notes.len(), 2);
    let plain =
        entry(r#"{"command": "a", "args": [], "env": {}, "disabled": false, "enabled": true}"#).unwrap();
    assert!(!plain.disabled && plain.notes.is_empty());
}

#[test]
fn bad_entries_are_explained_without_secrets() {
    for (description, part) in [
        ("5", "must be an object"),
        ("{}", "needs a \"command\" or a \"url\""),
        (r#"{"command": 5}"#, "\"command\" must be a string"),
        (r#"{"command": ""}"#, "\"command\" is empty"),
        (r#"{"command": "a", "args": "b"}"#, "\"args\" must be a list of strings"),
        (r#"{"command": "a", "args": [{}]}"#, "\"args\" must be a list of strings"),
        (r#"{"command": "a", "env": ["A=hush"]}"#, "\"env\" must map names to strings"),
        (r#"{"command": "a", "disabled": "yes"}"#, "\"disabled\" must be true or false"),
        (r#"{"command": "a", "type": "hush"}"#, "\"type\" must be \"stdio\", \"http\" or \"sse\""),
        (r#"{"type": "stdio", "url": "https://a.example"}"#, "needs a \"command\""),
        (r#"{"type": "sse", "command": "a"}"#, "needs a \"url\""),
        (r#"{"url": "${TOKEN}"}"#, "\"url\" is not a valid URL"),
        (r#"{"url": "ws://${TOKEN}"}"#, "must start with http:// or https://"),
        (
            r#"{"url": "https://a", "headers": {"a b": "hush"}}"#,
            "\"a b\" is not a valid name for an HTTP header",
        ),
        (r#"{"url": "https://a", "headers": {"a": "${NEWLINE}"}}"#, "the value of the header \"a\""),
        (
            r#"{"command": "a", "env": {"A": "${TOKEN}${UNSET}"}}"#,
            "variable UNSET (env.A), which is not set: set it",
        ),
        (
            r#"{"url": "https://a", "headers": {"A": "${env:UNSET}"}}"#,
            "variable UNSET (headers.A), which is not set: set it",
        ),
        (r#"{"command": "a", "env": {"A": "${input:my-key}"}}"#, "input \"my-key\""),
        (
            r#"{"command": "a", "env": {"A": "${input:my-key}"}}"#,
            "the environment variable MY_KEY (env.A, for the input",
        ),
        (r#"{"command": "a", "envFile": "/does/not/exist"}"#, "\"envFile\" /does/not/exist cannot be read"),
    ] {
        let error = entry(description).unwrap_err().to_string();
        assert!(error.contains(part), "{description}: {error}");
        assert!(error.contains("server \"x\" in /srv/app/.mcp.json"), "{description}: {error}");
        assert!(!error.contains("hush"), "{description}: {error}");
    }
}

#[test]
fn one_bad_entry_spoils_no_other() {
    let text = r#"{"servers": {
        "bad": {"command": "a", "env": {"A": "${TIDEGATE_TEST_NEVER_SET}"}}, "good": {"command": "b"}, "worse": 5}}"#;
    let file = file(text).unwrap();
    let entries: Vec<_> = file.entries().map(|(name, entry)| (name, entry.is_ok())).collect();
    assert_eq!(entries, [("bad", false), ("good", true), ("worse", false)]);
    assert!(format!("{file:?}").contains("good"));
}

#[test]
fn inputs_say_what_they_are() {
    let text = r#"{"inputs": [{"type": "promptString", "id": "key", "description": "API key", "password": true},
        {"id": "region", "default": "eu"}],
        "servers": {"a": {"command": "a", "args": ["${input:key}"]}, "b": {"command": "b", "args": ["${input:region}"]}}}"#;
    assert_eq!(
        get(text, "a").unwrap_err().to_string(),
        "server \"a\" in /srv/app/.mcp.json needs the environment variable key (args, for the input \"key\": API key), \
         which is not set: set it"
    );
    assert_eq!(command(get(text, "b").unwrap()).args, ["eu"]);
}

#[test]
fn names_that_are_not_there() {
    let text = r#"{"mcpServers": {"github": {"command": "a"}, "time": {"command": "b"}}}"#;
    assert_eq!(
        get(text, "githb").unwrap_err().to_string(),
        "no server \"githb\" in /srv/app/.mcp.json; did you mean \"github\"? It has: github, time"
    );
    assert_eq!(
        get(text, "zzz").unwrap_err().to_string(),
        "no server \"zzz\" in /srv/app/.mcp.json. It has: github, time"
    );
    assert!(file(text).unwrap().only().unwrap_err().to_string().contains("github, time"));
}

#[test]
fn variables_from_files_come_before_none_but_after_env() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("variables.env");
    std::fs::write(&path, "A=file\nB=file\n").unwrap();
    let read = entry(&format!(r#"{{"command": "a", "envFile": {path:?}, "env": {{"B": "own"}}}}"#));
    std::fs::write(&path, "A=file\nhush\n").unwrap();
    let error = entry(&format!(r#"{{"command": "a", "envFile": {path:?}}}"#)).unwrap_err().to_string();
    let env = command(read.unwrap()).env;
    assert_eq!((env["A"].as_str(), env["B"].as_str()), ("file", "own"));
    assert!(error.contains("line 2 of its \"envFile\"") && !error.contains("hush"), "{error}");
}

fn codex(text: &str) -> ServersFile {
    parse::parse(text, Path::new("/home/me/.codex/config.toml"), &around()).unwrap()
}

#[test]
fn codex_keeps_its_servers_in_toml() {
    let file = codex(
        r#"
        model = "gpt-5"
        [mcp_servers.docs]
        command = "npx"
        args = ["-y", "docs"]
        env = { LEVEL = "1" }
        env_vars = ["TOKEN", { name = "BASE" }]
        startup_timeout_sec = 20
        tool_timeout_sec = 1.5
        enabled_tools = ["search"]
        disabled_tools = ["drop"]
        required = true
        [mcp_servers.web]
        url = "https://a.example/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { X-Team = "harbour" }
        env_http_headers = { X-Base = "BASE", X-Other = "UNSET" }
        [mcp_servers.off]
        command = "x"
        enabled = false
        "#,
    );
    let docs = file.get_in("docs", &around()).unwrap();
    assert_eq!(docs.settings.timeout, Some(std::time::Duration::from_millis(1500)));
    assert_eq!(docs.settings.start_timeout, Some(std::time::Duration::from_secs(20)));
    assert_eq!(
        (docs.settings.include.as_slice(), docs.settings.exclude.as_slice()),
        (&["search".to_owned()][..], &["drop".to_owned()][..])
    );
    assert_eq!(docs.notes, ["\"required\" is ignored"]);
    let env = command(docs).env;
    assert_eq!((env["LEVEL"].as_str(), env["TOKEN"].as_str()), ("1", "hush"));
    assert_eq!(env["BASE"], "https://example.com");
    let web = file.describe("web").unwrap();
    assert_eq!(web.headers["Authorization"], "Bearer ${TOKEN}");
    assert_eq!((web.headers["X-Team"].as_str(), web.headers["X-Base"].as_str()), ("harbour", "${BASE}"));
    let error = file.get_in("web", &around()).unwrap_err().to_string();
    assert!(
        error.contains("needs the environment variable UNSET (headers.X-Other), which is not set"),
        "{error}"
    );
    assert!(file.get_in("off", &around()).unwrap().disabled);
    for (text, part) in [
        ("[mcp_servers.x]\ncommand = \"hush", "is not valid TOML (line 2: "),
        ("model = \"x\"", "it has no [mcp_servers.NAME] table"),
    ] {
        let error = parse::parse(text, Path::new("/c/config.toml"), &around()).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("hush"), "{error}");
    }
}

#[test]
fn zed_calls_them_context_servers() {
    let text = r#"{
        // Comments are fine.
        "theme": "One",
        "terminal": {"command": "not-a-server"},
        "context_servers": {
            "old": {"command": {"path": "a", "args": ["b"], "env": {"T": "1"}}, "settings": {}},
            "new": {"source": "custom", "command": "c", "args": ["d"], "env": {}},
            "web": {"url": "https://a.example/mcp", "headers": {"X": "1"}},
            "ext": {"source": "extension", "settings": {"key": "hush"}},
        },
    }"#;
    let file = parse::parse(text, Path::new("/home/me/.config/zed/settings.json"), &around()).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["ext", "new", "old", "web"]);
    let old = command(file.get_in("old", &around()).unwrap());
    assert_eq!((old.program.as_str(), old.args, old.env["T"].as_str()), ("a", vec!["b".to_owned()], "1"));
    assert_eq!(command(file.get_in("new", &around()).unwrap()).program, "c");
    assert_eq!(remote(file.get_in("web", &around()).unwrap()).headers["X"], "1");
    let error = file.get_in("ext", &around()).unwrap_err().to_string();
    assert!(error.contains("belongs to an extension of Zed") && !error.contains("hush"), "{error}");
    let settings = r#"{"terminal": {"command": "not-a-server"}}"#;
    let error =
        parse::parse(settings, Path::new("/home/me/.config/zed/settings.json"), &around()).unwrap_err();
    assert!(matches!(error, ServersFileError::NoServers { .. }), "{error}");
}

#[test]
fn gemini_and_windsurf_say_which_tools() {
    let text = r#"{"mcpServers": {
        "g": {"httpUrl": "https://a.example/mcp", "timeout": 30000, "trust": true, "includeTools": ["a"], "excludeTools": ["b"]},
        "never": {"command": "x", "env": {"T": "$TOKEN"}, "timeout": -1}}}"#;
    let file = parse::parse(text, Path::new("/home/me/.gemini/settings.json"), &around()).unwrap();
    let entry = file.get_in("g", &around()).unwrap();
    assert_eq!(entry.settings.timeout, Some(std::time::Duration::from_secs(30)));
    assert_eq!((entry.settings.include[0].as_str(), entry.settings.exclude[0].as_str()), ("a", "b"));
    assert_eq!(entry.notes, ["\"trust\" is ignored"]);
    let never = file.get_in("never", &around()).unwrap();
    assert_eq!(never.notes, ["\"timeout\" is ignored: it is not a sensible time"]);
    assert_eq!(command(never).env["T"], "hush");
    let surf = entry_of_windsurf();
    assert_eq!(surf.settings.exclude, ["x"]);
    assert_eq!(remote(surf).url.as_str(), "https://a.example/mcp");
}

fn entry_of_windsurf() -> Entry {
    entry(r#"{"serverUrl": "https://a.example/mcp", "disabledTools": ["x"]}"#).unwrap()
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let error = entry(r#"{"command": "${ONE}", "args": ["${TWO}", "${ONE}"], "env": {"A": "${THREE}"}}"#)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "server \"x\" in /srv/app/.mcp.json needs environment variables that are not set: ONE (command), TWO (args), THREE (env.A)"
    );
}
