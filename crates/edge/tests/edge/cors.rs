//! Web pages of other origins: those that are listed may call and read what they are answered, errors included.

use serde_json::json;
use tidegate_edge::http::Settings;

use crate::common::*;

const APP: &str = "https://app.example.com";

fn settings() -> Settings {
    Settings { http_sse: true, ..Settings::default() }.allow_origin(APP)
}

fn preflight(client: &Client, path: &str, origin: &str, headers: &str) -> Ask {
    let ask = client.request("OPTIONS", path).without("content-type").without("accept");
    ask.header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", headers)
}

#[tokio::test(start_paused = true)]
async fn a_listed_page_hears_what_it_may_send() {
    let client = Client::new(&Stub::new(), settings());
    let asked =
        "authorization,content-type, mcp-method,mcp-name,mcp-param-Region,mcp-protocol-version,x-own,cookie";
    for path in ["/mcp", "/sse", "/messages", "/nowhere"] {
        let answer = preflight(&client, path, APP, asked).send().await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), APP, "{path}");
        assert_eq!(
            answer.header("access-control-allow-headers"),
            "authorization, content-type, mcp-method, mcp-name, mcp-param-Region, mcp-protocol-version"
        );
        assert_eq!(answer.header("access-control-allow-methods"), "GET, POST, DELETE");
        assert_eq!(answer.header("vary"), "Origin");
        assert_eq!(answer.header("access-control-allow-credentials"), "-");
        assert_eq!(answer.text().await, "");
    }
    // Nothing asked, nothing named.
    let answer = preflight(&client, "/mcp", APP, "x-own").send().await;
    assert_eq!((answer.status, answer.header("access-control-allow-headers")), (204, "-"));
}

#[tokio::test(start_paused = true)]
async fn any_other_page_hears_nothing() {
    let client = Client::new(&Stub::new(), settings());
    for origin in ["https://evil.example.com", "https://app.example.com:444", "null", "http://localhost:5173"]
    {
        let answer = preflight(&client, "/mcp", origin, "content-type").send().await;
        assert!(matches!(answer.status, 403 | 405), "{origin}: {}", answer.status);
        assert_eq!(answer.header("access-control-allow-origin"), "-", "{origin}");
        let answer =
            client.modern(&modern(1, "server/discover", json!({}))).header("origin", origin).send().await;
        assert_eq!(answer.header("access-control-allow-origin"), "-", "{origin}");
    }
    // A listed page, but under a name that is not ours.
    let answer =
        preflight(&client, "/mcp", APP, "content-type").header("host", "evil.example.com").send().await;
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (403, "-"));
    // Without a list there is nobody to answer, whoever asks.
    let client = Client::new(&Stub::new(), Settings::default());
    let answer = preflight(&client, "/mcp", "http://localhost:5173", "content-type").send().await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (405, "-"));
}

#[tokio::test(start_paused = true)]
async fn every_answer_says_who_may_read_it() {
    let client = Client::new(&Stub::new(), settings());
    let discover = || client.modern(&modern(1, "server/discover", json!({})));
    let large = format!("\"{}\"", "x".repeat(5 << 20));
    for (what, ask, status) in [
        ("an answer", discover(), 200),
        ("a session", client.post(initialize("2025-11-25", json!({})).to_string()), 200),
        ("another host", discover().header("host", "evil.example.com"), 403),
        ("no JSON", discover().header("content-type", "text/plain"), 415),
        ("no message", client.post("{"), 400),
        ("too large", client.post(large), 413),
        ("an unknown session", client.request("GET", "/mcp").header("mcp-session-id", "x"), 404),
        ("another method", client.request("PUT", "/mcp"), 405),
        ("another path", client.request("POST", "/nowhere"), 404),
        ("the old transport", client.request("POST", "/sse"), 405),
    ] {
        let answer = ask.header("origin", APP).send().await;
        assert_eq!(answer.status, status, "{what}");
        assert_eq!(answer.header("access-control-allow-origin"), APP, "{what}");
        let exposed = "Mcp-Session-Id, WWW-Authenticate, Retry-After, Tidegate-Correlation-Id";
        assert_eq!(answer.header("access-control-expose-headers"), exposed, "{what}");
        assert_eq!(answer.header("vary"), "Origin", "{what}");
    }
    // Whoever is no page is told nothing of this.
    let answer = discover().send().await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, "-"));
    // Two origins are nobody's.
    let answer = discover().header("origin", APP).again("origin", "https://evil.example.com").send().await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, "-"));
}
