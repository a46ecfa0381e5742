//! Each example of docs/policy.md, by `tidegate check --as` and by a gateway that serves it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::http::Answer;
use crate::page::{Case, Example, Verdict, What, Who, examples};
use crate::rig::{Caller, Gateway, command, path_of, write};
use crate::upstream::{Offers, Upstream};

#[test]
fn check_says_what_the_page_says() {
    let examples = examples();
    assert!(examples.len() >= 10, "the page has {} examples", examples.len());
    for example in &examples {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "keys.toml", "");
        write(folder.path(), "tidegate.toml", &example.config);
        for case in &example.cases {
            let asked = questions(case);
            let done = command(folder.path())
                .args(["check", "--json"])
                .args(&asked)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let out = String::from_utf8_lossy(&done.stdout).into_owned();
            let said: Value = serde_json::from_str(&out).unwrap_or_default();
            let at = format!("{}: {}\n{out}", example.title, case.line);
            // The policy lets through what only a limit refuses.
            let is_allowed = !matches!(case.verdict, Verdict::Refused | Verdict::Unknown);
            assert_eq!(done.status.code(), Some(i32::from(!is_allowed)), "{at}");
            assert_eq!(said["allowed"], is_allowed, "{at}");
            assert_eq!(said["listed"], case.verdict != Verdict::Unknown, "{at}");
            assert_eq!(said["rule"].as_str(), case.rule.as_deref(), "{at}");
            assert_eq!(said["line"].as_u64(), line_of(&example.config, case.rule.as_deref()), "{at}");
            if case.rule.is_some() {
                assert_eq!(
                    said["enforced"],
                    case.verdict != Verdict::WouldBeRefused && !is_shadow(example),
                    "{at}"
                );
            }
        }
    }
}

fn is_shadow(example: &Example) -> bool {
    example.config.contains("mode = \"shadow\"")
}

/// The arguments of `tidegate check` that ask for a case.
fn questions(case: &Case) -> Vec<String> {
    let who = &case.who;
    let issuer = who.issuer.clone().unwrap_or_else(|| "tidegate:keys".to_owned());
    let client = who.client.as_ref().unwrap_or(&who.name);
    let mut asked = vec!["--as", &who.name, "--issuer", &issuer, "--client", client];
    who.roles.iter().for_each(|role| asked.extend(["--role", role]));
    who.tenant.iter().for_each(|tenant| asked.extend(["--tenant", tenant]));
    who.endpoint.iter().for_each(|endpoint| asked.extend(["--endpoint", endpoint]));
    asked.extend(match case.what {
        What::Call => ["--call", &case.name],
        What::Get => ["--prompt", &case.name],
        What::Read => ["--read", &case.name],
        What::Page => ["--page", &case.name],
    });
    if !case.arguments.is_empty() {
        asked.extend(["--args", &case.arguments]);
    }
    asked.into_iter().map(str::to_owned).collect()
}

/// The line of a configuration that has a rule.
fn line_of(config: &str, rule: Option<&str>) -> Option<u64> {
    let lines: Vec<&str> = config.lines().collect();
    let at = |text: &str| lines.iter().position(|line| *line == text);
    let index = match rule? {
        "default" => lines.iter().position(|line| line.starts_with("default = "))?,
        name => {
            let name =
                at(&format!("name = \"{name}\"")).unwrap_or_else(|| panic!("no rule is called {name:?}"));
            lines[..name].iter().rposition(|line| *line == "[[policy.rules]]")?
        }
    };
    Some(index as u64 + 1)
}

/// How clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Modern,
    Legacy,
}

#[test]
fn a_gateway_does_what_the_page_says_to_modern_clients() {
    examples().iter().for_each(|example| serve(example, Era::Modern));
}

#[test]
fn a_gateway_does_what_the_page_says_to_legacy_clients() {
    examples().iter().for_each(|example| serve(example, Era::Legacy));
}

/// API keys by the names of those who have them.
type Keys = BTreeMap<String, String>;

/// Makes a key for everybody whom no issuer knows.
fn keys(folder: &Path, cases: &[Case]) -> Keys {
    let mut keys = Keys::new();
    for Case { who, .. } in cases {
        if who.issuer.is_some() || keys.contains_key(&who.name) {
            continue;
        }
        let mut arguments = vec!["keys", "add", &who.name];
        who.roles.iter().for_each(|role| arguments.extend(["--role", role]));
        who.tenant.iter().for_each(|tenant| arguments.extend(["--tenant", tenant]));
        let done = command(folder).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        keys.insert(who.name.clone(), String::from_utf8(done.stdout).unwrap().trim_end().to_owned());
    }
    keys
}

/// Somebody of an example, and how they call.
struct Client {
    who: Who,
    caller: Caller,
    session: Option<String>,
}

