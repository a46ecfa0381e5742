//! check: programs that are not there, patterns that match nothing, and servers that need their time.

use crate::rig::{CANNED, Done, Folder, tidegate_in};

const FILE: &str = "tidegate.toml";

fn run(folder: &Folder, args: &[&str]) -> Done {
    tidegate_in(folder, args, "")
}

#[test]
fn programs_that_are_not_there_are_a_problem() {
    let folder = Folder::new();
    folder.write("plain", "no program");
    folder.write(
        FILE,
        "[servers.good]\ncommand = \"sh\"\n[servers.gone]\ncommand = \"no-such-program --flag\"\n\
         [servers.plain]\ncommand = [\"./plain\"]\n[servers.place]\ncommand = \"sh\"\ncwd = \"nowhere\"\n",
    );
    let done = run(&folder, &["check"]).exits(1);
    for part in [
        "problem: servers.gone.command: `no-such-program` was not found in PATH\n",
        "problem: servers.plain.command: `",
        "plain` is not executable\n",
        "problem: servers.place.command: the directory `",
    ] {
        assert!(done.out.contains(part), "{part}:\n{}", done.out);
    }
    assert!(!done.out.contains("servers.good"), "{}", done.out);
    let json = run(&folder, &["check", "--json"]).exits(1).json();
    assert_eq!(json["ok"], false);
    assert_eq!(
        json["servers"][1]["problem"],
        "servers.gone.command: `no-such-program` was not found in PATH"
    );
    assert_eq!(json["servers"][0]["problem"], serde_json::Value::Null);
}

#[test]
fn patterns_that_match_nothing_are_named() {
    let folder = Folder::new();
    folder.write("canned.sh", CANNED);
    let tools = r#"[{"name":"read_file","inputSchema":{"type":"object"}},{"name":"write_file","inputSchema":{"type":"object"}}]"#;
    folder.write(
        FILE,
        &format!(
            r#"
            [tools]
            mode = "search"
            favourites = ["files_read_*", "files_erase"]
            [servers.files]
            command = ["sh", "canned.sh"]
            env = {{ TOOLS = '{tools}' }}
            allow = ["read_*", "raed_file", "write_*"]
            deny = ["delete_*"]
            instances = "one"
            [servers.files.tools.write_fiel]
            description = "x"
            "#
        ),
    );
    let plain = run(&folder, &["check"]).exits(0);
    assert!(plain.out.contains("INSTANCES") && plain.out.contains("  one  "), "{}", plain.out);
    assert!(!plain.out.contains("warning"), "{}", plain.out);
    let done = run(&folder, &["check", "--connect"]).exits(0);
    for part in [
        "warning: servers.files.allow: \"raed_file\" matches no tool; did you mean \"read_file\"?\n",
        "warning: servers.files.deny: \"delete_*\" matches no tool",
        "warning: servers.files.tools: the server has no tool \"write_fiel\"; did you mean \"write_file\"?\n",
        "warning: tools.favourites: \"files_erase\" matches no tool",
    ] {
        assert!(done.out.contains(part), "{part}:\n{}", done.out);
    }
    assert_eq!(done.out.matches("warning:").count(), 4, "{}", done.out);
    let json = run(&folder, &["check", "--connect", "--json"]).exits(0).json();
    assert_eq!(
        (json["warnings"].as_array().unwrap().len(), &json["servers"][0]["instances"]),
        (4, &"one".into())
    );
}

/// Longer than the ten seconds that there once were for everybody would make the test slow, so the limit itself is short.
#[test]
fn start_timeout_is_honoured() {
    let folder = Folder::new();
    folder.write("canned.sh", CANNED);
    folder.write(
        FILE,
        "[servers.late]\ncommand = [\"sh\", \"-c\", \"sleep 2; exec sh canned.sh\"]\nstart_timeout = \"40s\"\n\
         [servers.hangs]\ncommand = \"sleep 600\"\nstart_timeout = \"1s\"\n",
    );
    let done = run(&folder, &["check", "--connect"]).exits(1);
    assert!(done.out.contains("late   2025-11-25  0 tools"), "{}", done.out);
    assert!(
        done.out.contains("hangs  -           The server is still starting after 1s (start_timeout) (E202)"),
        "{}",
        done.out
    );
    assert!(done.out.contains("raise start_timeout under [servers.hangs] in tidegate.toml"), "{}", done.out);
    let json = run(&folder, &["doctor", "--json"]).exits(1).json();
    assert_eq!(json["servers"][0]["ok"], true, "{json}");
    let what = json["servers"][1]["findings"][0]["what"].as_str().unwrap();
    assert_eq!(what, "The server is still starting after 1s (start_timeout) (E202)");
}

