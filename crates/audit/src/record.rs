//! The members of records: what is written down of a call, of a refused login, of a refused request. Nothing that others wrote is in
//! here but as a [short string](crate::text); of arguments there is only a digest.

use tidegate_protocol::Json;
use tidegate_service::events::{CallEnded, HostRefused, LoginRefused, Operated, PolicyChanged};
use tidegate_service::secrets::mask;

use crate::chain::{Hash, hex, write_number};
use crate::text::{key, member, number, own, string};

/// Longer chains of who acts for whom are cut.
const MOST_ACTORS: usize = 8;

/// What is written down of a call.
pub(crate) fn call(out: &mut Vec<u8>, call: &CallEnded<'_>) {
    own!(out, "id", call.correlation.as_str());
    let principal = call.principal;
    member!(out, "issuer", principal.issuer.as_deref());
    member!(out, "subject", principal.subject.as_deref());
    member!(out, "tenant", principal.tenant.as_deref());
    if let Some(claims) = call.claims {
        member!(out, "client", claims.client.as_deref());
        if !claims.actors.is_empty() {
            actors(out, claims.actors.iter().map(|actor| &**actor));
        }
    }
    member!(out, "endpoint", call.endpoint);
    member!(out, "method", call.method.as_str());
    member!(out, "name", call.name().map(mask).as_deref());
    member!(out, "server", call.server);
    if let Some(decision) = call.decision() {
        member!(out, "rule", &*decision.rule);
        own!(out, "decision", decision.as_str());
    }
    own!(out, "outcome", call.outcome.as_str());
    member!(out, "error", call.error().as_deref());
    if let Some(limit) = call.limit() {
        // In the gateway's own words, unless a server has put something there.
        member!(out, "limit", limit.as_str());
    }
    if let Some(arguments) = call.params.json("arguments") {
        key!(out, "args");
        hash(out, &arguments_digest(&arguments));
    }
    own!(out, "revision", call.revision.as_str());
    if let Some(revision) = call.server_revision() {
        own!(out, "server_revision", revision.as_str());
    }
    key!(out, "duration_ms");
    milliseconds(out, u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX));
}

/// What is written down of a refused login.
pub(crate) fn login_refused(out: &mut Vec<u8>, login: &LoginRefused<'_>) {
    member!(out, "reason", login.reason);
    member!(out, "endpoint", login.endpoint);
    member!(out, "address", login.address.map(|address| address.to_string()).as_deref());
    member!(out, "detail", login.detail);
}

/// What is written down of a request to a host that this is not, or from a page that may not call.
pub(crate) fn host_refused(out: &mut Vec<u8>, host: &HostRefused<'_>) {
    member!(out, "reason", host.why);
    member!(out, "address", host.address.map(|address| address.to_string()).as_deref());
}

/// What is written down of another policy.
pub(crate) fn policy(out: &mut Vec<u8>, policy: &PolicyChanged<'_>) {
    number!(out, "rules", policy.rules as u64);
    own!(out, "mode", policy.mode);
    own!(out, "default", policy.default);
    member!(out, "digest", policy.digest);
}

/// What is written down of a change through the admin API.
pub(crate) fn operation(out: &mut Vec<u8>, it: &Operated<'_>) {
    member!(out, "issuer", it.principal.issuer.as_deref());
    member!(out, "subject", it.principal.subject.as_deref());
    member!(out, "tenant", it.principal.tenant.as_deref());
    own!(out, "operation", it.operation);
    member!(out, "path", it.path);
    own!(out, "way", it.way);
    member!(out, "detail", it.detail);
}

/// The digest of a call's arguments: over their canonical form, so that spelling does not matter.
pub fn arguments_digest(arguments: &Json) -> Hash {
    *blake3::hash(arguments.canonical().as_str().as_bytes()).as_bytes()
}

/// Appends a hash as a JSON string.
pub(crate) fn hash(out: &mut Vec<u8>, hash: &Hash) {
    out.push(b'"');
    out.extend_from_slice(&hex(hash));
    out.push(b'"');
}

fn actors<'a>(out: &mut Vec<u8>, actors: impl Iterator<Item = &'a str>) {
    key!(out, "actors");
    out.push(b'[');
    for (at, actor) in actors.take(MOST_ACTORS).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, actor);
    }
    out.push(b']');
}

/// Appends microseconds as milliseconds: `1.5`, `0.032`, `12`.
fn milliseconds(out: &mut Vec<u8>, us: u64) {
    write_number(out, us / 1000);
    let rest = us % 1000;
    if rest > 0 {
        let digits =
            [b'.', b'0' + (rest / 100) as u8, b'0' + (rest / 10 % 10) as u8, b'0' + (rest % 10) as u8];
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        out.extend_from_slice(&digits[..digits.len() - zeros]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (us, text) in
            [(0, "0"), (32, "0.032"), (1_500, "1.5"), (12_000, "12"), (1_234_567, "1234.567"), (10, "0.01")]
        {
            let mut out = Vec::new();
            milliseconds(&mut out, us);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn digests_are_over_values_and_not_over_their_spelling() {
        let digest = |text: &'static str| arguments_digest(&Json::trusted(text));
        assert_eq!(digest(r#"{"a": 1.0, "b":"\u0041"}"#), digest(r#"{"b":"A","a":1}"#));
        assert_ne!(digest(r#"{"a":1}"#), digest(r#"{"a":2}"#));
    }
}
