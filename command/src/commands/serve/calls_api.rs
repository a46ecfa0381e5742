//! `/api/calls`: the stories of the latest calls, for `tidegate explain`.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;
use tidegate_telemetry::{Stories, Wanted};
use url::form_urlencoded;

use super::monitoring::answer;

/// Where it is.
pub(crate) const PATH: &str = "/api/calls";

/// How many are given at once, and at most.
const USUAL: usize = 20;
const MOST: usize = 1000;

/// The calls that are asked for: `?id=…`, `?tool=…`, `?failed=true`, `?limit=…`.
pub(super) fn calls(stories: &Stories, request: &Request<Body>) -> Response<Body> {
    let query: Vec<(String, String)> =
        form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect();
    let value = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    if let Some((name, _)) =
        query.iter().find(|(name, _)| !["id", "tool", "failed", "limit"].contains(&&**name))
    {
        let why = format!("unknown parameter {name:?}: use id, tool, failed or limit");
        return answer(StatusCode::BAD_REQUEST, &json!({"error": why}));
    }
    let limit = match value("limit").map(str::parse::<usize>) {
        None => USUAL,
        Some(Ok(limit)) if (1..=MOST).contains(&limit) => limit,
        Some(_) => {
            let why = format!("limit must be a number from 1 to {MOST}");
            return answer(StatusCode::BAD_REQUEST, &json!({"error": why}));
        }
    };
    let failed = match value("failed") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return answer(StatusCode::BAD_REQUEST, &json!({"error": "failed must be true or false"})),
    };
    let wanted = Wanted { id: value("id"), failed, tool: value("tool") };
    let mut text = String::from("{\"calls\":[");
    let found = stories.find(&wanted, limit);
    for (at, story) in found.stories.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "," });
        text.push_str(story.as_str());
    }
    // Calls of one trace share their id, and whoever calls can choose a trace: how many there are is part of the answer.
    text.push_str(&format!("],\"more\":{}}}\n", found.more));
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