impl Client {
    fn new(gateway: &Gateway, keys: &Keys, who: &Who, era: Era) -> Client {
        let endpoint = who.endpoint.as_deref().unwrap_or_default();
        let credentials = match &who.issuer {
            None => keys[&who.name].clone(),
            Some(issuer) => {
                let issuer = gateway.issuers.iter().find(|known| known.name == *issuer).unwrap();
                let mut claims = issuer.claims(&who.name, &gateway.url(endpoint));
                claims["org"] = json!(who.tenant);
                claims["roles"] = json!(who.roles);
                claims["client_id"] = json!(who.client.as_ref().unwrap_or(&who.name));
                issuer.sign(&issuer.header(), &claims)
            }
        };
        let caller = gateway.with_token(&credentials).at(&path_of(endpoint));
        let session = (era == Era::Legacy).then(|| caller.session());
        Client { who: who.clone(), caller, session }
    }

    fn ask(&self, method: &str, params: Value) -> Answer {
        match &self.session {
            None => self.caller.modern(method, params),
            Some(session) => self.caller.in_session(session, method, params),
        }
    }

    /// What becomes of a case.
    fn tries(&self, case: &Case, name: &str) -> Answer {
        let arguments: Value = serde_json::from_str(&case.arguments).unwrap_or_default();
        match case.what {
            What::Call => self.ask("tools/call", json!({"name": name, "arguments": arguments})),
            What::Get => self.ask("prompts/get", json!({"name": name, "arguments": arguments})),
            What::Read => self.ask("resources/read", json!({"uri": name})),
            What::Page => self.caller.send("GET", name, &[("Accept", "text/html")], ""),
        }
    }

    /// Whether they have it in lists; nothing if it is in nobody's.
    fn lists(&self, case: &Case, offered: &[String]) -> Option<bool> {
        let (method, list, member) = match case.what {
            What::Call => ("tools/list", "tools", "name"),
            What::Get => ("prompts/list", "prompts", "name"),
            What::Read if offered.contains(&case.name) => ("resources/list", "resources", "uri"),
            What::Read | What::Page => return None,
        };
        let answer = self.ask(method, json!({})).json();
        let items = answer["result"][list].as_array().unwrap_or_else(|| panic!("{method}: {answer}"));
        Some(items.iter().any(|item| item[member] == *case.name))
    }
}

fn serve(example: &Example, era: Era) {
    let (config, upstreams) = with_servers(example);
    let prepared = Gateway::folder(&config);
    let keys = keys(prepared.0.path(), &example.cases);
    let gateway = Gateway::try_start_in(prepared, vec![])
        .unwrap_or_else(|ended| panic!("{}: {ended:?}", example.title));
    let mut clients: Vec<Client> = Vec::new();
    for case in &example.cases {
        let at = format!("{} ({era:?}): {}", example.title, case.line);
        if !clients.iter().any(|client| client.who == case.who) {
            clients.push(Client::new(&gateway, &keys, &case.who, era));
        }
        let client = clients.iter().find(|client| client.who == case.who).unwrap();
        // Lists count for limits, too.
        let offered: Vec<String> =
            upstreams.values().flat_map(|(offers, _)| offers.resources.clone()).collect();
        if !example.config.contains("[limits")
            && let Some(listed) = client.lists(case, &offered)
        {
            assert_eq!(listed, case.verdict != Verdict::Unknown, "{at}");
        }
        let executed = |upstreams: &BTreeMap<String, (Offers, Upstream)>| -> usize {
            let methods = ["tools/call", "prompts/get", "resources/read"];
            let count =
                |upstream: &Upstream| methods.map(|method| upstream.count(method)).iter().sum::<usize>();
            upstreams.values().map(|(_, upstream)| count(upstream)).sum()
        };
        let before = executed(&upstreams);
        for _ in 0..case.times {
            let answer = client.tries(case, &case.name);
            judge(client, case, &answer, &at);
        }
        let is_done = matches!(case.verdict, Verdict::Allowed | Verdict::WouldBeRefused);
        let reaches = is_done && case.what != What::Page && !upstreams.is_empty();
        assert_eq!(executed(&upstreams) - before, if reaches { case.times } else { 0 }, "{at}");
    }
}

