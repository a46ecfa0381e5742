//! add, remove, import, check: the gateway's configuration from the command line.

use crate::rig::{CANNED, Done, Folder, Running, TIDEGATE, command, tidegate_in};

const FILE: &str = "tidegate.toml";

/// Runs `tidegate` in a directory.
fn run(folder: &Folder, args: &[&str]) -> Done {
    tidegate_in(folder, args, "")
}

#[test]
fn servers_come_and_go() {
    let folder = Folder::new();
    folder.write(FILE, "# mine\n");
    let done = run(
        &folder,
        &["add", "--no-connect", "time", "--env", "TZ=${ZONE:-UTC}", "--", "uvx", "mcp-server-time", "-v"],
    )
    .exits(0);
    assert_eq!(done.out, "Added time to tidegate.toml\n");
    assert_eq!(done.err, "");
    let url = "https://example.com/mcp";
    let header = "Authorization: Bearer ${TOKEN}";
    run(&folder, &["add", "--no-connect", "web", url, "--header", header, "--prefix", "", "--era", "modern"])
        .exits(0);
    run(&folder, &["add", "--no-connect", "line", "A=1 npx 'some server'"]).exits(0);
    assert_eq!(
        folder.read(FILE),
        r#"# mine

[servers.time]
command = "uvx"
args = ["mcp-server-time", "-v"]
env = { TZ = "${ZONE:-UTC}" }

[servers.web]
url = "https://example.com/mcp"
prefix = ""
era = "modern"
headers = { Authorization = "Bearer ${TOKEN}" }

[servers.line]
command = "npx"
args = ["some server"]
env = { A = "1" }
"#
    );
    let done = run(&folder, &["add", "web", url]).exits(2);
    assert!(done.err.contains("tidegate.toml already has a server \"web\""), "{}", done.err);
    assert!(done.err.contains("--replace"), "{}", done.err);
    run(&folder, &["add", "--no-connect", "web", url, "--replace"]).exits(0);
    assert!(!folder.read(FILE).contains("TOKEN"));
    assert_eq!(run(&folder, &["remove", "time"]).exits(0).out, "Removed time from tidegate.toml\n");
    let done = run(&folder, &["remove", "webb"]).exits(2);
    assert!(done.err.contains("did you mean \"web\"?"), "{}", done.err);
}

#[test]
fn the_first_server_makes_the_file_of_the_user() {
    let folder = Folder::new();
    let done = run(&folder, &["add", "--no-connect", "here", "./server", "--env", "API_KEY=hush"]).exits(0);
    let path = ".config/tidegate/tidegate.toml";
    assert!(done.out.contains(path), "{}", done.out);
    assert!(done.err.starts_with("note: the value of API_KEY is stored in plain text"), "{}", done.err);
    let text = folder.read(path);
    assert!(text.starts_with("#:schema https://") && text.contains("API_KEY = \"hush\""), "{text}");
    // What is meant is the program here, not one beside the configuration.
    let here = folder.path().canonicalize().unwrap().join("server");
    assert!(text.contains(here.to_str().unwrap()), "{text}");
    let done = run(&folder, &["check"]).exits(1);
    assert!(done.out.contains("problem: servers.here.command: `"), "{}", done.out);
    assert!(
        done.out.contains("2 servers") && done.out.contains("here_") && !done.out.contains("hush"),
        "{}",
        done.out
    );
}

