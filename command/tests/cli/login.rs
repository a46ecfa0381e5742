//! login, logout, and what the other commands say about a server that wants a login: a whole authorization server in a
//! few lines, and a browser that agrees to everything.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::json;

use crate::rig::{Folder, command, tidegate_in};

/// A server that answers only those who come with the token, and the authorization server that gives it out.
fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            std::thread::spawn(move || serve(stream, address));
        }
    });
    format!("http://{address}/mcp")
}

fn serve(stream: TcpStream, address: SocketAddr) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        head.push_str(&line.to_ascii_lowercase());
        line.clear();
    }
    let length =
        head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    let (status, header, body) = answer(&head, &String::from_utf8_lossy(&body), address);
    let mut stream = stream;
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{header}\r\n{body}",
        body.len()
    );
}

fn answer(head: &str, body: &str, address: SocketAddr) -> (u16, String, String) {
    let base = format!("http://{address}");
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path.split('?').next().unwrap_or_default() {
        "/mcp" if head.contains("authorization: bearer sesame") => {
            let message: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
            let result = match message["method"].as_str() {
                Some("server/discover") => {
                    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})
                }
                _ => json!({"resultType": "complete", "tools": [{"name": "treasure", "description": "Opens",
                    "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}),
            };
            (200, String::new(), json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
        }
        "/mcp" => {
            let where_to = format!("{base}/.well-known/oauth-protected-resource/mcp");
            (401, format!("www-authenticate: Bearer resource_metadata=\"{where_to}\"\r\n"), String::new())
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            let body = json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
            (200, String::new(), body.to_string())
        }
        "/.well-known/oauth-authorization-server" => {
            let body = json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"]});
            (200, String::new(), body.to_string())
        }
        "/register" => {
            let mut body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
            body["client_id"] = "me".into();
            (201, String::new(), body.to_string())
        }
        "/token" => {
            let body = json!({"access_token": "sesame", "token_type": "Bearer", "refresh_token": "again",
                "expires_in": 3600, "scope": "caves"});
            (200, String::new(), body.to_string())
        }
        _ => (404, String::new(), String::new()),
    }
}

/// What a browser does with a login page: the user agrees, and is sent back.
fn agree(page: &str) {
    let page = url::Url::parse(page).unwrap();
    let of = |name: &str| page.query_pairs().find(|(own, _)| own == name).unwrap().1.into_owned();
    let back = url::Url::parse(&of("redirect_uri")).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", back.port().unwrap())).unwrap();
    let path = back.path();
    write!(
        stream,
        "GET {path}?code=c&state={} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        of("state")
    )
    .unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.contains("Thank you"), "{answer}");
}

#[test]
fn in_and_out() {
    let (url, folder) = (start(), Folder::new());
    let refused = tidegate_in(&folder, &["tools", &url], "").exits(5);
    assert!(
        refused.err.contains(&format!("run: tidegate login {url}")) && refused.err.contains("(E503)"),
        "{refused:?}"
    );
    assert_eq!(tidegate_in(&folder, &["doctor", &url], "").exits(1).err, "");

    let mut login = command(folder.path());
    login.args(["login", &url, "--no-browser", "--json"]);
    let mut child = login.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let page = stderr.lines().map(|line| line.unwrap()).find(|line| line.starts_with("http")).unwrap();
    agree(&page);
    let done = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&report["scopes"], &report["renewable"]), (&"caves".into(), &true.into()), "{report}");
    assert!(!String::from_utf8_lossy(&done.stdout).contains("sesame"));

    assert!(tidegate_in(&folder, &["tools", &url], "").exits(0).out.contains("treasure"));
    assert_eq!(tidegate_in(&folder, &["logout", &url], "").exits(0).out, "Logged out.\n");
    assert_eq!(tidegate_in(&folder, &["logout", &url], "").exits(0).out, "You were not logged in.\n");
    tidegate_in(&folder, &["tools", &url], "").exits(5);
}

#[test]
fn a_key_instead_of_a_login() {
    let (url, folder) = (start(), Folder::new());
    let args = ["tools", &url, "--header", "Authorization: Bearer sesame"];
    assert!(tidegate_in(&folder, &args, "").exits(0).out.contains("treasure"));
}

#[test]
fn add_says_that_a_login_is_required() {
    let (url, folder) = (start(), Folder::new());
    folder.write("tidegate.toml", "");
    let done = tidegate_in(&folder, &["add", "cave", &url], "").exits(5);
    assert_eq!(done.out, format!("Added cave, but it requires a login. Run: tidegate login {url}\n"));
    assert!(folder.read("tidegate.toml").contains("[servers.cave]"));
    // The gateway's name for it is enough.
    let refused = tidegate_in(&folder, &["tools", "cave"], "").exits(5);
    assert!(refused.err.contains("tidegate login"), "{refused:?}");
}
