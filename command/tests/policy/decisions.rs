//! What becomes of decisions elsewhere: in the trail, in shadow mode, over stdio, behind side doors, on pages.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::{Caller, Gateway, command};
use crate::upstream::{Offers, Upstream};

pub(crate) const AUTH: &str = "[auth]\nkeys = \"keys.toml\"\n[audit]\nfile = \"audit.jsonl\"\n";

/// Serves a configuration; gives those who have keys with these roles, in their order.
pub(crate) fn serve(config: &str, people: &[(&str, &str)]) -> (Gateway, Vec<Caller>) {
    let prepared = Gateway::folder(&format!("{AUTH}{config}"));
    let keys: Vec<String> = people
        .iter()
        .map(|(name, role)| {
            let made =
                command(prepared.0.path()).args(["keys", "add", name, "--role", role]).output().unwrap();
            assert!(made.status.success(), "{made:?}");
            String::from_utf8(made.stdout).unwrap().trim_end().to_owned()
        })
        .collect();
    let gateway = Gateway::try_start_in(prepared, vec![]).unwrap_or_else(|ended| panic!("{ended:?}"));
    let callers = keys.iter().map(|key| gateway.with_token(key)).collect();
    (gateway, callers)
}

/// What `tidegate audit search --json` finds.
fn search(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let done = command(folder).args(["audit", "search", "--json"]).args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let out = String::from_utf8(done.stdout).unwrap();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The same, as soon as there are so many.
pub(crate) fn find(folder: &Path, arguments: &[&str], count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    until(&format!("{arguments:?} finds {count}"), || {
        found = search(folder, arguments);
        found.len() >= count
    });
    assert_eq!(found.len(), count, "{arguments:?}: {found:?}");
    found
}

pub(crate) const RULES: &str = r#"
[servers.demo]
builtin = "demo"
[policy]
default = "deny"
[[policy.rules]]
name = "small sums"
allow = ["demo_add"]
when = 'args.a <= 10 && args.b <= 10'
[[policy.rules]]
deny = ["demo_count"]
[[policy.rules]]
name = "testers"
allow = ["tool:*"]
roles = ["tester"]
"#;

#[test]
fn records_name_the_rule_of_what_was_allowed_and_of_what_was_refused() {
    let (gateway, callers) = serve(RULES, &[("ann", "tester"), ("bob", "none")]);
    let [ann, bob] = &callers[..] else { panic!("two have keys") };
    let line = 6 + RULES.lines().take_while(|line| !line.starts_with("deny")).count() - 1;
    let by_line = format!("line {line}");
    let sum = |a: i32| json!({"a": a, "b": 1});
    for (caller, subject, tool, arguments, decision, rule) in [
        (ann, "ann", "demo_add", sum(1), "allowed", "small sums"),
        (ann, "ann", "demo_add", sum(11), "allowed", "testers"),
        (bob, "bob", "demo_add", sum(2), "allowed", "small sums"),
        (bob, "bob", "demo_add", sum(12), "refused", "default"),
        (ann, "ann", "demo_echo", json!({"message": "hello"}), "allowed", "testers"),
        (bob, "bob", "demo_echo", json!({"message": "hush"}), "refused", "default"),
        (ann, "ann", "demo_count", json!({"to": 1}), "refused", &by_line),
    ] {
        let answer = caller.call(tool, arguments.clone());
        assert_eq!(answer.is_fine(), decision == "allowed", "{answer:?}");
        let arguments = arguments.to_string();
        let asked = [
            "--subject",
            subject,
            "--tool",
            tool,
            "--args",
            &arguments,
            "--rule",
            rule,
            "--decision",
            decision,
        ];
        let record = &find(gateway.folder.path(), &asked, 1)[0];
        // What is refused does not get to its server.
        assert_eq!(record.get("server").is_some(), decision == "allowed", "{record}");
    }
    let folder = gateway.folder.path();
    assert_eq!(find(folder, &["--rule", "testers"], 2).len(), 2);
    assert_eq!(search(folder, &["--rule", "tester"]), Vec::<Value>::new());
    assert!(!std::fs::read_to_string(folder.join("audit.jsonl")).unwrap().contains("hush"));
    // The log names the rule, too; no answer does.
    gateway.logs("refused_by");
}

#[test]
fn in_shadow_mode_nothing_is_refused_and_the_trail_says_what_would_be() {
    let shadow = RULES.replace("default = \"deny\"", "default = \"deny\"\nmode = \"shadow\"");
    let (gateway, callers) = serve(&shadow, &[("bob", "none")]);
    let bob = &callers[0];
    gateway.logs("is \"shadow\": decisions are recorded, and nothing is refused");
    let session = bob.session();
    let listed = bob.modern("tools/list", json!({})).json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4, "{listed}");
    for (tool, arguments, decision) in [
        ("demo_echo", json!({"message": "hello"}), "would_refuse"),
        ("demo_add", json!({"a": 1, "b": 2}), "allowed"),
        ("demo_add", json!({"a": 100, "b": 2}), "would_refuse"),
    ] {
        assert!(bob.call(tool, arguments.clone()).is_fine(), "{tool}");
        let legacy = bob.in_session(&session, "tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(legacy.is_fine(), "{legacy:?}");
        let arguments = arguments.to_string();
        let asked = ["--tool", tool, "--args", &arguments, "--decision", decision];
        for record in find(gateway.folder.path(), &asked, 2) {
            assert_eq!(record["outcome"], "ok", "{record}");
        }
    }
    assert!(search(gateway.folder.path(), &["--decision", "refused"]).is_empty());
}

/// Two servers with a method of their own, which operators may use at the second.
fn two_servers() -> (Upstream, Upstream, String) {
    let offers = Offers { tools: vec!["look".to_owned()], ..Offers::default() };
    let (one, two) = (Upstream::start(offers.clone()), Upstream::start(offers));
    let servers = format!(
        "[servers.one]\nurl = \"http://{}/mcp\"\n[servers.two]\nurl = \"http://{}/mcp\"\n",
        one.address, two.address
    );
    (one, two, servers)
}

const METHODS: &str = r#"
[[policy.rules]]
name = "a method of one of them"
allow = ["method:vendor/*"]
servers = ["two"]
[[policy.rules]]
name = "tools"
allow = ["tool:*"]
"#;

#[test]
fn whoever_names_the_server_of_a_method_passes_the_same_gate() {
    let (one, two, servers) = two_servers();
    let gateway = Gateway::start_exactly(&format!("{servers}{METHODS}"));
    let local = gateway.nobody();
    let session = local.session();
    for (server, is_let_through) in [("two", true), ("one", false), ("three", false)] {
        let params = json!({"_meta": {"dev.tidegate/server": server}});
        for answer in [
            local.modern("vendor/method", params.clone()),
            local.in_session(&session, "vendor/method", params),
        ] {
            assert_eq!(answer.is_fine(), is_let_through, "{server}: {answer:?}");
        }
    }
    assert_eq!((one.count("vendor/method"), two.count("vendor/method")), (0, 2));
}

#[test]
fn where_there_are_many_users_nobody_names_servers() {
    let (one, two, servers) = two_servers();
    let (_gateway, callers) = serve(&format!("{servers}{METHODS}"), &[("olga", "ops")]);
    let olga = &callers[0];
    let session = olga.session();
    for method in ["vendor/method", "skills/list", "skills/get"] {
        let ask = |server: &str| {
            let params = json!({"_meta": {"dev.tidegate/server": server}, "uri": "skill://x/SKILL.md"});
            [olga.modern(method, params.clone()), olga.in_session(&session, method, params)].map(|answer| {
                assert!(!answer.is_fine(), "{method} {server}: {answer:?}");
                let error = answer.json()["error"].clone();
                (answer.status, error["code"].clone(), error["message"].clone())
            })
        };
        // A server that exists gets the same answer as one that does not.
        assert_eq!(ask("two"), ask("three"), "{method}");
    }
    assert_eq!((one.count("vendor/method"), two.count("vendor/method")), (0, 0));
}

#[test]
fn a_method_of_the_only_server_is_for_those_whom_a_rule_lets() {
    let upstream = Upstream::start(Offers::default());
    let config = format!(
        "[servers.two]\nurl = \"http://{}/mcp\"\n{}",
        upstream.address,
        METHODS.replace("servers = [\"two\"]", "roles = [\"ops\"]")
    );
    let (_gateway, callers) = serve(&config, &[("olga", "ops"), ("bob", "dev")]);
    let asks = |caller: &Caller| caller.modern("vendor/method", json!({})).is_fine();
    assert_eq!(callers.iter().map(asks).collect::<Vec<_>>(), [true, false]);
    assert_eq!(upstream.count("vendor/method"), 1);
}

#[test]
fn pages_are_behind_the_gate() {
    let rules = "[servers.demo]\nbuiltin = \"demo\"\n[[policy.rules]]\nallow = [\"page:/\"]\nroles = [\"ops\"]\n\
                 [[policy.rules]]\nallow = [\"tool:*\"]\n";
    let (gateway, callers) = serve(rules, &[("olga", "ops"), ("bob", "dev")]);
    let page = |caller: &Caller| caller.send("GET", "/", &[("Accept", "text/html")], "").status;
    assert_eq!(callers.iter().map(page).collect::<Vec<_>>(), [200, 404]);
    assert_eq!(page(&gateway.nobody()), 401);
    assert!(callers[1].call("demo_echo", json!({"message": "hello"})).is_fine());
}

#[test]
fn a_member_that_is_there_twice_is_called_with_nothing() {
    let upstream = Upstream::start(Offers { tools: vec!["get".to_owned()], ..Offers::default() });
    let config = format!(
        "[servers.s]\nurl = \"http://{}/mcp\"\n[[policy.rules]]\nallow = [\"s_get\"]\nwhen = 'args.of.owner == \"acme\"'\n",
        upstream.address
    );
    let (_gateway, callers) = serve(&config, &[("ann", "dev")]);
    let ann = &callers[0];
    let session = ann.session();
    for (arguments, is_let_through) in [
        (r#"{"of":{"owner":"acme"}}"#, true),
        (r#"{"of":{"owner":"evil","owner":"acme"}}"#, false),
        (r#"{"of":{"owner":"acme","owner":"evil"}}"#, false),
        (r#"{"of":{"owner":"acme","own\u0065r":"evil"}}"#, false),
        (r#"{"of":{"owner":"evil"},"of":{"owner":"acme"}}"#, false),
        (r#"{"of":{"owner":"acme"}},"arguments":{"of":{"owner":"evil"}}"#, false),
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"s_get","arguments":{arguments}}}}}"#
        );
        let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-11-25")];
        let before = upstream.count("tools/call");
        let answer = ann.send("POST", "/mcp", &headers, &body);
        assert_eq!(answer.is_fine(), is_let_through, "{arguments}: {answer:?}");
        assert_eq!(upstream.count("tools/call") - before, usize::from(is_let_through), "{arguments}");
    }
}

#[test]
fn stdio_is_the_local_user_and_rules_for_roles_are_not_for_them() {
    let rules = "[servers.demo]\nbuiltin = \"demo\"\n[[policy.rules]]\nname = \"testers\"\nallow = [\"*\"]\nroles = [\"tester\"]\n\
                 [[policy.rules]]\nname = \"anybody\"\nallow = [\"demo_add\"]\nwhen = 'args.a <= 10'\n";
    let (folder, _issuers) = Gateway::folder(&format!("{AUTH}{rules}"));
    let mut command = command(folder.path());
    let mut child = command
        .args(["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut lines) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut id = 0;
    let mut ask = |method: &str, mut params: Value| -> Value {
        id += 1;
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{message}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let mut listed = Vec::new();
    // On a busy machine the list may be asked for before its servers have started.
    until("its tools are listed", || {
        let list = ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
        listed = tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect();
        !listed.is_empty()
    });
    assert_eq!(listed, ["demo_add"]);
    let mut call =
        |tool: &str, arguments: Value| ask("tools/call", json!({"name": tool, "arguments": arguments}));
    let added = call("demo_add", json!({"a": 1, "b": 2}));
    assert_eq!(added["result"]["structuredContent"]["sum"], 3.0, "{added}");
    assert_eq!(call("demo_add", json!({"a": 11, "b": 2}))["result"]["isError"], true);
    let unknown = call("demo_echo", json!({"message": "hello"}));
    assert_eq!(unknown["error"]["data"]["symbol"], "TOOL_NOT_FOUND", "{unknown}");
    drop(input);
    child.wait().unwrap();
    for (decision, rule, count) in [("allowed", "anybody", 1), ("refused", "default", 2)] {
        let found =
            search(folder.path(), &["--method", "tools/call", "--decision", decision, "--rule", rule]);
        assert_eq!(found.len(), count, "{decision} by {rule}: {found:?}");
        assert!(found.iter().all(|record| record.get("subject").is_none()), "{found:?}");
    }
}
