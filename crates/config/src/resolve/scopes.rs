//! Which scopes are needed for what.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::Resolver;
use crate::auth_settings::ScopeSettings;
use crate::{names, source_map};

impl Resolver<'_> {
    pub(super) fn scopes(
        &mut self,
        required: &[String],
        tools: &IndexMap<String, Vec<String>>,
        includes: IndexMap<String, Vec<String>>,
    ) -> ScopeSettings {
        self.check_scopes(&["auth", "scopes"], required);
        let mut of_tools = Vec::new();
        for (scope, texts) in tools {
            let at = ["auth", "tool_scopes", scope];
            self.check_scopes(&at, [scope]);
            if texts.is_empty() {
                self.note(&at, "has no effect: it lists no tools.");
            }
            of_tools.push((scope.clone(), self.patterns(&at, texts)));
        }
        for (scope, included) in &includes {
            let at = ["auth", "scope_includes", scope];
            self.check_scopes(&at, [scope]);
            self.check_scopes(&at, included);
        }
        let includes: BTreeMap<String, Vec<String>> = includes.into_iter().collect();
        for scope in includes.keys().filter(|scope| includes_itself(scope, &includes)) {
            self.note(
                &["auth", "scope_includes", scope],
                "includes itself; whoever has one of these has them all.",
            );
        }
        ScopeSettings { required: required.to_vec(), tools: of_tools, includes }
    }

    fn check_scopes<'a>(&mut self, at: source_map::Path<'_>, scopes: impl IntoIterator<Item = &'a String>) {
        for sentence in scopes.into_iter().filter_map(|scope| names::check_scope(scope).err()) {
            self.wrong(at, sentence);
        }
    }
}

/// Whether a scope includes one that includes it.
fn includes_itself(scope: &str, includes: &BTreeMap<String, Vec<String>>) -> bool {
    let mut reached: Vec<&str> = vec![scope];
    let mut next = 0;
    while let Some(from) = reached.get(next) {
        for included in includes.get(*from).into_iter().flatten() {
            if included == scope {
                return true;
            }
            if !reached.contains(&included.as_str()) {
                reached.push(included);
            }
        }
        next += 1;
    }
    false
}
