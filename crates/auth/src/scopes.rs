//! [`Scopes`]: which scopes are needed for what, and which include others.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_config::{Patterns, ScopeSettings};
use tidegate_service::Claims;

/// No scope that a resource ever asks for: it is between a client and its authorization server.
const OFFLINE: &str = "offline_access";

/// The scopes of the configuration, ready to be compared with those of a token.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    pub(crate) required: Vec<Arc<str>>,
    tools: Vec<(Arc<str>, Patterns)>,
    /// For a scope those that it includes, and what these include, and so on.
    includes: BTreeMap<String, Vec<String>>,
}

impl Scopes {
    pub(crate) fn new(settings: &ScopeSettings) -> Scopes {
        let is_ours = |scope: &&String| scope.as_str() != OFFLINE;
        Scopes {
            required: settings.required.iter().filter(is_ours).map(|scope| scope.as_str().into()).collect(),
            tools: settings
                .tools
                .iter()
                .filter(|(scope, _)| is_ours(&scope))
                .map(|(scope, patterns)| (scope.as_str().into(), patterns.clone()))
                .collect(),
            includes: settings
                .includes
                .keys()
                .map(|scope| (scope.clone(), all_in(scope, &settings.includes)))
                .collect(),
        }
    }

    /// Whether claims are enough for what everybody does.
    pub(crate) fn admit(&self, claims: Option<&Claims>) -> bool {
        self.required.iter().all(|scope| self.grants(claims, scope))
    }

    /// The scopes that everybody needs and claims lack.
    pub(crate) fn missing(&self, claims: Option<&Claims>) -> Vec<Arc<str>> {
        self.required.iter().filter(|scope| !self.grants(claims, scope)).cloned().collect()
    }

    /// Whether any tool needs more than that.
    pub(crate) fn concern_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Whether tools need the same, and scopes include the same.
    pub(crate) fn is_same_for_tools(&self, other: &Scopes) -> bool {
        self.tools == other.tools && self.includes == other.includes
    }

    /// All scopes that a call of a tool needs, if the claims lack any of them.
    pub(crate) fn missing_for(&self, tool: &str, claims: &Claims) -> Option<Vec<Arc<str>>> {
        let of_tool =
            self.tools.iter().filter(|(_, patterns)| patterns.matches(tool)).map(|(scope, _)| scope);
        let mut needed: Vec<Arc<str>> = Vec::new();
        for scope in self.required.iter().chain(of_tool) {
            if !needed.contains(scope) {
                needed.push(scope.clone());
            }
        }
        let is_missing = needed.iter().any(|scope| !self.grants(Some(claims), scope));
        is_missing.then_some(needed)
    }

    fn grants(&self, claims: Option<&Claims>, scope: &str) -> bool {
        let Some(granted) = claims.and_then(|claims| claims.scopes.as_ref()) else { return true };
        granted.iter().any(|one| {
            **one == *scope
                || self.includes.get(&**one).is_some_and(|all| all.iter().any(|inner| inner == scope))
        })
    }
}

/// What a scope includes, however far down. Scopes that include each other do no harm.
fn all_in(scope: &str, includes: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut open = vec![scope];
    while let Some(next) = open.pop() {
        for inner in includes.get(next).into_iter().flatten() {
            if !all.contains(inner) {
                all.push(inner.clone());
                open.push(inner);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes() -> Scopes {
        let list = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        Scopes::new(&ScopeSettings {
            required: list(&["mcp", "offline_access"]),
            tools: vec![
                ("files:write".into(), Patterns::new(["fs_write_*"]).unwrap()),
                ("files:read".into(), Patterns::new(["fs_*"]).unwrap()),
            ],
            includes: BTreeMap::from([
                ("files:admin".into(), list(&["files:write"])),
                ("files:write".into(), list(&["files:read", "files:admin"])),
                ("all".into(), list(&["files:admin", "mcp"])),
            ]),
        })
    }

    fn claims(scopes: &[&str]) -> Claims {
        Claims { scopes: Some(scopes.iter().map(|one| Arc::from(*one)).collect()), ..Claims::default() }
    }

    #[test]
    fn what_everybody_needs() {
        let scopes = scopes();
        assert!(scopes.admit(Some(&claims(&["x", "mcp"]))) && scopes.admit(Some(&claims(&["all"]))));
        assert!(!scopes.admit(Some(&claims(&[]))) && !scopes.admit(Some(&claims(&["files:admin"]))));
        // A key that no scopes restrict.
        assert!(scopes.admit(Some(&Claims::default())) && scopes.admit(None));
    }

    #[test]
    fn all_scopes_are_named_when_one_is_missing_and_those_that_are_included_count() {
        let scopes = scopes();
        let missing =
            |tool, granted: &[&str]| scopes.missing_for(tool, &claims(granted)).map(|all| all.join(" "));
        assert_eq!(
            missing("fs_write_text", &["mcp", "files:read"]),
            Some("mcp files:write files:read".into())
        );
        for enough in [&["mcp", "files:write"][..], &["mcp", "files:admin"], &["all"]] {
            assert_eq!(missing("fs_write_text", enough), None, "{enough:?}");
        }
        assert_eq!(missing("other", &["mcp"]), None);
        assert_eq!(scopes.missing_for("fs_write_text", &Claims::default()), None);
    }
}
