//! Keys that are good at some endpoints only.

use serde_json::json;
use tidegate_auth::keys::NewKey;

use crate::common::Gateway;

#[tokio::test]
async fn a_key_for_one_endpoint_opens_no_other() {
    let gateway = Gateway::start(|_| {}).await;
    let key = |name: &str, endpoints: &[&str]| NewKey {
        name: name.into(),
        endpoints: Some(endpoints.iter().map(|one| one.to_string()).collect()),
        ..NewKey::default()
    };
    let default = gateway.key(key("ann", &["default"])).await;
    let both = gateway.key(key("eve", &["default", "research"])).await;
    let research = gateway.change(|file| file.add(key("bob", &["research"]), 0)).reveal().to_owned();
    let who = json!({"name": "who", "arguments": {}});
    let status = async |path: &str, key: &str| {
        gateway.call(path, "tools/call", who.clone()).bearer(key).send().await.status
    };
    while status("/research/mcp", &research).await != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for (path, key, expected) in [
        ("/mcp", &default, 200),
        ("/research/mcp", &default, 401),
        ("/mcp", &research, 401),
        ("/mcp", &both, 200),
        ("/research/mcp", &both, 200),
    ] {
        assert_eq!(status(path, key).await, expected, "{path}");
    }
    // Pages and the old transport are the default endpoint's.
    assert_eq!(gateway.get("/sse").bearer(&research).send().await.status, 401);
    assert_eq!(gateway.get("/").bearer(&research).send().await.status, 401);
    let told = gateway.call("/mcp", "tools/call", who.clone()).bearer(&research).challenge().await;
    assert!(told.contains("not for this endpoint"), "{told}");
}
