//! How much callers of `tidegate serve` may do: the built program with `[limits]` and API keys of two tenants, over HTTP.
//!
//! Rates are by the hour, so that nothing comes back while a test runs.
#![cfg(unix)]

#[path = "../identity/http.rs"]
#[allow(dead_code)]
mod http;
#[path = "../identity/issuer.rs"]
#[allow(dead_code)]
mod issuer;
#[path = "../identity/rig.rs"]
#[allow(dead_code)]
mod rig;

mod answers;
mod many;
mod mistakes;
mod shown;

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::{Caller, Gateway};

/// Somebody of a tenant, with a key that is known.
fn member(gateway: &Gateway, name: &str, tenant: &str) -> Caller {
    let caller = gateway.with_token(&gateway.add_key(&[name, "--tenant", tenant]));
    // Not counted.
    until("the key is known", || caller.modern("server/discover", json!({})).status == 200);
    caller
}

/// What a result says for machines about why the call was refused; null if it was not.
fn refusal(message: &Value) -> Value {
    message["result"]["_meta"]["dev.tidegate/error"].clone()
}
