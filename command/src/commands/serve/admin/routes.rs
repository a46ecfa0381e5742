//! The table of the admin API. Requests are answered from it and the OpenAPI document is made from it, so that the two cannot
//! disagree.

use std::future::Future;
use std::pin::Pin;

use axum::body::Body;
use axum::http::{Method, Response};

use super::asked::{Asked, Refusal};
use super::{Admin, events, logs, openapi, servers, status};

/// Something that can be asked for.
pub(super) struct Route {
    pub(super) method: Verb,
    /// With a name in braces where there can be anything.
    pub(super) path: &'static str,
    /// What programs call it.
    pub(super) id: &'static str,
    /// What it is, in a sentence.
    pub(super) summary: &'static str,
    pub(super) needs: Needs,
    pub(super) query: &'static [Parameter],
    /// The name of the schema of what is sent.
    pub(super) body: Option<&'static str>,
    pub(super) answer: Answer,
    /// What can go wrong besides what always can: status, and why.
    pub(super) refusals: &'static [(u16, &'static str)],
    pub(super) run: Run,
}

pub(super) type Run = fn(Admin, Asked) -> Answering;
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Refusal>> + Send>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
}

impl Verb {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
        }
    }

    /// Whether nothing is changed by it.
    pub(super) fn is_reading(self) -> bool {
        self == Verb::Get
    }

    fn is(self, method: &Method) -> bool {
        // The body of an answer to HEAD is cut off below us.
        method.as_str() == self.as_str() || (self == Verb::Get && method == Method::HEAD)
    }
}

/// What somebody on this machine has to bring where nobody is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// For what changes something, or shows what other users of this machine do not see elsewhere.
    Token,
}

/// A parameter of the query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) fits: Fits,
    pub(super) about: &'static str,
}

/// What fits a parameter.
#[derive(Clone, Copy)]
pub(super) enum Fits {
    Text,
    /// From, to.
    Whole(u64, u64),
    OneOf(&'static [&'static str]),
}

