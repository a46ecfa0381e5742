//! Endpoints with a selection.

use tidegate_config::{EndpointSettings, ToolMode};

use crate::{parse, wrong};

fn endpoints(text: &str) -> Vec<EndpointSettings> {
    parse(text).unwrap().endpoints
}

fn notes(text: &str) -> String {
    parse(text).unwrap().notes.join("\n")
}

#[test]
fn what_is_written() {
    let endpoints = endpoints(
        r#"
        [servers.github]
        url = "https://example.com/mcp"
        [endpoints.research]
        servers = ["git*"]
        tools = ["gbif_*", "search_*"]
        prompts = []
        resources = ["file:///srv/*"]
        instructions = "Cite."
        mode = "search"
        audience = "https://mcp.example.com/research/mcp"
        [endpoints.a-2]
        "#,
    );
    let [research, plain] = &endpoints[..] else { panic!("{endpoints:?}") };
    assert_eq!((research.name.as_str(), research.path.as_str()), ("research", "/research/mcp"));
    let has =
        |patterns: &Option<tidegate_config::Patterns>, name: &str| patterns.as_ref().unwrap().matches(name);
    assert!(
        has(&research.servers, "github") && has(&research.tools, "gbif_find") && !has(&research.tools, "x")
    );
    assert!(!has(&research.prompts, "anything"), "none is not all");
    assert!(has(&research.resources, "file:///srv/a/b"));
    assert_eq!((research.instructions.as_deref(), research.mode), (Some("Cite."), Some(ToolMode::Search)));
    assert_eq!(research.audience, ["https://mcp.example.com/research/mcp"]);
    let nothing = (&plain.servers, &plain.tools, &plain.prompts, &plain.resources);
    assert_eq!(nothing, (&None, &None, &None, &None));
    assert_eq!((plain.path.as_str(), plain.mode, plain.audience.len()), ("/a-2/mcp", None, 0));
    assert_eq!(self::endpoints("path = \"/\"\n[endpoints.a]")[0].path, "/a");
    assert_eq!(self::endpoints("path = \"/x/mcp\"\n[endpoints.a]")[0].path, "/a/x/mcp");
}

#[test]
fn names_that_lead_elsewhere() {
    for (name, expected) in [
        ("A", "may contain only lower-case letters"),
        ("a_b", "may contain only lower-case letters"),
        ("\"a/b\"", "may contain only lower-case letters"),
        ("\".well-known\"", "may contain only lower-case letters"),
        ("\"..\"", "may contain only lower-case letters"),
        ("\"\"", "an endpoint needs a name"),
        ("mcp", "/mcp is the path of the default endpoint: choose another name"),
        ("memory", "/memory is a page of a built-in server: choose another name"),
        ("default", "/default is kept for the gateway itself"),
        ("sse", "/sse is kept for the gateway itself"),
        ("messages", "/messages is kept for the gateway itself"),
        ("health", "/health is kept for the gateway itself"),
        ("ready", "/ready is kept for the gateway itself"),
        ("live", "/live is kept for the gateway itself"),
        ("metrics", "/metrics is kept for the gateway itself"),
        ("admin", "/admin is kept for the gateway itself"),
    ] {
        wrong(&format!("\n[endpoints.{name}]"), &format!("toml:2:12: endpoints.{name}: "));
        wrong(&format!("\n[endpoints.{name}]"), expected);
    }
    wrong(&format!("[endpoints.{}]", "a".repeat(65)), "at most 64 characters");
    wrong("path = \"/tools/mcp\"\n[endpoints.tools]", "/tools is the path of the default endpoint");
}

#[test]
fn mistakes() {
    for (field, expected) in [
        ("tools = [\"a[\"]", "2:1: endpoints.a.tools: pattern 1 is not a valid glob"),
        ("servers = \"x\"", "endpoints.a.servers: must be a list in [brackets]"),
        ("mode = \"some\"", "endpoints.a.mode: must be one of \"all\", \"search\""),
        ("instructions = \" \"", "endpoints.a.instructions: must be a text, and is empty"),
        ("audience = \"account\"", "endpoints.a.audience: \"account\" is in most tokens of Keycloak"),
        ("toools = []", "2:1: endpoints.a: unknown field \"toools\"; did you mean \"tools\"?"),
    ] {
        wrong(&format!("[endpoints.a]\n{field}"), expected);
    }
    wrong("[[endpoints.a]]", "endpoints.a: must be a table, not a list");
    assert!(
        notes("[endpoints.a]\nservers = [\"gihub\"]\n[servers.github]\ncommand = \"x\"")
            .contains("endpoints.a.servers has \"gihub\", which matches no server.")
    );
    // A server that is not used now may be tomorrow.
    assert!(
        !notes("[endpoints.a]\nservers = [\"off\"]\n[servers.off]\ncommand = \"x\"\nenabled = false")
            .contains("matches no server")
    );
}

#[test]
fn a_token_that_is_good_for_two_endpoints() {
    let jwt = "public_url = \"https://mcp.example.com\"\n[[auth.jwt]]\nissuer = \"https://a.example\"\n";
    let both = "is also that of the default endpoint: one token is good for both.";
    for (text, expected) in [
        ("audience = \"x\"\n[endpoints.a]\naudience = \"x\"", Some(format!("endpoints.a.audience {both}"))),
        (
            "[endpoints.a]\naudience = \"https://mcp.example.com/mcp\"",
            Some(format!("endpoints.a.audience {both}")),
        ),
        (
            "[endpoints.a]\naudience = [\"x\", \"y\"]\n[endpoints.b]\naudience = [\"y\"]",
            Some("endpoints.b.audience is also that of the endpoint \"a\"".to_owned()),
        ),
        ("audience = \"x\"\n[endpoints.a]\naudience = \"y\"", None),
        ("[endpoints.a]\n[endpoints.b]", None),
    ] {
        let notes = notes(&format!("{jwt}{text}"));
        match expected {
            Some(expected) => assert!(notes.contains(&expected), "{text}: {notes}"),
            None => assert!(!notes.contains("is also that of"), "{text}: {notes}"),
        }
    }
    assert!(notes("[endpoints.a]\naudience = \"x\"").contains("endpoints.a.audience has no effect"));
}
