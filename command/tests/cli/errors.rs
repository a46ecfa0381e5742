//! What goes wrong: one sentence with its code on standard error, what to do next, and the exit code.

use crate::rig::{CANNED, Done, Folder, demo, tidegate, tidegate_in, with_canned};

/// Standard error has these parts, and standard output nothing.
#[track_caller]
fn says(done: &Done, parts: &[&str]) {
    for part in parts {
        assert!(done.err.contains(part), "{part:?} is not in:\n{}", done.err);
    }
    assert!(!done.err.contains("panicked"), "{}", done.err);
    assert_eq!(done.out, "");
}

#[test]
fn a_wrong_command_line_is_2() {
    for (args, part) in [
        (&["tools"][..], "no server given"),
        (&["call", "sh"], "TOOL is missing"),
        (&["read", "sh"], "URI is missing"),
        (&["tools", "npx", "-y", "x"], "unexpected argument '-y'"),
        (&["discover", "sh", "x"], "unexpected argument \"x\""),
        (&["tools", "sh", "--timeout", "soon"], "write a time with its unit"),
        (&["tools", "sh", "--era", "bronze"], "invalid value 'bronze'"),
        (&["tools", "sh", "--log-level", "infoo"], "use error, warn, info, debug, trace or off, or a list"),
        (&["serve", "--log-level", "tidegate::wire"], "such as info,tidegate::wire=debug"),
        (&["tools", "sh", "--protocol-version", "1999"], "2026-07-28"),
        (&["tools", "sh", "--header", "A: b"], "--header is for servers with a URL"),
        (&["tools", "https://x.invalid", "--env", "A=b"], "--env is for servers that are programs"),
        (&["tools", "https://x.invalid", "--header", "secret"], "--header expects 'Name: value'"),
        (&["tools", "ftp://x.invalid"], "not \"ftp\""),
        (&["tools", "absent.json#x"], "the file absent.json does not exist"),
        (&["tools", "--config", "absent.json", "x"], "cannot read absent.json"),
        (&["login", "sleep 5"], "only servers with a URL have logins"),
        (&["call", "sh", "t", "--args", "{"], "are not valid JSON"),
        (&["call", "sh", "t", "--args", "[]"], "must be a JSON object"),
        (&["call", "sh", "t", "--args", "@absent"], "cannot read the arguments from \"absent\""),
        (&["call", "sh", "t", "a=1", "--args", "{}"], "leave out \"a=1\""),
        (&["call", "sh", "t", "--root", "absent"], "--root absent"),
        (&["doctor"], "there are no servers to check"),
    ] {
        says(&tidegate(args).exits(2), &[part]);
    }
}

#[test]
fn wrong_arguments_are_2_and_nothing_is_called() {
    for (word, part) in [
        ("c=1", "unknown argument \"c\""),
        ("a=x", "\"a\" must be of type number, not \"x\""),
        ("a=1", "missing arguments: b (number). Add b=…\n  add takes: a=number b=number\n"),
        ("a", "\"a\" is not an argument: write name=value"),
    ] {
        says(&demo(&["call", "add", word], "both").exits(2), &["error: ", part]);
    }
}

#[test]
fn a_server_that_is_not_there_is_3() {
    says(
        &tidegate(&["tools", "--", "no-such-program"]).exits(3),
        &["error: cannot start \"no-such-program\": no such program in PATH (E201)\n", "tidegate doctor"],
    );
    // One word may be anything.
    says(
        &tidegate(&["tools", "no-such-program"]).exits(2),
        &["error: no server or program is named \"no-such-program\"\n", "Pass a URL, a command line, or"],
    );
    says(&tidegate(&["tools", "http://127.0.0.1:1/mcp"]).exits(3), &["connection refused (E201)\n"]);
    let script = "echo first >&2; echo 'Error: no module' >&2; exit 3";
    says(
        &tidegate(&["tools", "--", "sh", "-c", script]).exits(3),
        &["exited with status 3", "(E201)", "  | first\n  | Error: no module\n"],
    );
    let json = tidegate(&["tools", "--json", "--", "no-such-program"]).exits(3).json();
    assert_eq!((&json["error"]["code"], &json["error"]["exitCode"]), (&"E201".into(), &3.into()));
}

