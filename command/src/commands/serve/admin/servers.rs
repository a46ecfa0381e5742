//! `/api/servers`: the servers behind the gateway, and what can be done to one.

use serde_json::{Value, json};
use tidegate_config::{DisabledCause, DisabledServer};
use tidegate_gateway::{Health, OperationError, ServerStatus};
use tidegate_service::secrets::mask;

use super::Admin;
use super::asked::{self, Asked, Refusal};
use super::routes::Answering;
use super::status::time_of;

pub(super) fn list(admin: Admin, _: Asked) -> Answering {
    Box::pin(async move { Ok(asked::json(200, &json!({"servers": all(&admin)}))) })
}

pub(super) fn get(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let server = one(&admin, asked.name())?;
        Ok(asked::json(200, &server))
    })
}

pub(super) fn restart(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let why = admin.0.gateway.restart_server(asked.name()).await.map_err(refusal)?;
        done(&admin, asked.name(), true, why.as_deref())
    })
}

pub(super) fn enable(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let changed = admin.0.gateway.enable_server(asked.name()).await.map_err(refusal)?;
        done(&admin, asked.name(), changed, None)
    })
}

pub(super) fn disable(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let changed = admin.0.gateway.disable_server(asked.name()).await.map_err(refusal)?;
        done(&admin, asked.name(), changed, None)
    })
}

pub(super) fn reset(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let why = admin.0.gateway.reset_server(asked.name()).await.map_err(refusal)?;
        done(&admin, asked.name(), true, why.as_deref())
    })
}

/// What was done: whether that changed anything, why the server does not answer, if it was asked, and how it is now.
fn done(
    admin: &Admin,
    name: &str,
    changed: bool,
    why: Option<&str>,
) -> Result<axum::http::Response<axum::body::Body>, Refusal> {
    let why = why.map(|why| mask(why).into_owned());
    Ok(asked::json(200, &json!({"changed": changed, "why": why, "server": one(admin, name)?})))
}

fn refusal(error: OperationError) -> Refusal {
    let status = match &error {
        OperationError::Unknown { .. } => 404,
        OperationError::Disabled { .. } | OperationError::Unusable { .. } => 409,
        _ => 503,
    };
    Refusal::new(status, mask(&error.to_string()).into_owned())
}

fn one(admin: &Admin, name: &str) -> Result<Value, Refusal> {
    let found = all(admin).into_iter().find(|server| server["name"] == name);
    found.ok_or_else(|| {
        let all = all(admin);
        let names = all.iter().filter_map(|server| server["name"].as_str());
        let near = tidegate_service::nearest_name(name, names).map(str::to_owned);
        refusal(OperationError::Unknown { name: name.to_owned(), near })
    })
}

/// All servers, those that are disabled last.
pub(super) fn all(admin: &Admin) -> Vec<Value> {
    let gateway = &admin.0.gateway;
    let used = gateway.status();
    let disabled = gateway.disabled();
    used.iter().map(server).chain(disabled.iter().map(off)).collect()
}

fn server(server: &ServerStatus) -> Value {
    let why = match &server.health {
        Health::Down { why, .. } => Some(mask(why).into_owned()),
        _ => None,
    };
    let [tools, prompts, resources, templates] = server.listed;
    json!({
        "name": server.name,
        "state": server.health.as_str(),
        "since": time_of(server.since),
        "why": why,
        "circuit": server.breaker.as_str(),
        "revision": server.revision.map(|revision| revision.as_str()),
        "running": server.in_flight,
        "tools": server.tools,
        "listed": {"tools": tools, "prompts": prompts, "resources": resources, "resourceTemplates": templates},
    })
}

fn off(server: &DisabledServer) -> Value {
    let is_wanted = server.cause == DisabledCause::Off;
    json!({
        "name": server.name,
        "state": "disabled",
        "why": mask(&server.reason),
        "advice": if is_wanted { "" } else { &server.advice },
        "running": 0,
        "tools": 0,
    })
}

/// The schemas of what is answered here.
pub(super) fn schemas() -> Value {
    json!({
        "Servers": {
            "type": "object",
            "required": ["servers"],
            "properties": {"servers": {"type": "array", "items": {"$ref": "#/components/schemas/Server"}}},
        },
        "Server": {
            "type": "object",
            "required": ["name", "state", "why", "running", "tools"],
            "properties": {
                "name": {"type": "string"},
                "state": {"enum": ["starting", "ready", "resting", "down", "disabled"]},
                "since": {"type": "string", "format": "date-time", "description": "Since when it is in this state."},
                "why": {"type": ["string", "null"], "description": "Why it is down, or disabled."},
                "advice": {"type": "string", "description": "What to do about a server that is disabled; may be empty."},
                "circuit": {"enum": ["CLOSED", "HALF_OPEN", "OPEN"]},
                "revision": {"type": ["string", "null"], "description": "The revision of the protocol that it speaks."},
                "running": {"type": "integer", "description": "Calls that are running."},
                "tools": {"type": "integer", "description": "Tools that are offered."},
                "listed": {
                    "type": "object",
                    "description": "What the server itself lists.",
                    "properties": {
                        "tools": {"type": "integer"},
                        "prompts": {"type": "integer"},
                        "resources": {"type": "integer"},
                        "resourceTemplates": {"type": "integer"},
                    },
                },
            },
        },
        "Done": {
            "type": "object",
            "required": ["changed", "why", "server"],
            "properties": {
                "changed": {"type": "boolean", "description": "Whether it was not so before."},
                "why": {"type": ["string", "null"], "description": "Why the server does not answer, if it was asked and does not."},
                "server": {"$ref": "#/components/schemas/Server"},
            },
        },
    })
}
