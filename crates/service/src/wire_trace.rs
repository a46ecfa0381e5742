//! Every message on the wire, in the log at debug level: masked, and cut where it would drown the rest.
//!
//! For transports. A line says `received` or `sent`, what (`content`), how long it is (`bytes`), and from or to which
//! `server`; without a server it is about a client. Headers are never shown. Where nobody listens at debug level, a call
//! costs one load.

use serde_json::Value;

/// How much of a message is shown.
const MOST: usize = 2_000;

/// What all these lines have as their target, to ask for them or to leave them out.
pub const TARGET: &str = "tidegate::wire";

/// Whether anybody wants to know.
#[inline]
pub fn is_on() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::DEBUG)
}

/// A message came in from a client.
#[inline]
pub fn received(message: &[u8]) {
    if is_on() {
        tracing::debug!(target: TARGET, bytes = message.len(), content = shown(message), "received");
    }
}

/// A message goes out to a client.
#[inline]
pub fn sent(message: &[u8]) {
    if is_on() {
        tracing::debug!(target: TARGET, bytes = message.len(), content = shown(message), "sent");
    }
}

/// A message came in from a server.
#[inline]
pub fn received_from(server: &str, message: &[u8]) {
    if is_on() {
        tracing::debug!(target: TARGET, server, bytes = message.len(), content = shown(message), "received");
    }
}

/// A message goes out to a server.
#[inline]
pub fn sent_to(server: &str, message: &[u8]) {
    if is_on() {
        tracing::debug!(target: TARGET, server, bytes = message.len(), content = shown(message), "sent");
    }
}

/// A request without a message goes out to a server over HTTP, such as `GET`.
#[inline]
pub fn asked(server: &str, method: &str) {
    if is_on() {
        tracing::debug!(target: TARGET, server, content = method, "sent");
    }
}

/// The head of an HTTP response came in from a server. `follows` is what comes behind it, such as `an event stream`.
#[inline]
pub fn answered(server: &str, status: u16, follows: &str) {
    if is_on() {
        tracing::debug!(target: TARGET, server, status, content = format!("HTTP {status}{follows}"), "received");
    }
}

#[cold]
fn shown(message: &[u8]) -> String {
    let mut text = match serde_json::from_slice::<Value>(message) {
        Ok(mut value) => {
            crate::secrets::hide_in_json(&mut value);
            // Before it is cut: half of a secret is not recognised.
            crate::secrets::mask(&value.to_string()).into_owned()
        }
        // What cannot be read cannot be masked either.
        Err(_) => return format!("({} bytes that are not JSON)", message.len()),
    };
    if text.len() > MOST {
        let end = (0..=MOST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_the_rest_is_shown() {
        for (message, want) in [
            (
                r#"{"arguments":{"Password":"p","taxonKey":5}}"#,
                r#"{"arguments":{"Password":"***","taxonKey":5}}"#,
            ),
            (r#"[{"api_key":["a","b"],"progressToken":0}]"#, r#"[{"api_key":"***","progressToken":0}]"#),
            (
                r#"{"properties":{"token":{"type":"string"}}}"#,
                r#"{"properties":{"token":{"type":"string"}}}"#,
            ),
            ("{broken", "(7 bytes that are not JSON)"),
        ] {
            assert_eq!(shown(message.as_bytes()), want);
        }
        let long = format!("[\"{}\"]", "é".repeat(MOST));
        assert!(shown(long.as_bytes()).len() <= MOST + 3);
    }

    #[test]
    fn a_secret_where_the_text_is_cut_leaves_nothing_of_it() {
        crate::secrets::register("wire-trace-secret-0001");
        for before in MOST - 30..MOST {
            let message = format!("[\"{} wire-trace-secret-0001 and more\"]", "x".repeat(before));
            let shown = shown(message.as_bytes());
            assert!(!shown.contains("wire"), "{before}: {}", &shown[MOST - 40..]);
        }
    }
}