/// Whether an answer is what the page says.
fn judge(client: &Client, case: &Case, answer: &Answer, at: &str) {
    let message = answer.json();
    match &case.verdict {
        Verdict::Allowed | Verdict::WouldBeRefused if case.what == What::Page => {
            assert_eq!(answer.status, 200, "{at}")
        }
        Verdict::Allowed | Verdict::WouldBeRefused => assert!(answer.is_fine(), "{at}: {answer:?}"),
        Verdict::Refused => {
            assert!(
                answer.body.contains("The policy of this gateway does not allow this"),
                "{at}: {answer:?}"
            );
            let symbol = match case.what {
                What::Call => &message["result"]["_meta"]["dev.tidegate/error"]["symbol"],
                _ => &message["error"]["data"]["symbol"],
            };
            assert_eq!(symbol, "FORBIDDEN", "{at}: {answer:?}");
            assert_eq!(message["result"]["isError"] == true, case.what == What::Call, "{at}: {answer:?}");
            assert!(!answer.body.contains(case.rule.as_deref().unwrap()), "{at}: {answer:?}");
        }
        Verdict::Limited(told) => {
            assert_eq!(message["result"]["isError"], true, "{at}: {answer:?}");
            let text = message["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.contains(told), "{at}: {text}");
        }
        // Nothing tells it from what does not exist.
        Verdict::Unknown => {
            let nothing = format!("{}-that-does-not-exist", case.name);
            let other = client.tries(case, &nothing);
            assert!(
                !answer.is_fine() && answer.status != 200 || message["error"].is_object(),
                "{at}: {answer:?}"
            );
            assert_eq!(without_name(answer, &case.name), without_name(&other, &nothing), "{at}");
        }
    }
}

/// An answer without what differs from one name to another: the name, the number of the call, and tools whose names are like it.
fn without_name(answer: &Answer, name: &str) -> (u16, String) {
    let mut message = answer.json();
    if let Some(data) = message["error"]["data"].as_object_mut() {
        data.remove("correlationId");
        let similar = data.remove("availableTools").unwrap_or(json!([]));
        assert!(!similar.as_array().unwrap().contains(&json!(name)), "{answer:?}");
    }
    // The answer about a page does not name it.
    let name = if name.starts_with('/') { "no such text" } else { name };
    (answer.status, message.to_string().replace(name, "NAME"))
}

/// The configuration of an example with servers of ours in the place of those that it names, and with the keys of its issuers.
fn with_servers(example: &Example) -> (String, BTreeMap<String, (Offers, Upstream)>) {
    let (mut config, mut server, mut upstreams) = (String::new(), None, BTreeMap::new());
    for line in example.config.lines() {
        if line.starts_with('[') {
            server = line.strip_prefix("[servers.").and_then(|rest| rest.strip_suffix(']'));
        }
        match server {
            Some(name) if line.starts_with("url = ") => {
                let offers = offers(name, &example.cases);
                let upstream = Upstream::start(offers.clone());
                config += &format!("url = \"http://{}/mcp\"\n", upstream.address);
                upstreams.insert(name.to_owned(), (offers, upstream));
            }
            _ => config += &format!("{line}\n"),
        }
        for (issuer, file) in [(crate::rig::REEF_ID, "reef.json"), (crate::rig::OTHER_ID, "other.json")] {
            if line == format!("issuer = {issuer:?}") {
                config += &format!("jwks = {file:?}\n");
            }
        }
    }
    (config, upstreams)
}

/// What a server must have so that the cases are about something.
fn offers(server: &str, cases: &[Case]) -> Offers {
    let mut offers = Offers::default();
    for case in cases {
        let (list, name) = match (case.what, case.name.strip_prefix(&format!("{server}_"))) {
            (What::Call, Some(own)) => (&mut offers.tools, own),
            (What::Get, Some(own)) => (&mut offers.prompts, own),
            (What::Read, _) => (&mut offers.resources, &*case.name),
            _ => continue,
        };
        if !list.iter().any(|known| known == name) {
            list.push(name.to_owned());
        }
    }
    offers
}

#[test]
fn check_explains_in_words_and_says_what_is_wrong_with_a_question() {
    let example = &examples()[0];
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "keys.toml", "");
    write(folder.path(), "tidegate.toml", &example.config);
    let line = line_of(&example.config, Some("everybody reads")).unwrap();
    let default = line_of(&example.config, Some("default")).unwrap();
    let read = format!(
        "tool github_get_file is allowed: the rule \"everybody reads\" (line {line} of tidegate.toml)"
    );
    let write = format!(
        "tool github_create_issue is refused: no rule matches, and the default decides (line {default} of tidegate.toml)"
    );
    for (asked, code, said) in [
        (&["--as", "bob", "--role", "dev", "--call", "github_get_file"][..], 0, &read[..]),
        (&["--as", "bob", "--role", "dev", "--call", "github_get_file"], 0, "it is for roles maintainer"),
        (&["--as", "bob", "--call", "github_create_issue"], 1, &write),
        (
            &["--as", "bob", "--call", "github_create_issue"],
            1,
            "It is not listed, and unknown to the caller.",
        ),
        (&["--as", "bob", "--call", "nobody_has_it"], 1, "name one with --server"),
        // Questions that are none.
        (&["--as", "bob"], 2, "--as needs something to do"),
        (&["--call", "github_get_file"], 2, "say who calls with --as SUBJECT"),
        (&["--as", "bob", "--call", "x", "--args", "[1]"], 2, "--args is not a JSON object"),
        (&["--as", "bob", "--call", "x", "--args", "{\"a\":1,\"a\":2}"], 2, "duplicate key \"a\""),
        (&["--as", "bob", "--call", "x", "--endpoint", "nowhere"], 2, "there is no endpoint \"nowhere\""),
        (&["--as", "bob", "--call", "x", "--server", "gitub"], 2, "did you mean \"github\"?"),
        (&["--as", "bob", "--call", "x", "--read", "y"], 2, "cannot be used with"),
        (&["--role", "dev"], 2, "required"),
    ] {
        let done = command(folder.path()).arg("check").args(asked).stdin(Stdio::null()).output().unwrap();
        let told =
            [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert_eq!(done.status.code(), Some(code), "{asked:?}: {told}");
        assert!(told.contains(said), "{asked:?}: {told}");
    }
}
