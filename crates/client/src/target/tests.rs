use super::*;

fn command(text: &str) -> Command {
    match Target::parse(text) {
        Ok(Target::Command(command)) => command,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn command_lines_are_split_like_a_shell() {
    for (text, program, args) in [
        ("server", "server", &[][..]),
        ("  server  --a b ", "server", &["--a", "b"]),
        (
            r#"server 'one word' "two \" words" three\ words"#,
            "server",
            &["one word", "two \" words", "three words"],
        ),
        ("server ''", "server", &[""]),
        ("server A=1", "server", &["A=1"]),
        ("./a/server --url https://example.com", "./a/server", &["--url", "https://example.com"]),
        ("sh -c 'a | b'", "sh", &["-c", "a | b"]),
    ] {
        let command = command(text);
        assert_eq!(command.program, program, "{text}");
        assert_eq!(command.args, args, "{text}");
        assert!(command.env.is_empty(), "{text}");
    }
}

#[test]
fn leading_assignments_are_environment() {
    let command = command("A=1 B_2='x y' C= server D=4");
    let env: Vec<_> = command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("A", "1"), ("B_2", "x y"), ("C", "")]);
    assert_eq!((command.program.as_str(), &command.args[..]), ("server", &["D=4".to_owned()][..]));
}

#[test]
fn addresses_are_recognized() {
    for text in ["http://localhost:3000/mcp", "https://example.com", " HTTPS://Example.com/mcp "] {
        assert!(matches!(Target::parse(text), Ok(Target::Url(remote)) if !remote.sse), "{text}");
    }
    assert!(matches!("https://example.com".parse(), Ok(Target::Url(_))));
}

#[test]
fn errors_are_sentences_without_the_text() {
    for (text, part) in [
        ("", "no server given"),
        ("   ", "no server given"),
        ("server 'secret", "inside quotes"),
        ("server secret\\", "after a backslash"),
        ("A=secret B=2", "has no program"),
        ("''", "has no program"),
        ("ftp://example.com/secret", "not \"ftp\""),
        ("https://", "not valid"),
        ("https://example.com:secret/", "not valid"),
        ("https://example.com/a secret", "contains spaces"),
    ] {
        let error = Target::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains("secret"), "{text}: {error}");
    }
}

#[test]
fn names_are_short() {
    for (text, name) in [
        ("/usr/local/bin/my-server --flag", "my-server"),
        (r"'C:\tools\Server.exe'", "Server"),
        (
            "npx -y @modelcontextprotocol/server-everything@1.2.3 stdio",
            "@modelcontextprotocol/server-everything",
        ),
        ("npx --yes --package=thing@latest thing-mcp", "thing"),
        ("npx -p thing run", "thing"),
        ("npx", "npx"),
        ("cmd /c npx -y thing", "thing"),
        ("uvx mcp-server-git@latest --repository .", "mcp-server-git"),
        ("uvx --from git+https://github.com/a/b thing", "thing"),
        ("uvx mcp-server-time==1.0", "mcp-server-time"),
        ("uv run --directory /srv server.py", "server"),
        ("uv run python -m thing", "thing"),
        (
            "docker run -i --rm -e TOKEN --mount type=bind,src=/a,dst=/b ghcr.io/github/github-mcp-server:1 x",
            "github-mcp-server",
        ),
        ("docker compose up", "docker"),
        ("python3 -u -m mcp_server", "mcp_server"),
        ("node --no-warnings dist/server.js", "server"),
        ("https://user:pw@mcp.example.com/mcp?key=1", "mcp.example.com"),
        ("http://localhost:3000/mcp", "localhost:3000"),
        ("http://[::1]:3000/mcp", "[::1]:3000"),
    ] {
        assert_eq!(Target::parse(text).unwrap().name(), name, "{text}");
    }
    assert_eq!(Target::command("a\u{1b}[31mb", ["x"]).name(), "a[31mb");
}

#[test]
fn display_and_debug_have_no_secrets() {
    for (text, shown) in [
        ("A=hush server 'one word'", "A=*** server 'one word'"),
        ("server --api-key hush --port 1", "server --api-key *** --port 1"),
        ("server --token=hush", "server --token=***"),
        ("docker run -e TOKEN=hush --env=A=hush img", "docker run -e TOKEN=*** --env=A=*** img"),
        ("npx mcp-remote https://u:hush@h/p?k=hush", "npx mcp-remote 'https://h/p?***'"),
        (
            "npx mcp-remote x --header 'Authorization: Bearer hush'",
            "npx mcp-remote x --header 'Authorization: ***'",
        ),
        ("psql postgres://u:hush@h/db", "psql postgres://h/db"),
        ("server --db=postgres://u:hush@h/db", "server '--db=postgres://h/db'"),
        ("https://u:hush@example.com/mcp?key=hush#hush", "https://example.com/mcp?***"),
    ] {
        let target = Target::parse(text).unwrap();
        assert!(!format!("{target:?}").contains("hush"), "{target:?}");
        assert!(!target.to_string().contains("hush"), "{target}");
        assert_eq!(target.to_string().replace('\'', ""), shown.replace('\'', ""), "{text}");
    }
    let mut remote = Remote::parse("https://example.com/mcp").unwrap();
    remote.headers.insert("Authorization".to_owned(), "Bearer hush".to_owned());
    let target = Target::from(remote);
    assert_eq!(target.to_string(), "https://example.com/mcp");
    let debug = format!("{target:?}");
    assert!(debug.contains("Authorization") && !debug.contains("hush"), "{debug}");
    assert_eq!(Target::command("a", ["b\u{1b}[2J"]).to_string(), "a \"b\\u{1b}[2J\"");
}

#[test]
fn secrets_of_a_target_are_shown_nowhere() {
    let command =
        "KEY=sk-target-0001 server --token sk-target-0002 --key=sk-target-0003 --verbose a-long-argument";
    Target::parse(command).unwrap().keep_secrets();
    let mut remote =
        Remote::parse("https://me:sk-target-0004@example.com/long-path?key=sk-target-0005").unwrap();
    remote.headers.insert("Authorization".to_owned(), "Bearer sk-target-0006".to_owned());
    Target::Url(remote).keep_secrets();
    for n in 1..=6 {
        let told = format!("refused: sk-target-000{n}, for a-long-argument at example.com/long-path");
        let shown = tidegate_service::secrets::mask(&told);
        assert_eq!(shown, "refused: ***, for a-long-argument at example.com/long-path", "{n}");
    }
}
