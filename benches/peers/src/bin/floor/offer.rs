//! What a gateway asks before it passes calls on: who is there, and which tools there are.
//!
//! One process stands for many servers: `/mcp` has the echo, `/s/0/mcp` to `/s/49/mcp` have forty tools each, and
//! `/all/mcp` has all of those at once, for comparison with a gateway that has put them together.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

/// The path with the echo.
pub(crate) const ECHO: &str = "/mcp";

const SERVERS: usize = 50;
const TOOLS_EACH: usize = 40;

/// The lists are good for an hour, so that a gateway may keep them.
const GOOD: &str = r#""resultType":"complete","ttlMs":3600000,"cacheScope":"public""#;

static LISTS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..SERVERS).map(|server| list(server..server + 1)).collect());
static ALL: LazyLock<String> = LazyLock::new(|| list(0..SERVERS));

/// The answer to a method (as JSON) at a path: the member of the envelope that it is, with a comma before it.
pub(crate) fn answer(method: &str, path: &str) -> Cow<'static, str> {
    match method.trim_matches('"') {
        "tools/list" => tools(path).into(),
        "server/discover" => format!(
            r#","result":{{{GOOD},"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{{"tools":{{}}}},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"floor","version":"1.0.0"}}}}}}"#
        )
        .into(),
        "initialize" => {
            r#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1.0.0"}}"#.into()
        }
        "ping" => r#","result":{}"#.into(),
        _ => r#","error":{"code":-32601,"message":"the floor has only tools"}"#.into(),
    }
}

fn tools(path: &str) -> &'static str {
    static ONLY_ECHO: LazyLock<String> = LazyLock::new(|| result(&tool("echo", "Says back what it is told")));
    if path == "/all/mcp" {
        return &ALL;
    }
    let server = path.strip_prefix("/s/").and_then(|rest| rest.strip_suffix(ECHO)?.parse::<usize>().ok());
    server.and_then(|server| LISTS.get(server)).unwrap_or(&ONLY_ECHO)
}

fn list(servers: std::ops::Range<usize>) -> String {
    let mut tools = String::new();
    for (server, n) in servers.flat_map(|server| (0..TOOLS_EACH).map(move |n| (server, n))) {
        if !tools.is_empty() {
            tools.push(',');
        }
        let what = format!("Looks up record {n} on shelf {server} and tells what is known about it");
        let _ = write!(tools, "{}", tool(&format!("lookup_{server}_{n}"), &what));
    }
    result(&tools)
}

fn result(tools: &str) -> String {
    format!(r#","result":{{{GOOD},"tools":[{tools}]}}"#)
}

fn tool(name: &str, what: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"{what}","inputSchema":{{"type":"object","properties":{{"message":{{"type":"string","description":"What to say."}},"times":{{"type":"integer","description":"How often to say it.","minimum":1}}}},"required":["message"]}}}}"#
    )
}