#[test]
fn wrong_command_lines_change_nothing() {
    let folder = Folder::new();
    for (args, part) in [
        (&["add", "a b", "https://example.com"][..], "only letters, digits"),
        (&["add", "a", "ftp://example.com"], "not \"ftp\""),
        (&["add", "a", "https://example.com", "--env", "A=1"], "use --header"),
        (&["add", "a", "--header", "A=1", "--", "x"], "use --env"),
        (&["add", "a", "--env", "hush", "--", "x"], "--env expects NAME=value"),
        (&["add", "a"], "required"),
        (&["add", "a", "https://example.com", "--", "x"], "cannot be used with"),
        (&["add", "a", "--config", "mcp.json", "--", "x"], "tidegate import"),
        (&["remove", "a"], "no tidegate.toml here or at "),
        (&["check"], "no tidegate.toml here or at "),
        (&["check", "gone.toml"], "gone.toml: the configuration cannot be read: there is no such file"),
        (&["import", "gone.json"], "cannot read gone.json"),
        (&["import", "zed"], "nothing to import: none of these files exists: ./.zed/settings.json, "),
        (&["import", "curser"], "no program of that name is known; did you mean \"cursor\"?"),
        (
            &["import", "emacs"],
            "Known programs: claude, claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf, zed",
        ),
    ] {
        let done = run(&folder, args).exits(2);
        assert!(done.err.contains(part) && !done.err.contains("hush"), "{args:?}: {}", done.err);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn servers_of_other_programs_are_imported() {
    let folder = Folder::new();
    folder.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "npx", "args": ["one"], "env": {"KEY": "${env:KEY}"}},
            "b": {"url": "https://example.com/?k=hush", "headers": {"X-Token": "hush"}}}}"#,
    );
    folder.write(FILE, "");
    let done = run(&folder, &["import", "cursor", "--dry-run"]).exits(0);
    assert!(done.out.starts_with("Would import 2 servers into tidegate.toml:\n"), "{}", done.out);
    assert!(
        done.out.contains("KEY=*** npx one") && done.out.contains("https://example.com/?***"),
        "{}",
        done.out
    );
    assert_eq!(folder.read(FILE), "");
    let done = run(&folder, &["import", "cursor"]).exits(0);
    assert!(done.err.contains("note: \"b\": the value of X-Token looks like a secret"), "{}", done.err);
    let missing =
        "note: \"a\" needs KEY, which is not set. Set it, or put it in .env beside tidegate.toml.\n";
    assert!(done.err.contains(missing), "{}", done.err);
    assert!(!format!("{done:?}").contains("hush"), "{done:?}");
    let text = folder.read(FILE);
    assert!(text.contains("env = { KEY = \"${KEY}\" }") && text.contains("X-Token = \"hush\""), "{text}");
    let done = run(&folder, &["import", ".cursor/mcp.json"]).exits(0);
    assert_eq!(done.out, "Nothing to import.\n");
    assert!(
        done.err.contains("\"a\" already exists and is unchanged; replace it with --replace."),
        "{}",
        done.err
    );
    let done = run(&folder, &["import", ".cursor/mcp.json", "--replace"]).exits(0);
    assert!(done.out.starts_with("Imported 2 servers"), "{}", done.out);
}

