//! Who may do what.

use std::sync::Arc;

use tidegate_policy::{DefaultEffect, Patterns, Policy, PolicyMode, PolicySpec, RuleSpec};
use tidegate_service::nearest_name;

use super::Resolver;
use crate::auth_settings::AuthSettings;
use crate::endpoint_settings::EndpointSettings;
use crate::source_map::item_name;
use crate::written;

/// What the endpoint is called that has no name.
const DEFAULT_ENDPOINT: &str = "default";

impl Resolver<'_> {
    /// `servers` are the names of all servers of the file.
    pub(super) fn policy(
        &mut self,
        written: written::Policy,
        auth: Option<&AuthSettings>,
        endpoints: &[EndpointSettings],
        servers: &[String],
    ) -> Option<Arc<Policy>> {
        let default = written.default.map(|default| match default {
            written::DefaultEffect::Allow => DefaultEffect::Allow,
            written::DefaultEffect::Deny => DefaultEffect::Deny,
        });
        let mode = match written.mode {
            None | Some(written::PolicyMode::Enforce) => PolicyMode::Enforce,
            Some(written::PolicyMode::Shadow) => PolicyMode::Shadow,
        };
        let rules: Vec<RuleSpec> =
            written.rules.into_iter().enumerate().map(|(at, rule)| self.rule(at, rule)).collect();
        for (at, rule) in rules.iter().enumerate() {
            self.check_rule(at, rule, auth, endpoints, servers);
        }
        let default_line = self.source_map.line(&["policy", "default"]);
        let spec = PolicySpec { default, default_line, mode, rules };
        match Policy::new(&spec) {
            Ok(policy) => {
                for (rule, sentence) in policy.notes() {
                    self.rule_note(*rule, &spec.rules[*rule], sentence);
                }
                if mode == PolicyMode::Shadow {
                    self.note(
                        &["policy", "mode"],
                        "is \"shadow\": decisions are recorded, and nothing is refused.",
                    );
                }
                Some(Arc::new(policy))
            }
            Err(problems) => {
                for problem in problems {
                    let item = problem.rule.map(item_name);
                    let mut at = vec!["policy"];
                    if let Some(item) = &item {
                        at.extend(["rules", item]);
                    }
                    at.extend(problem.field.map(|field| field.as_str()));
                    self.wrong(&at, problem.sentence);
                }
                None
            }
        }
    }

    fn rule(&mut self, at: usize, rule: written::Rule) -> RuleSpec {
        let line = self.source_map.line(&["policy", "rules", &item_name(at)]);
        let written::Rule {
            name,
            allow,
            deny,
            roles,
            tenants,
            subjects,
            issuers,
            clients,
            endpoints,
            servers,
            when,
        } = rule;
        RuleSpec {
            name,
            line,
            allow,
            deny,
            roles,
            tenants,
            subjects,
            issuers,
            clients,
            endpoints,
            servers,
            when,
        }
    }

    /// What is not wrong by itself, but with the rest of the file.
    fn check_rule(
        &mut self,
        at: usize,
        rule: &RuleSpec,
        auth: Option<&AuthSettings>,
        endpoints: &[EndpointSettings],
        servers: &[String],
    ) {
        let item = item_name(at);
        let known: Vec<&str> =
            endpoints.iter().map(|endpoint| endpoint.name.as_str()).chain([DEFAULT_ENDPOINT]).collect();
        for name in rule.endpoints.iter().flatten().filter(|name| !known.contains(&name.as_str())) {
            let hint = nearest_name(name, known.iter().copied());
            let hint = hint.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
            let sentence = format!("has {name:?}, and there is no such endpoint{hint}");
            self.wrong(&["policy", "rules", &item, "endpoints"], sentence);
        }
        for text in rule.servers.iter().flatten() {
            let matches = |pattern: &Patterns| servers.iter().any(|server| pattern.matches(server));
            if Patterns::new([text.as_str()]).is_ok_and(|pattern| !matches(&pattern)) {
                self.rule_note(at, rule, &format!("has {text:?} in servers, which matches no server."));
            }
        }
        let lists = [
            ("roles", &rule.roles),
            ("tenants", &rule.tenants),
            ("subjects", &rule.subjects),
            ("issuers", &rule.issuers),
            ("clients", &rule.clients),
        ];
        match auth {
            None => {
                if let Some((field, _)) = lists.iter().find(|(_, list)| list.is_some()) {
                    let sentence = format!(
                        "never matches: it wants {field}, and without [auth] nobody is authenticated."
                    );
                    self.rule_note(at, rule, &sentence);
                }
            }
            // The same subject of two issuers are two people.
            Some(auth) => {
                let issuers = auth.jwt.len() + auth.introspection.len() + usize::from(auth.keys.is_some());
                if rule.subjects.is_some() && rule.issuers.is_none() && issuers > 1 {
                    let sentence = "names subjects without issuers: it is for everybody of that name, whoever vouches for them.";
                    self.rule_note(at, rule, sentence);
                }
            }
        }
    }

    fn rule_note(&mut self, at: usize, rule: &RuleSpec, sentence: &str) {
        let rule = match (&rule.name, rule.line) {
            (Some(name), _) => format!("the rule {name:?}"),
            (None, Some(line)) => format!("the rule at line {line}"),
            (None, None) => format!("rule {}", at + 1),
        };
        self.notes.push(format!("policy.rules: {rule} {sentence}"));
    }
}