#[test]
fn more_servers_than_are_started_at_once() {
    let folder = Folder::new();
    let servers: String = (0..9).map(|n| format!("[servers.s{n}]\nbuiltin = \"demo\"\n")).collect();
    folder.write(FILE, &servers);
    let json = run(&folder, &["check", "--connect", "--json"]).exits(0).json();
    let names: Vec<_> =
        json["servers"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"]);
    assert!(json["servers"].as_array().unwrap().iter().all(|it| it["connection"]["tools"] == 4), "{json}");
}

#[test]
fn who_may_call_is_shown_and_what_would_keep_everybody_out_is_refused() {
    let folder = Folder::new();
    let text = "public_url = \"https://mcp.example.com\"\n[auth]\nkeys = \"keys.toml\"\nscopes = [\"mcp\"]\n\
                [auth.tool_scopes]\n\"files:write\" = [\"fs_*\"]\n[[auth.jwt]]\nissuer = \"https://id.example.com\"\n\
                [endpoints.research]\ntools = [\"gbif_*\"]\nprompts = []\n[servers.demo]\nbuiltin = \"demo\"\n";
    folder.write(FILE, text);
    let missing = run(&folder, &["check"]).exits(2);
    assert!(missing.out.contains("tidegate.toml cannot be served"), "{}", missing.out);
    assert!(missing.out.contains("problem: auth: There is no file of API keys at "), "{}", missing.out);
    assert!(missing.out.contains("1 server: 1 problem, and nobody can be served\n"), "{}", missing.out);
    assert!(!missing.out.contains("no problems found"), "{}", missing.out);
    for name in ["ann", "bob"] {
        run(&folder, &["keys", "add", name]).exits(0);
    }
    run(&folder, &["keys", "revoke", "bob"]).exits(0);
    let shown = run(&folder, &["check"]).exits(0).out;
    for part in [
        "listening on https://mcp.example.com/mcp\n",
        "keys.toml: 1 valid, 1 revoked\n",
        "https://id.example.com, for https://mcp.example.com/mcp\n",
        "files:write for fs_*\n",
        "https://mcp.example.com/research/mcp: tools gbif_*; no prompts\n",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    let json = run(&folder, &["check", "--json"]).exits(0).json();
    assert_eq!((&json["ok"], &json["auth"]["keys"]["valid"]), (&true.into(), &1.into()));
    assert_eq!(json["auth"]["issuers"][0]["audience"][0], "https://mcp.example.com/mcp");
    assert_eq!(json["endpoints"][0]["url"], "https://mcp.example.com/research/mcp");
    // Whoever can read it can see who has keys; whoever can write it can have one.
    use std::os::unix::fs::PermissionsExt;
    let mode = |mode| {
        let path = folder.path().join("keys.toml");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    let once = run(&folder, &["check"]).exits(0);
    assert_eq!((once.out.matches("can be read by other users").count(), once.err.as_str()), (1, ""));
    mode(0o666);
    assert!(run(&folder, &["check"]).exits(2).out.contains("can be changed by other users"));
    mode(0o600);
    folder.write("keys.toml", "[[keys]]\nname = 5\n");
    assert!(run(&folder, &["check"]).exits(2).out.contains("is not valid"));
    assert_eq!(run(&folder, &["check", "--json"]).exits(2).json()["ok"], false);
    // A file of an issuer's keys is looked at, too.
    folder.write(FILE, "[[auth.jwt]]\nissuer = \"https://id.example.com\"\njwks = \"jwks.json\"\n");
    folder.write("jwks.json", "nonsense");
    assert!(run(&folder, &["check"]).exits(2).out.contains("https://id.example.com"));
}

#[test]
fn what_clients_will_not_like_is_a_warning_and_no_line_of_the_log() {
    let folder = Folder::new();
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/edge/tests/edge/certificates");
    let with = |cert: &str, host: &str| {
        folder.write(
            FILE,
            &format!(
                "listen = \"0.0.0.0:8443\"\npublic_url = \"https://{host}\"\nallow_hosts = [\"mcp.example.com\"]\n\
                 [tls]\ncert = \"{certificates}/{cert}\"\nkey = \"{certificates}/first.key\"\n[auth]\nkeys = \"keys.toml\"\n"
            ),
        );
        let text = run(&folder, &["check"]).exits(0);
        assert_eq!(text.err, "");
        run(&folder, &["check", "--json"]).exits(0).json()["warnings"].to_string()
    };
    folder.write(FILE, "[auth]\nkeys = \"keys.toml\"\n");
    run(&folder, &["keys", "add", "ann"]).exits(0);
    assert_eq!(with("first.pem", "localhost"), "[]");
    let other = with("first.pem", "mcp.example.com");
    assert!(other.contains("is not for mcp.example.com, the host of public_url"), "{other}");
    let expired = with("expired.pem", "localhost");
    assert!(expired.contains("has expired on 2021-01-01: clients will refuse it"), "{expired}");
    // The same words as those of serve.
    let insecure = "listen = \"0.0.0.0:8443\"\nallow_hosts = [\"mcp.example.com\"]\ninsecure = true\n";
    folder.write(FILE, insecure);
    let open = run(&folder, &["check"]).exits(0).out;
    assert!(open.contains("warning: listening on 0.0.0.0:8443 without authentication"), "{open}");
    // An endpoint that is gone.
    folder.write(FILE, "[auth]\nkeys = \"keys.toml\"\n[endpoints.old]\nmode = \"search\"\n");
    run(&folder, &["keys", "add", "bob", "--endpoint", "old", "--endpoint", "default"]).exits(0);
    let known = run(&folder, &["check"]).exits(0).out;
    assert!(known.contains("everything; mode search") && !known.contains("not configured"), "{known}");
    folder.write(FILE, "[auth]\nkeys = \"keys.toml\"\n");
    let gone = run(&folder, &["check"]).exits(0).out;
    assert!(
        gone.contains("the key of bob is limited to the endpoint \"old\", which is not configured"),
        "{gone}"
    );
}

#[test]
fn scopes_and_endpoints_whose_patterns_match_nothing_and_issuers_that_are_away() {
    let folder = Folder::new();
    // Nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    folder.write(
        FILE,
        &format!(
            "[auth.tool_scopes]\nwrite = [\"demo_ecko\"]\nread = [\"demo_*\"]\n\
             [[auth.jwt]]\nissuer = \"http://127.0.0.1:{port}\"\n\
             [[auth.introspection]]\nissuer = \"https://id.example.com\"\nurl = \"http://127.0.0.1:{port}/ask\"\n\
             client_id = \"a\"\nclient_secret = \"b\"\n\
             [endpoints.a]\ntools = [\"demo_*\", \"none_*\"]\n[endpoints.b]\nservers = [\"two\"]\ntools = [\"demo_*\"]\n\
             [servers.demo]\nbuiltin = \"demo\"\n[servers.two]\nbuiltin = \"demo\"\n"
        ),
    );
    let json = run(&folder, &["check", "--connect", "--json"]).exits(0).json();
    let warnings = json["warnings"].to_string().replace("\\\"", "'");
    for part in [
        "auth.tool_scopes.'write': 'demo_ecko' matches no tool; did you mean 'demo_echo'?",
        "auth.tool_scopes.'write': tools that such a pattern was meant for can be called without the scope",
        "endpoints.a.tools: 'none_*' matches no tool",
        "endpoints.b.tools: 'demo_*' matches no tool",
        &format!("auth.jwt: the keys of http://127.0.0.1:{port} cannot be fetched"),
        "auth.introspection: https://id.example.com cannot be asked about tokens",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert!(
        !warnings.contains("tool_scopes.'read'") && !warnings.contains("a.tools: 'demo_*'"),
        "{warnings}"
    );
}

#[test]
fn where_lines_stories_and_spans_go_is_shown_and_what_would_not_work_is_said() {
    let folder = Folder::new();
    // Nobody listens there any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "[log]\nfile = \"logs/gateway.log\"\n[telemetry]\nstories_file = \"kept/calls.jsonl\"\nbodies = true\n\
         [telemetry.otlp]\nendpoint = \"http://127.0.0.1:{port}\"\nsample = 0.05\n[servers.demo]\nbuiltin = \"demo\"\n"
    );
    folder.write(FILE, &text);
    let shown = run(&folder, &["check"]).exits(0).out;
    for part in [
        "logs/gateway.log\n",
        "kept/calls.jsonl\n",
        &format!("http://127.0.0.1:{port}/ (http/protobuf): traces (5 %), metrics every 1m\n"),
        "note: telemetry.bodies keeps arguments and results of calls",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    assert!(!folder.path().join("logs").exists(), "nothing is made");
    let json = run(&folder, &["check", "--json"]).exits(0).json();
    assert_eq!(json["telemetry"]["collector"]["protocol"], "http/protobuf", "{json}");
    let connected = run(&folder, &["check", "--connect"]).exits(0).out;
    let away = format!("warning: telemetry.otlp: the collector at 127.0.0.1:{port} cannot be reached");
    assert!(connected.contains(&away), "{connected}");
    // Files in the place of folders, and the port of the other protocol.
    folder.write("logs", "");
    folder.write("kept", "");
    folder.write(FILE, &text.replace(&format!(":{port}"), ":4317"));
    let wrong = run(&folder, &["check"]).exits(2).out;
    for part in [
        "problem: log.file: ",
        "cannot be written: the gateway would not start",
        "warning: telemetry.stories_file: ",
        "has the port that collectors use for gRPC: set protocol = \"grpc\", or use port 4318",
    ] {
        assert!(wrong.contains(part), "{part}:\n{wrong}");
    }
    // All that is wrong is said at once.
    folder.write(FILE, "[telemetry.otlp]\nendpoint = \"nowhere\"\nsample = 2\ninterval = \"1ms\"\n");
    let all = run(&folder, &["check"]).exits(2).err;
    for field in ["telemetry.otlp.endpoint", "telemetry.otlp.sample", "telemetry.otlp.interval"] {
        assert!(all.contains(field), "{field}:\n{all}");
    }
}
