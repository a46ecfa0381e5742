//! [`Challenge`]: how a request is refused whose caller is not known, or may not do what it asks for.

use std::fmt::Write as _;

use ::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use ::http::{HeaderValue, Response};
use axum::body::Body;
use tidegate_protocol::{Error, Json, Symbol};

use super::respond;

/// A refusal with `WWW-Authenticate: Bearer` (RFC 6750, RFC 9728): where to get a token, for which scopes, and what is wrong
/// with the one that was sent.
///
/// ```
/// use tidegate_edge::http::Challenge;
///
/// let response = Challenge::unauthenticated()
///     .resource_metadata("https://mcp.example.com/.well-known/oauth-protected-resource/mcp")
///     .scopes(["tools:read"])
///     .respond();
/// assert_eq!(response.status(), 401);
/// ```
#[derive(Debug, Clone)]
pub struct Challenge {
    status: u16,
    /// `error`, only when a token was sent.
    error: Option<&'static str>,
    description: String,
    resource_metadata: Option<String>,
    scopes: Vec<String>,
}

impl Challenge {
    fn new(status: u16, error: Option<&'static str>, description: impl Into<String>) -> Challenge {
        let description = description.into();
        Challenge { status, error, description, resource_metadata: None, scopes: Vec::new() }
    }

    /// No credentials were sent: 401.
    pub fn unauthenticated() -> Challenge {
        Challenge::new(401, None, "Unauthorized: credentials are required")
    }

    /// The token that was sent is not good: 401 `invalid_token`.
    pub fn invalid_token(why: impl Into<String>) -> Challenge {
        Challenge::new(401, Some("invalid_token"), why)
    }

    /// The request has credentials in no form that is understood: 400 `invalid_request`.
    pub fn invalid_request(why: impl Into<String>) -> Challenge {
        Challenge::new(400, Some("invalid_request"), why)
    }

    /// The token is good, but not for this: 403 `insufficient_scope`. Name every scope that is needed.
    pub fn insufficient_scope(why: impl Into<String>) -> Challenge {
        Challenge::new(403, Some("insufficient_scope"), why)
    }

    /// Whether the token is good cannot be told right now: 503, and nothing that would make the client get another.
    pub fn unavailable(why: impl Into<String>) -> Challenge {
        Challenge::new(503, None, why)
    }

    /// Where the metadata of the protected resource is.
    pub fn resource_metadata(mut self, url: impl Into<String>) -> Challenge {
        self.resource_metadata = Some(url.into());
        self
    }

    /// The scopes that are needed.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Challenge {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The response: the challenge, and the same as a JSON-RPC error without an id.
    pub fn respond(&self) -> Response<Body> {
        let symbol = match self.status {
            401 => Symbol::Unauthorized,
            403 => Symbol::InsufficientScope,
            503 => Symbol::Unavailable,
            _ => Symbol::InvalidRequest,
        };
        let mut error = Error::new(symbol, self.description.clone());
        if symbol == Symbol::InsufficientScope
            && let Ok(scopes) = Json::of(&self.scopes)
        {
            error = error.with_data_member("requiredScopes", &scopes);
        }
        let mut response = respond::refused(self.status, &error);
        // What is refused today may be granted tomorrow, and to somebody else.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.status {
            503 => drop(response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"))),
            _ => self.add_to(&mut response),
        }
        response
    }

    /// Adds the header `WWW-Authenticate` to a response that says the rest.
    pub fn add_to(&self, response: &mut Response<Body>) {
        if let Ok(value) = HeaderValue::try_from(self.header()) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
    }

    fn header(&self) -> String {
        let scopes = (!self.scopes.is_empty()).then(|| self.scopes.join(" "));
        let description = self.error.map(|_| self.description.as_str());
        let mut header = String::from("Bearer");
        let mut comma = "";
        for (name, value) in [
            ("resource_metadata", self.resource_metadata.as_deref()),
            ("scope", scopes.as_deref()),
            ("error", self.error),
            ("error_description", description),
        ] {
            if let Some(value) = value {
                // Writing to a string does not fail.
                let _ = write!(header, "{comma} {name}=\"{}\"", quotable(value));
                comma = ",";
            }
        }
        header
    }
}

/// What may stand between the quotes of a parameter (RFC 6750 section 3): visible ASCII without quotes and backslashes.
fn quotable(text: &str) -> String {
    let is_allowed = |c: &char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
    text.chars().filter(is_allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_the_next_attempt_needs() {
        let metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
        for (challenge, status, header) in [
            (Challenge::unauthenticated(), 401, "Bearer".to_owned()),
            (
                Challenge::unauthenticated().resource_metadata(metadata).scopes(["a", "b"]),
                401,
                format!(r#"Bearer resource_metadata="{metadata}", scope="a b""#),
            ),
            (
                Challenge::invalid_token("The token has \"expired\"\r\n"),
                401,
                r#"Bearer error="invalid_token", error_description="The token has expired""#.to_owned(),
            ),
            (
                Challenge::insufficient_scope("More is needed").scopes(["files:write"]),
                403,
                r#"Bearer scope="files:write", error="insufficient_scope", error_description="More is needed""#
                    .to_owned(),
            ),
            (
                Challenge::invalid_request("Two tokens"),
                400,
                r#"Bearer error="invalid_request", error_description="Two tokens""#.to_owned(),
            ),
        ] {
            let response = challenge.respond();
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()[WWW_AUTHENTICATE], header);
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        }
    }

    #[tokio::test]
    async fn the_body_says_the_same() {
        for (challenge, code, scopes) in [
            (Challenge::unauthenticated().scopes(["mcp"]), -32603, None),
            (Challenge::invalid_token("It has expired"), -32603, None),
            (Challenge::insufficient_scope("More").scopes(["a", "b"]), -32603, Some(r#"["a","b"]"#)),
            (Challenge::invalid_request("Two tokens"), -32600, None),
        ] {
            let body = axum::body::to_bytes(challenge.respond().into_body(), 10_000).await.unwrap();
            let message: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(message["error"]["code"], code, "{message}");
            let data = &message["error"]["data"];
            assert_eq!(data.get("requiredScopes").map(ToString::to_string).as_deref(), scopes, "{message}");
        }
    }
}
