//! The gateway as an OAuth 2.1 resource server, with an identity provider that nobody here wrote (`oidc-provider` from npm):
//! our own client, and clients on the SDKs of others, from the first refusal to a result.

mod rig;

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::identity::rig::{Done, Person, Rig, list_tools};
use crate::meeting::eventually;
use crate::paths;

/// What `tidegate` returns when a login is required.
const LOGIN_REQUIRED: i32 = 5;

/// For how long an answer of the provider may be remembered, and then some.
const REMEMBERED: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn our_client_logs_in_and_out() {
    let rig = Rig::start("login").await;
    let (ann, url) = (Person::new("ann", "login"), rig.url(""));

    let refused = ann.call(&url, "demo_echo", &["message=hello"]);
    assert_eq!(refused.code, LOGIN_REQUIRED, "{refused:?}");
    assert!(refused.err.contains(&format!("tidegate login {url}")), "{refused:?}");

    let login = ann.login(&url, &[]);
    assert_eq!(login.scopes, "mcp", "no more than what was asked for");
    let echoed = ann.call(&url, "demo_echo", &["message=hello"]);
    assert_eq!((echoed.code, echoed.out.trim()), (0, "hello"), "{echoed:?}");
    assert_eq!(rig.granted("authorization_code", &url), 1, "one login is enough");

    // The token is for this endpoint and for no other.
    assert_eq!(list_tools(&url, Some(&login.access_token)).status, 200);
    let elsewhere = list_tools(&rig.url("brief"), Some(&login.access_token));
    assert_eq!(elsewhere.status, 401, "{elsewhere:?}");
    assert!(elsewhere.header("www-authenticate").contains("error=\"invalid_token\""), "{elsewhere:?}");

    assert_eq!(ann.run(&["logout", &url]).out.trim(), "Logged out.");
    assert_eq!(ann.call(&url, "demo_echo", &["message=hello"]).code, LOGIN_REQUIRED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_needs_more_is_reached_by_step_up() {
    let rig = Rig::start("step-up").await;
    let (ann, url) = (Person::new("ann", "step-up"), rig.url(""));
    ann.login(&url, &[]);

    let refused = ann.call(&url, "demo_add", &["a=20", "b=22"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("files:write"), "it says what is lacking: {refused:?}");
    let again = ann.login(&url, &["--scope", "files:write"]);
    let mut scopes: Vec<&str> = again.scopes.split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["files:write", "mcp"], "what was granted before is not lost");

    let added = ann.call(&url, "demo_add", &["a=20", "b=22"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(added.out.contains("42"), "{added:?}");
    assert_eq!(ann.call(&url, "demo_echo", &["message=still"]).out.trim(), "still");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_is_renewed_until_it_is_revoked() {
    let rig = Rig::start("refresh").await;
    let (bob, url) = (Person::new("bob", "refresh"), rig.url("brief"));
    let first = bob.login(&url, &[]);
    assert_eq!(list_tools(&url, Some(&first.access_token)).status, 200);

    eventually("the token expires", async || list_tools(&url, Some(&first.access_token)).status == 401).await;
    let echoed = bob.call(&url, "demo_echo", &["message=again"]);
    assert_eq!((echoed.code, echoed.out.trim()), (0, "again"), "{echoed:?}");
    assert_eq!(rig.granted("authorization_code", &url), 1, "nobody was asked again");
    assert!(rig.granted("refresh_token", &url) >= 1);

    // Taking back the refresh token takes back the whole grant. Another login is the only one that knows it.
    let second = bob.login(&url, &[]);
    rig.revoke(&second, &second.refresh_token);
    eventually("the token expires", async || list_tools(&url, Some(&second.access_token)).status == 401)
        .await;
    let refused = bob.call(&url, "demo_echo", &["message=no"]);
    assert_eq!(refused.code, LOGIN_REQUIRED, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opaque_token_is_asked_about() {
    let rig = Rig::start("opaque").await;
    let (cid, url) = (Person::new("cid", "opaque"), rig.url("opaque"));
    let login = cid.login(&url, &[]);
    assert!(!login.access_token.contains('.'), "the provider gives out opaque tokens here");
    let echoed = cid.call(&url, "demo_echo", &["message=opaque"]);
    assert_eq!((echoed.code, echoed.out.trim()), (0, "opaque"), "{echoed:?}");
    // It is for this endpoint, as the provider says.
    assert_eq!(list_tools(&rig.url(""), Some(&login.access_token)).status, 401);

    // One that was never seen before is refused at once, one that was within a minute.
    let unseen = Person::new("bob", "opaque").login(&url, &[]);
    rig.revoke(&unseen, &unseen.access_token);
    assert_eq!(list_tools(&url, Some(&unseen.access_token)).status, 401);
    rig.revoke(&login, &login.access_token);
    let refused = async {
        while list_tools(&url, Some(&login.access_token)).status != 401 {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::time::timeout(REMEMBERED, refused).await.expect("refused within a minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_goes_all_the_way() {
    let rig = Rig::start("typescript").await;
    for era in ["modern", "legacy"] {
        let mut command = Command::new(paths::node());
        command.arg(paths::client("node/login.mjs")).env("TIDEGATE_NODE_MODULES", paths::npm());
        goes_all_the_way(&rig, command, era);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_goes_all_the_way() {
    let rig = Rig::start("python").await;
    for era in ["modern", "legacy"] {
        let mut command = Command::new(paths::python());
        command.arg(paths::client("python/login.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        goes_all_the_way(&rig, command, era);
    }
}

/// Runs a client that calls a tool, is refused, logs in, calls again, and does the same for a tool that needs another scope.
fn goes_all_the_way(rig: &Rig, mut command: Command, era: &str) {
    let url = rig.url("");
    let done = Done::from(command.args([url.as_str(), "bob", era]).output().expect("it starts"));
    assert_eq!(done.code, 0, "{era}: {done:?}");
    let told: Value =
        serde_json::from_str(done.out.trim()).unwrap_or_else(|e| panic!("{era}: {e}: {done:?}"));
    assert_eq!(told["echoed"], "through the front", "{era}");
    assert!(told["added"].as_str().is_some_and(|sum| sum.contains("42")), "{era}: {told}");
    assert_eq!(told["echoedAgain"], "still here", "{era}");
    assert_eq!(told["scope"], "mcp files:write", "{era}");
    let pages = told["pages"].as_array().expect("pages");
    assert_eq!(pages.len(), 2, "{era}: one login, and one for the other scope: {told}");
    for (page, scopes) in pages.iter().zip([&["mcp"][..], &["files:write", "mcp"]]) {
        assert_eq!(page["resource"], url.as_str(), "{era}");
        assert_eq!(page["code_challenge_method"], "S256", "{era}");
        let asked = page["scope"].as_str().unwrap_or_default().split(' ');
        // Clients add this one when the provider offers it; the gateway never asks for it.
        let mut asked: Vec<&str> = asked.filter(|scope| *scope != "offline_access").collect();
        asked.sort_unstable();
        assert_eq!(asked, scopes, "{era}");
    }
}
