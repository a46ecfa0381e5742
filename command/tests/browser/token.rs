//! An endpoint that wants a token: something in front of it lets nobody else in.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::driver::Browser;
use crate::http::header;
use crate::site::Site;

/// Passes requests on to the server at `port`; those to the endpoint only with the token.
fn doorman(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || pass(stream, port));
        }
    });
    own
}

/// One request, and then the connection is closed.
fn pass(mut stream: TcpStream, port: u16) -> Option<()> {
    let mut all = Vec::new();
    let mut room = [0; 16 * 1024];
    let head_end = loop {
        if let Some(at) = all.windows(4).position(|end| end == b"\r\n\r\n") {
            break at + 4;
        }
        let read = stream.read(&mut room).ok().filter(|read| *read > 0)?;
        all.extend_from_slice(&room[..read]);
    };
    let head = String::from_utf8(all[..head_end].to_vec()).ok()?;
    let length: usize = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while all.len() < head_end + length {
        let read = stream.read(&mut room).ok().filter(|read| *read > 0)?;
        all.extend_from_slice(&room[..read]);
    }
    if head.starts_with("POST /mcp") && header(&head, "authorization") != Some("Bearer open sesame") {
        let refusal = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(refusal.as_bytes()).ok();
    }
    let head =
        head.replacen("\r\n", "\r\nConnection: close\r\n", 1).replace("Connection: keep-alive\r\n", "");
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    server.write_all(head.as_bytes()).ok()?;
    server.write_all(&all[head_end..]).ok()?;
    std::io::copy(&mut server, &mut stream).ok().map(drop)
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn a_token_is_asked_for_and_kept_only_here() {
    let site = Site::start();
    site.remember("Ann", "person", &[]);
    let browser = Browser::open(&format!("http://127.0.0.1:{}/memory", doorman(site.port)));
    browser.wait("token.open", true);
    browser.write("#token-value", "wrong\n");
    browser.wait("token.open && /not accepted/.test(token.innerText)", true);
    assert_eq!(browser.value("document.body.dataset.state"), json!("loading"));
    browser.write("#token-value", "open sesame\n");
    browser.wait("document.body.dataset.state", "ready");
    browser.wait("counts.textContent", "1 entity, 0 relations");
    assert_eq!(
        browser.value("[localStorage.length, sessionStorage.length, document.cookie]"),
        json!([0, 0, ""])
    );
}
