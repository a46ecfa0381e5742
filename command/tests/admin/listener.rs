//! `[admin] listen`: what is for operators has an address of its own.

use std::net::SocketAddr;

use crate::http::{Answer, request, until};
use crate::rig::{Gateway, SERVERS};
use crate::{DEMO, json_said, note, refused, said};

/// Where the admin API is.
fn admin(gateway: &Gateway) -> SocketAddr {
    note(gateway)["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap()
}

fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    request(address, "GET", path, headers, "")
}

#[test]
fn it_is_there_and_not_where_clients_come() {
    let gateway = Gateway::start_exactly(&format!("{DEMO}[admin]\nlisten = \"127.0.0.1:0\"\n"));
    let own = admin(&gateway);
    assert_ne!(own, gateway.address);
    for (path, here, there) in [
        ("/api/status", 200, 404),
        ("/api/calls", 200, 404),
        ("/metrics", 200, 404),
        ("/health", 200, 200),
        ("/ready", 200, 200),
        ("/live", 200, 200),
        ("/mcp", 404, 400),
        ("/", 404, 200),
    ] {
        let status = |address| get(address, path, &[]).status;
        assert_eq!((status(own), status(gateway.address)), (here, there), "{path}");
    }
    assert_eq!(request(own, "POST", "/api/servers/demo/restart", &[], "").status, 401);
    assert_eq!(get(own, "/api/status", &[("Host", "evil.example")]).status, 403);
    assert_eq!(get(own, "/api/status", &[("Origin", "https://evil.example")]).status, 403);
    let url = format!("http://{own}");
    let folder = gateway.folder.path();
    assert_eq!(json_said(folder, &["status", "--url", &url])["running"], true);
    assert!(said(folder, &["restart", "demo", "--url", &url]).contains("Restarted"));
}

#[test]
fn with_keys_it_asks_for_them_too() {
    let policy = "[policy]\n[[policy.rules]]\nallow = [\"page:*\"]\nroles = [\"ops\"]\n";
    let gateway = Gateway::start(&format!("{policy}[admin]\nlisten = \"127.0.0.1:0\"\n"));
    let own = admin(&gateway);
    let bearer = |role: &str| format!("Bearer {}", gateway.add_key(&[role, "--role", role]));
    let (ops, other) = (bearer("ops"), bearer("other"));
    until("the keys are known", || get(own, "/api/status", &[("Authorization", &ops)]).status == 200);
    for (path, headers, expected) in [
        ("/api/status", &[][..], 401),
        ("/metrics", &[], 401),
        ("/metrics", &[("Authorization", &*ops)], 200),
        ("/api/status", &[("Authorization", &*other)], 404),
        ("/health", &[], 200),
    ] {
        assert_eq!(get(own, path, headers).status, expected, "{path} {headers:?}");
    }
}

#[test]
fn where_others_come_through_a_proxy_it_is_for_this_machine() {
    let config =
        format!("public_url = \"https://mcp.example.com\"\n{SERVERS}[admin]\nlisten = \"127.0.0.1:0\"\n");
    let gateway = Gateway::start_exactly(&config);
    let own = admin(&gateway);
    assert_eq!(get(own, "/api/status", &[]).status, 200);
    assert_eq!(
        get(own, "/api/status", &[("Host", "mcp.example.com")]).status,
        403,
        "nobody comes here by that name"
    );
    assert_eq!(get(gateway.address, "/api/status", &[]).status, 404);
}

#[test]
fn other_machines_need_keys_and_encryption() {
    for (config, part) in [
        ("[admin]\nlisten = \"0.0.0.0:9765\"\n", "admin.listen: other machines can reach this address"),
        ("insecure = true\n[admin]\nlisten = \"0.0.0.0:9765\"\n", "add [auth]"),
        ("[admin]\nlisten = \"nowhere\"\n", "admin.listen: must be a port (8080)"),
        ("[admin]\nlisten = \"127.0.0.1:8765\"\n", "admin.listen: is the address of clients"),
        ("[admin]\nlisten = \"0.0.0.0:9765\"\n[auth]\nkeys = \"keys.toml\"\n", "would be sent unencrypted"),
        ("[admin]\nlisten = 9765\n", ""),
    ] {
        let (folder, _) = Gateway::folder(config);
        let (code, said) = {
            let done = crate::tidegate(folder.path(), &["check"]);
            (
                done.status.code(),
                format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)),
            )
        };
        assert_eq!(code, Some(if part.is_empty() { 0 } else { 2 }), "{config}: {said}");
        assert!(said.contains(part), "{config}: {said}");
        if !part.is_empty() {
            let (code, why) = refused(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
            assert_eq!(code, Some(2), "{config}: {why}");
        }
    }
}