#[test]
fn a_server_that_refuses_is_4() {
    for era in ["legacy", "modern"] {
        says(
            &demo(&["call", "ad", "a=1"], era).exits(4),
            &["error: Unknown tool: ad (E204)\n", "Did you mean \"add\"?"],
        );
        says(&demo(&["read", "demo://nope"], era).exits(4), &["(E204)\n", "tidegate resources"]);
        says(&demo(&["prompt", "nope"], era).exits(4), &["(E204)\n", "tidegate prompts"]);
    }
    says(&demo(&["tools", "--era", "modern"], "legacy").exits(4), &["Leave out --era"]);
    let mut args = with_canned(&["tools"], &[("PAGE", "again")]);
    args.insert(1, "--json".to_owned());
    assert_eq!(tidegate(&args).exits(3).json()["error"]["code"], "E201");
}

#[test]
fn too_slow_is_6() {
    says(
        &demo(&["call", "count", "to=100", "--timeout", "1s"], "legacy").exits(6),
        &["(E202)\n", "--timeout"],
    );
    says(&demo(&["call", "count", "to=100", "--timeout", "1s"], "modern").exits(6), &["(E202)\n"]);
    says(
        &tidegate(&["tools", "--timeout", "300ms", "--", "sleep", "600"]).exits(6),
        &["The server did not answer within 300ms (E202)\n"],
    );
}

#[test]
fn one_remedy_is_named_for_what_is_too_slow() {
    let folder = Folder::new();
    folder.write("canned.sh", CANNED);
    let tools = r#"[{"name":"never","inputSchema":{"type":"object"}}]"#;
    folder.write(
        "tidegate.toml",
        &format!("[servers.a]\ncommand = [\"sh\", \"canned.sh\"]\nenv = {{ TOOLS = '{tools}' }}\ntimeout = \"1s\"\n"),
    );
    let setting = "raise servers.a.timeout in the configuration";
    let said = tidegate_in(&folder, &["call", "a", "never"], "").exits(6).err;
    assert!(said.contains(setting) && !said.contains("--timeout"), "{said}");
    let said = tidegate_in(&folder, &["call", "a", "never", "--timeout", "1s"], "").exits(6).err;
    assert!(!said.contains(setting) && said.contains("--timeout"), "{said}");
}

#[test]
fn secrets_are_not_repeated() {
    let secret = "hunter2-very-secret";
    let header = format!("Authorization: Bearer {secret}");
    let address = format!("http://user:{secret}@127.0.0.1:1/mcp?key={secret}");
    let env = format!("KEY={secret}");
    for args in [
        &["tools", "http://127.0.0.1:1/mcp", "--header", &header, "-vv"][..],
        &["tools", &address, "-vv"],
        &["doctor", &address, "--json"],
        &["tools", "-vv", "--env", &env, "--", "no-such-program"],
        &["tools", "http://127.0.0.1:1/mcp", "--header", secret],
        &["tools", "no-such-program", "--env", secret],
    ] {
        let done = tidegate(args);
        assert!(!done.err.contains(secret) && !done.out.contains(secret), "{args:?}: {done:?}");
    }
}

#[test]
fn what_a_server_says_cannot_steer_the_terminal() {
    let tools =
        r#"[{"name":"t\u001b[2J","description":"d\u001b]0;x\u0007","inputSchema":{"type":"object"}}]"#;
    let result = r#"{"content":[{"type":"text","text":"a\u001b[31mb"}]}"#;
    let variables = [("TOOLS", tools), ("RESULT", result)];
    let listed = tidegate(&with_canned(&["tools"], &variables)).exits(0).out;
    assert_eq!(listed, "NAME  PARAMETERS  DESCRIPTION\nt                 d\n");
    assert_eq!(tidegate(&with_canned(&["call", "t", "--args", "{}"], &variables)).exits(0).out, "ab\n");
}

#[test]
fn help_names_the_exit_codes() {
    for command in ["tools", "call", "read", "doctor", "connect", "login"] {
        let help = tidegate(&[command, "--help"]).exits(0).out;
        assert!(help.contains("\nExit codes:\n  0    success\n"), "{help}");
    }
}

#[test]
fn log_levels_of_parts_of_the_program() {
    let level = ["--log-level", "warn,tidegate::wire=debug"];
    let shown = demo(&[&["tools"][..], &level].concat(), "modern").exits(0).err;
    assert!(shown.contains("server/discover"), "messages are shown: {shown}");
}

#[test]
fn serving_where_somebody_is_already() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let failed = tidegate_in(&Folder::new(), &["serve", "--demo", "--listen", &address], "").exits(3);
    let port = taken.local_addr().unwrap().port();
    assert!(failed.err.contains(&format!("error: port {port} is already in use")), "{}", failed.err);
    tidegate(&["serve", "--demo", "--listen", "0.0.0.0:0"]).exits(2);
}