// Elsewhere the files of the user are in other places.
#[cfg(target_os = "linux")]
#[test]
fn import_knows_programs_by_name() {
    let folder = Folder::new();
    assert!(
        run(&folder, &["import"]).exits(0).out.starts_with("No MCP servers of other programs were found.")
    );
    // The folder is the home directory, too: project files and those of the user are the same.
    folder.write(".cursor/mcp.json", r#"{"mcpServers": {"one": {"command": "one"}}}"#);
    folder.write(
        ".codex/config.toml",
        "[mcp_servers.docs]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"DOCS_TOKEN\"\n\
         [mcp_servers.gate]\ncommand = \"tidegate\"\nargs = [\"serve\", \"--stdio\"]\n",
    );
    folder.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"g": {"httpUrl": "https://example.com/g", "timeout": 30000, "includeTools": ["a"], "trust": true}}}"#,
    );
    folder.write(
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"surf": {"serverUrl": "https://example.com/surf"},
            "tide": {"serverUrl": "http://localhost:8765/mcp"}}}"#,
    );
    folder.write(
        ".config/zed/settings.json",
        r#"{"context_servers": {"z": {"command": {"path": "z", "args": ["--zed"]}}}, // mine
        }"#,
    );
    folder.write(".config/Code/User/mcp.json", r#"{"servers": {"code": {"command": "code-server"}}}"#);
    folder.write(
        ".config/Code/User/settings.json",
        r#"{"editor.fontSize": 12, "mcp": {"servers": {"old": {"command": "old"}}}}"#,
    );
    folder.write(
        ".config/Claude/claude_desktop_config.json",
        r#"{"mcpServers": {"desk": {"command": "desk"}}}"#,
    );
    folder.write(".claude.json", r#"{"mcpServers": {"code2": {"command": "code2"}}}"#);
    folder.write(".vscode/settings.json", r#"{"editor.fontSize": 12}"#);
    folder.write(FILE, "");
    let shown = |done: Done| {
        let text = format!("{}{}", done.err, done.out);
        text.replace(folder.path().to_str().unwrap(), "~")
    };
    insta::assert_snapshot!("import_lists", shown(run(&folder, &["import"]).exits(0)));
    let mut all = String::new();
    for program in ["cursor", "codex", "gemini", "windsurf", "zed", "vscode", "claude-desktop", "claude"] {
        all.push_str(&format!(
            "$ tidegate import {program}\n{}\n",
            shown(run(&folder, &["import", program]).exits(0))
        ));
    }
    insta::assert_snapshot!("import_by_name", all);
    insta::assert_snapshot!("imported", folder.read(FILE));
}

#[test]
fn a_server_with_a_missing_variable_is_disabled_alone() {
    let folder = Folder::new();
    folder.write(
        FILE,
        "[servers.a]\nurl = \"https://example.com/${NONE}\"\n[servers.demo]\nbuiltin = \"demo\"\n",
    );
    let done = run(&folder, &["check"]).exits(0);
    assert!(done.out.starts_with("tidegate.toml is valid: 2 servers, 1 disabled,"), "{}", done.out);
    let note = "note: Server \"a\" is disabled: the environment variable NONE is not set (servers.a.url, line 2). Set it, \
                or put it in .env beside tidegate.toml.\n";
    assert!(done.out.contains(note), "{}", done.out);
    folder.write(".env", "NONE=some-secret-path\n");
    let done = run(&folder, &["check"]).exits(0);
    assert!(done.out.starts_with("tidegate.toml is valid: 2 servers,"), "{}", done.out);
    assert!(!done.out.contains("some-secret-path"), "{}", done.out);
}

#[test]
fn check_says_what_a_configuration_means() {
    let folder = Folder::new();
    folder.write("key", "hush");
    let text = r#"
        listen = "127.0.0.1:9"
        [servers.a]
        command = "sh ${file:key} --flag"
        allow = ["read_*"]
        deny = ["read_all"]
        tools.read_x.description = "x"
        [servers.b]
        url = "https://example.com/${file:key}?k=hush"
        headers = { Authorization = "Bearer ${file:key}" }
        prefix = ""
        [servers.c]
        builtin = "demo"
        [servers.off]
        url = "${NONE}"
        enabled = false
    "#;
    folder.write(FILE, text);
    let done = run(&folder, &["check"]).exits(0);
    for part in [
        "tidegate.toml is valid: 4 servers, 1 disabled, listening on http://127.0.0.1:9/mcp",
        "a     a_      only read_*; not read_all; 1 changed  sh '${file:key}' --flag",
        "b     (none)  all                                   https://example.com/${file:key}?***",
        "c     c_      all                                   builtin demo",
        "note: Server \"off\" is disabled (enabled = false).",
    ] {
        assert!(done.out.contains(part), "{part}:\n{}", done.out);
    }
    let json = run(&folder, &["check", FILE, "--json"]).exits(0);
    assert!(!done.out.contains("hush") && !json.out.contains("hush"));
    let json = json.json();
    assert_eq!((&json["ok"], &json["servers"][1]["kind"]), (&true.into(), &"url".into()));
    assert_eq!(json["servers"][0]["deny"], serde_json::json!(["read_all"]));
    assert_eq!((&json["servers"][0]["timeout"], &json["servers"][0]["idle"]), (&"1m".into(), &"10m".into()));
}

#[test]
fn check_says_what_is_wrong() {
    let folder = Folder::new();
    folder.write(FILE, "[servers.a]\ncomand = \"hush\"\n");
    let done = run(&folder, &["check"]).exits(2);
    assert_eq!(
        done.err,
        "error: tidegate.toml:2:1: servers.a: unknown field \"comand\"; did you mean \"command\"?\n"
    );
    folder.write(FILE, "[servers.a]\nurl = \"hush\"\n[servers.b]\ncommand = \"${NONE}\"\n");
    let done = run(&folder, &["check"]).exits(2);
    assert!(done.err.starts_with("error: tidegate.toml has 2 errors\n"), "{}", done.err);
    assert!(
        done.err.contains("\n  tidegate.toml:4:1: servers.b.command: the environment variable NONE"),
        "{}",
        done.err
    );
    let json = run(&folder, &["check", "--json"]).exits(2).json();
    assert_eq!(json["ok"], false);
    assert_eq!(
        (&json["errors"][0]["line"], &json["errors"][0]["field"]),
        (&2.into(), &"servers.a.url".into())
    );
    assert_eq!((&json["servers"], &json["disabled"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert!(!done.err.contains("hush") && !json.to_string().contains("hush"));
}

#[test]
fn check_reads_the_files_of_other_programs() {
    let folder = Folder::new();
    let path = folder
        .write("mcp.json", r#"{"mcpServers": {"My Server": {"command": "sh"}, "no": {"disabled": true}}}"#);
    let done = run(&folder, &["check", path.to_str().unwrap()]).exits(0);
    assert!(done.out.contains("2 servers, 1 disabled,") && done.out.contains("My-Server_"), "{}", done.out);
    assert!(
        done.out.contains("note: Server \"no\" is disabled: it needs a \"command\" or a \"url\"."),
        "{}",
        done.out
    );
}

#[test]
fn check_connects_if_asked_to() {
    let folder = Folder::new();
    let tools =
        r#"[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]"#;
    folder.write("canned.sh", CANNED);
    // Beside the configuration it would serve all of these servers, itself included.
    folder.write("elsewhere/empty", "");
    let text = format!(
        r#"
        [servers.demo]
        builtin = "demo"
        [servers.modern]
        command = ["{TIDEGATE}", "--log-level", "warn", "serve", "--demo", "--stdio", "--era", "modern"]
        cwd = "elsewhere"
        [servers.legacy]
        command = ["sh", "canned.sh"]
        env = {{ TOOLS = '{tools}' }}
        deny = ["two"]
        [servers.gone]
        command = "/does/not/exist"
        [servers.dies]
        command = ["sh", "-c", "echo 'no such luck' >&2; exit 3"]
        "#
    );
    folder.write(FILE, &text);
    let done = run(&folder, &["check", "--connect"]).exits(1);
    for part in [
        "demo    2026-07-28  4 tools",
        "modern  2026-07-28  ",
        "legacy  2025-11-25  2 tools, 1 offered",
        "gone    -  ",
    ] {
        assert!(done.out.contains(part), "{part}:\n{}", done.out);
    }
    assert!(done.out.contains("no such luck"), "{}", done.out);
    let json = run(&folder, &["check", "--connect", "--json"]).exits(1).json();
    let connection = |index: usize| &json["servers"][index]["connection"];
    assert_eq!((&connection(2)["ok"], &connection(2)["era"]), (&true.into(), &"legacy".into()));
    assert_eq!((&connection(2)["tools"], &connection(2)["offered"]), (&2.into(), &1.into()));
    assert_eq!(connection(3)["ok"], false);
    assert!(connection(3)["error"]["message"].is_string(), "{json}");
    folder.write(FILE, "[servers.demo]\nbuiltin = \"demo\"\n");
    run(&folder, &["check", "--connect"]).exits(0);
}

#[cfg(unix)]
#[test]
fn programs_get_what_they_need_and_no_tokens() {
    let folder = Folder::new();
    folder.write(".env", "OF_FILE=hush\n");
    let text = "[defaults.env]\nOF_ALL = \"1\"\n[servers.x]\ncommand = [\"sh\", \"-c\", \"env > seen\", \"${OF_FILE}\"]\n";
    folder.write(FILE, text);
    let mut command = command(folder.path());
    let passed = [
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
        ("npm_config_registry", "http://127.0.0.1:9"),
        ("LC_ALL", "C"),
    ];
    let withheld = ["GITHUB_TOKEN", "UV_PUBLISH_TOKEN", "ANTHROPIC_API_KEY", "TWINE_PASSWORD"];
    command.args(["check", "--connect"]).envs(passed).envs(withheld.map(|name| (name, "hush")));
    // It says nothing, so it is no server.
    Running::start(command).wait().exits(1);
    let seen = folder.read("seen");
    for line in
        passed.map(|(name, value)| format!("{name}={value}\n")).iter().chain([&"OF_ALL=1\n".to_owned()])
    {
        assert!(seen.contains(line), "{line}: {seen}");
    }
    assert!(!seen.contains("hush"), "{seen}");
}

/// A gateway among its own servers would start itself without end. It tells the processes that it starts what it serves.
#[test]
fn a_gateway_does_not_start_itself() {
    let folder = Folder::new();
    let file =
        folder.write(FILE, &format!("[servers.self]\ncommand = [{TIDEGATE:?}, \"serve\", \"--stdio\"]\n"));
    let mut command = command(folder.path());
    command.args(["serve", "--stdio"]).env("TIDEGATE_SERVING", file);
    let done = Running::start(command).wait().exits(2);
    assert!(done.err.contains("the gateway is among its own servers"), "{}", done.err);
    assert!(done.err.contains("tidegate remove"), "{}", done.err);
}