/// What comes back.
pub(super) enum Answer {
    /// JSON, by the name of its schema.
    Json(&'static str),
    /// Server-sent events, by the name of the schema of their data.
    Events(&'static str),
}

impl Route {
    /// What a rule of the policy has to allow: the path or, where something is changed, the method and the path. So who may read
    /// everything (`page:/api/*`) may change nothing.
    pub(super) fn object(&self, path: &str) -> String {
        match self.method.is_reading() {
            true => path.to_owned(),
            false => format!("{}:{path}", self.method.as_str()),
        }
    }

    /// What stands for the names of a path; `None` for another path.
    fn values(&self, path: &str) -> Option<Vec<String>> {
        let (mut own, mut given) = (self.path.split('/'), path.split('/'));
        let mut values = Vec::new();
        loop {
            match (own.next(), given.next()) {
                (None, None) => return Some(values),
                (Some(name), Some(value)) if name.starts_with('{') && !value.is_empty() => {
                    values.push(value.to_owned());
                }
                (Some(own), Some(given)) if own == given => {}
                _ => return None,
            }
        }
    }
}

/// What there is at a path.
pub(super) enum Found {
    Route(&'static Route, Vec<String>),
    /// Something, for these methods.
    Other(String),
    Nothing,
}

pub(super) fn find(method: &Method, path: &str) -> Found {
    let mut there: Vec<(&'static Route, Vec<String>)> =
        ROUTES.iter().filter_map(|route| Some((route, route.values(path)?))).collect();
    if let Some(at) = there.iter().position(|(route, _)| route.method.is(method)) {
        let (route, values) = there.swap_remove(at);
        return Found::Route(route, values);
    }
    let mut allowed = Vec::new();
    for (route, _) in &there {
        allowed.push(route.method.as_str());
        if route.method == Verb::Get {
            allowed.push("HEAD");
        }
    }
    if allowed.is_empty() { Found::Nothing } else { Found::Other(allowed.join(", ")) }
}

/// The name of a server, in the path of a change.
const UNKNOWN: (u16, &str) = (404, "There is no server of that name.");
const DISABLED: (u16, &str) = (409, "The server is disabled.");

const LEVEL: Parameter = Parameter {
    name: "level",
    fits: Fits::OneOf(&logs::LEVELS),
    about: "Only lines that are at least as important.",
};
const SERVER: Parameter =
    Parameter { name: "server", fits: Fits::Text, about: "Only lines about this server." };
const ID: Parameter =
    Parameter { name: "id", fits: Fits::Text, about: "Only lines about the call with this id." };
const AFTER: Parameter = Parameter {
    name: "after",
    fits: Fits::Whole(0, u64::MAX),
    about: "Only lines after the one with this number.",
};

/// Everything there is.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Get,
        path: "/api/status",
        id: "getStatus",
        summary: "What runs, and how it is: the process, its servers, its calls and its alerts.",
        needs: Needs::Nothing,
        query: &[],
        body: None,
        answer: Answer::Json("Status"),
        refusals: &[],
        run: status::get,
    },
    Route {
        method: Verb::Get,
        path: "/api/servers",
        id: "listServers",
        summary: "The servers of the configuration, in its order, and those of them that are disabled.",
        needs: Needs::Nothing,
        query: &[],
        body: None,
        answer: Answer::Json("Servers"),
        refusals: &[],
        run: servers::list,
    },
    Route {
        method: Verb::Get,
        path: "/api/servers/{name}",
        id: "getServer",
        summary: "One server.",
        needs: Needs::Nothing,
        query: &[],
        body: None,
        answer: Answer::Json("Server"),
        refusals: &[UNKNOWN],
        run: servers::get,
    },
    Route {
        method: Verb::Post,
        path: "/api/servers/{name}/restart",
        id: "restartServer",
        summary: "Has a server begin anew, with another connection or process. Running calls finish where they began.",
        needs: Needs::Token,
        query: &[],
        body: None,
        answer: Answer::Json("Done"),
        refusals: &[UNKNOWN, DISABLED],
        run: servers::restart,
    },
    Route {
        method: Verb::Post,
        path: "/api/servers/{name}/enable",
        id: "enableServer",
        summary: "Switches a server on again that was switched off here. What the configuration disables stays so.",
        needs: Needs::Token,
        query: &[],
        body: None,
        answer: Answer::Json("Done"),
        refusals: &[UNKNOWN, DISABLED],
        run: servers::enable,
    },
    Route {
        method: Verb::Post,
        path: "/api/servers/{name}/disable",
        id: "disableServer",
        summary: "Switches a server off until it is enabled again or the gateway restarts: its tools leave all lists.",
        needs: Needs::Token,
        query: &[],
        body: None,
        answer: Answer::Json("Done"),
        refusals: &[UNKNOWN],
        run: servers::disable,
    },
    Route {
        method: Verb::Post,
        path: "/api/servers/{name}/reset",
        id: "resetServer",
        summary: "Closes the circuit breaker of a server, forgets its failures and asks it at once whether it is there.",
        needs: Needs::Token,
        query: &[],
        body: None,
        answer: Answer::Json("Done"),
        refusals: &[UNKNOWN, DISABLED],
        run: servers::reset,
    },
    Route {
        method: Verb::Get,
        path: "/api/calls",
        id: "listCalls",
        summary: "What happened to the latest calls, the newest first.",
        needs: Needs::Nothing,
        query: &[
            Parameter {
                name: "id",
                fits: Fits::Text,
                about: "Only calls with this id, or the story with this number.",
            },
            Parameter { name: "tool", fits: Fits::Text, about: "Only calls of this tool." },
            Parameter {
                name: "failed",
                fits: Fits::OneOf(&["true", "false"]),
                about: "Only calls that failed.",
            },
            Parameter { name: "limit", fits: Fits::Whole(1, 1000), about: "How many at most. Default 20." },
        ],
        body: None,
        answer: Answer::Json("Calls"),
        refusals: &[],
        run: status::calls,
    },
    Route {
        method: Verb::Get,
        path: "/api/logs",
        id: "listLogs",
        summary: "The latest log lines, the oldest first.",
        needs: Needs::Token,
        query: &[
            LEVEL,
            SERVER,
            ID,
            AFTER,
            Parameter {
                name: "limit",
                fits: Fits::Whole(1, logs::MOST),
                about: "How many at most. Default 100.",
            },
        ],
        body: None,
        answer: Answer::Json("LogLines"),
        refusals: &[],
        run: logs::list,
    },
    Route {
        method: Verb::Get,
        path: "/api/logs/stream",
        id: "followLogs",
        summary: "The log lines to come. A follower that reads too slowly misses lines, and is told how many.",
        needs: Needs::Token,
        query: &[LEVEL, SERVER, ID, AFTER],
        body: None,
        answer: Answer::Events("LogLine"),
        refusals: &[(503, "There are too many followers.")],
        run: logs::follow,
    },
    Route {
        method: Verb::Get,
        path: "/api/log/level",
        id: "getLogLevel",
        summary: "Which lines are logged.",
        needs: Needs::Nothing,
        query: &[],
        body: None,
        answer: Answer::Json("LogLevel"),
        refusals: &[],
        run: logs::level,
    },
    Route {
        method: Verb::Put,
        path: "/api/log/level",
        id: "setLogLevel",
        summary: "Has other lines logged, until the gateway restarts.",
        needs: Needs::Token,
        query: &[],
        body: Some("WantedLevel"),
        answer: Answer::Json("LogLevel"),
        refusals: &[(413, "The body is too large.")],
        run: logs::set_level,
    },
    Route {
        method: Verb::Get,
        path: "/api/events",
        id: "followEvents",
        summary: "What happens from now on: servers, circuit breakers, alerts, and calls that have ended. A follower that reads too \
                  slowly loses events, and is told how many.",
        needs: Needs::Nothing,
        query: &[],
        body: None,
        answer: Answer::Events("Event"),
        refusals: &[(503, "There are too many followers.")],
        run: events::follow,
    },
    Route {
        method: Verb::Get,
        path: "/api/openapi.json",
        id: "getOpenApi",
        summary: "This document.",
        needs: Needs::Nothing,
        query: &[],
        body: None,
        answer: Answer::Json("OpenApi"),
        refusals: &[],
        run: openapi::get,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_routes_and_nowhere_else() {
        let found = |method: Method, path: &str| match find(&method, path) {
            Found::Route(route, values) => format!("{} {}", route.id, values.join(",")),
            Found::Other(allowed) => format!("use {allowed}"),
            Found::Nothing => "nothing".to_owned(),
        };
        for (method, path, expected) in [
            (Method::GET, "/api/status", "getStatus "),
            (Method::HEAD, "/api/status", "getStatus "),
            (Method::POST, "/api/status", "use GET, HEAD"),
            (Method::GET, "/api/servers/a.b-c", "getServer a.b-c"),
            (Method::POST, "/api/servers/x/restart", "restartServer x"),
            (Method::GET, "/api/servers/x/restart", "use POST"),
            (Method::GET, "/api/servers/", "nothing"),
            (Method::POST, "/api/servers//restart", "nothing"),
            (Method::GET, "/api", "nothing"),
            (Method::GET, "/api/status/", "nothing"),
            (Method::GET, "/api/servers/x/restart/y", "nothing"),
            (Method::GET, "/API/status", "nothing"),
        ] {
            assert_eq!(found(method.clone(), path), expected, "{method} {path}");
        }
    }

    #[test]
    fn whatever_changes_something_needs_the_token_and_a_rule_of_its_own() {
        for route in ROUTES {
            if !route.method.is_reading() {
                assert_eq!(route.needs, Needs::Token, "{}", route.id);
                assert_eq!(route.object("/api/x"), format!("{}:/api/x", route.method.as_str()));
            } else {
                assert_eq!(route.object("/api/x"), "/api/x");
            }
        }
    }
}
