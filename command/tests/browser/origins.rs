//! Pages of other origins: one that is listed speaks with the gateway in both eras, any other not at all.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::driver::Browser;
use crate::site::Site;

/// An origin with one empty page.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 16 * 1024]);
            let page = "<!doctype html><title>Elsewhere</title>";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length:";
            let _ = stream.write_all(format!("{head} {}\r\n\r\n{page}", page.len()).as_bytes());
        }
    });
    format!("http://{address}")
}

/// What a page does; whatever it comes to is in `window.told`.
const SCRIPT: &str = r#"
const told = {};
const send = async (what, method, path, headers, body) => {
    const given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"};
    try {
        const answer = await fetch(SITE + path, {
            method, headers: {...given, ...headers}, body: body && JSON.stringify({jsonrpc: "2.0", ...body}),
        });
        const text = await answer.text();
        told[what] = `${answer.status} ${text.includes("read_graph") || text.includes("Ann") ? "read" : "other"}`;
        return answer;
    } catch (error) {
        told[what] = error.name;
    }
};
const clientInfo = {name: "page", version: "1"};
(async () => {
    const hello = {protocolVersion: "2025-11-25", capabilities: {}, clientInfo};
    const opened = await send("open", "POST", "/mcp", {}, {id: 1, method: "initialize", params: hello});
    const session = opened?.headers.get("mcp-session-id") ?? "none";
    told.session = session.length > 8;
    const legacy = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"};
    await send("ready", "POST", "/mcp", legacy, {method: "notifications/initialized"});
    await send("list", "POST", "/mcp", legacy, {id: 2, method: "tools/list"});
    await send("end", "DELETE", "/mcp", legacy);
    await send("over", "POST", "/mcp", legacy, {id: 3, method: "tools/list"});
    const meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": clientInfo,
        "io.modelcontextprotocol/clientCapabilities": {},
    };
    const modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read_graph"};
    const params = {name: "read_graph", arguments: {}, _meta: meta};
    await send("call", "POST", "/mcp", {...modern, traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
        {id: 4, method: "tools/call", params});
    await send("mismatch", "POST", "/mcp", {...modern, "Mcp-Name": "another"}, {id: 5, method: "tools/call", params});
    await send("nowhere", "POST", "/nowhere", {}, {id: 6, method: "ping"});
    await send("strange", "POST", "/mcp", {"X-Strange": "1"}, {id: 7, method: "ping"});
    window.told = told;
})();
"#;

fn told(site: &Site, origin: &str) -> Value {
    let browser = Browser::open(&format!("{origin}/"));
    let script = SCRIPT.replace("SITE", &format!("\"http://127.0.0.1:{}\"", site.port));
    browser.value(&format!("(() => {{ {script} }})()"));
    browser.wait("!!window.told", true);
    browser.value("window.told")
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn a_page_may_call_if_its_origin_is_listed() {
    let (listed, other) = (origin(), origin());
    let site = Site::for_pages_of(&listed);
    site.remember("Ann", "person", &[]);
    assert_eq!(
        told(&site, &listed),
        json!({
            "open": "200 other", "session": true, "ready": "202 other", "list": "200 read", "end": "204 other",
            "over": "404 other", "call": "200 read", "mismatch": "400 read", "nowhere": "404 other",
            // A header that no client of ours has use for is not asked for.
            "strange": "TypeError",
        })
    );
    let nothing = told(&site, &other);
    for (what, came) in nothing.as_object().unwrap() {
        let want = if what == "session" { json!(false) } else { json!("TypeError") };
        assert_eq!(*came, want, "{what}");
    }
}
