//! A log that nobody reads: calls go on, and the gateway ends when it is told to.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::http::{request, until};
use crate::rig::{Gateway, SERVERS, command};

#[test]
fn calls_go_on_and_the_gateway_ends() {
    let (folder, _) = Gateway::folder(SERVERS);
    let out = folder.path().join("out");
    let mut serve = command(folder.path());
    serve.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null());
    let file = std::fs::File::create(&out).unwrap();
    // Nobody reads it, and it is not closed either.
    let mut child = serve.stdout(file).stderr(Stdio::piped()).spawn().unwrap();
    let mut address: Option<SocketAddr> = None;
    until("it says where it is", || {
        let said = std::fs::read_to_string(&out).unwrap_or_default();
        let url = said.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
        address = url.and_then(|url| url.trim().parse().ok());
        address.is_some()
    });
    let address = address.unwrap();
    let params = json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "demo_add")];
    // A pipe holds some 300 lines.
    for at in 0..600 {
        let answer = request(address, "POST", "/mcp", &headers, &body);
        assert_eq!(answer.status, 200, "call {at}: {answer:?}");
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let mut ended = None;
    until("it ends", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(ended.unwrap().success(), "{ended:?}");
}
