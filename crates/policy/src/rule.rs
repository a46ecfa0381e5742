//! [`Rule`]: what some callers may do, or may not.

use std::sync::Arc;

use tidegate_service::Decision;

use crate::condition::Condition;
use crate::patterns::Patterns;
use crate::problem::{Problem, RuleField};
use crate::selection::{Selection, tool_pattern};

/// A rule as it is written. A list that is `None` leaves everything open; every list that is there must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSpec {
    /// What decisions call it; without one, its line.
    pub name: Option<String>,
    /// Where it is written.
    pub line: Option<usize>,
    /// What may be done: patterns such as `github_get_*`, `prompt:*`, `resource:docs://*`, or `*` for everything.
    pub allow: Vec<String>,
    /// What may not be done.
    pub deny: Vec<String>,
    /// For callers with one of these roles.
    pub roles: Option<Vec<String>>,
    /// For callers of one of these tenants.
    pub tenants: Option<Vec<String>>,
    /// For these callers, by the subject of their tokens or the name of their key.
    pub subjects: Option<Vec<String>>,
    /// For callers whom one of these vouches for.
    pub issuers: Option<Vec<String>>,
    /// For callers with one of these OAuth clients.
    pub clients: Option<Vec<String>>,
    /// At these endpoints; `default` is the one without a name.
    pub endpoints: Option<Vec<String>>,
    /// Of these servers: patterns.
    pub servers: Option<Vec<String>>,
    /// Under this condition, in CEL.
    pub when: Option<String>,
}

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) selection: Selection,
    pub(crate) condition: Option<Condition>,
    pub(crate) allows: bool,
    /// What is said when it decides.
    pub(crate) decision: Arc<Decision>,
}

impl RuleSpec {
    /// How the rule is called in decisions: its name, its line, or else its place.
    pub fn label(&self, index: usize) -> String {
        match (&self.name, self.line) {
            (Some(name), _) => name.clone(),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => format!("rule {}", index + 1),
        }
    }

    /// The patterns for names of tools, apart from the one that is for everything.
    pub fn tool_patterns(&self) -> impl Iterator<Item = &str> {
        self.allow.iter().chain(&self.deny).filter_map(|text| tool_pattern(text))
    }

    /// The lists that say for whom the rule is.
    pub(crate) fn audience(&self) -> [(RuleField, Option<&Vec<String>>); 6] {
        [
            (RuleField::Roles, self.roles.as_ref()),
            (RuleField::Tenants, self.tenants.as_ref()),
            (RuleField::Subjects, self.subjects.as_ref()),
            (RuleField::Issuers, self.issuers.as_ref()),
            (RuleField::Clients, self.clients.as_ref()),
            (RuleField::Endpoints, self.endpoints.as_ref()),
        ]
    }

    /// Compiles it. `is_enforced` says whether decisions count.
    pub(crate) fn compile(
        &self,
        index: usize,
        is_enforced: bool,
        problems: &mut Vec<Problem>,
    ) -> Option<Rule> {
        let before = problems.len();
        let mut wrong = |field, sentence: String| problems.push(Problem::with(index, field, sentence));
        if self.name.as_ref().is_some_and(|name| name.trim().is_empty() || name.chars().any(char::is_control))
        {
            wrong(RuleField::Name, "must be a text of one line".to_owned());
        }
        if self.name.as_deref().is_some_and(|name| matches!(name, "default" | "no claims")) {
            wrong(
                RuleField::Name,
                "has a meaning already: it is what decisions say where no rule matches".to_owned(),
            );
        }
        if self.name.as_ref().is_some_and(|name| name.chars().count() > LONGEST_NAME) {
            wrong(RuleField::Name, format!("must have at most {LONGEST_NAME} characters"));
        }
        for (field, list) in self.audience() {
            let Some(list) = list else { continue };
            if list.is_empty() {
                wrong(
                    field,
                    "is an empty list, so the rule is for nobody: leave it out for everybody".to_owned(),
                );
            }
            if list.iter().any(|one| one.trim().is_empty()) {
                wrong(field, "has an empty text".to_owned());
            }
            if let Some(one) = list.iter().find(|one| one.contains('*')) {
                wrong(field, format!("has {one:?}, and these are compared as they are: list each one"));
            }
        }
        let servers = match &self.servers {
            None => None,
            Some(texts) if texts.is_empty() => {
                wrong(
                    RuleField::Servers,
                    "is an empty list, so the rule is about nothing: leave it out for all".to_owned(),
                );
                None
            }
            Some(texts) => match Patterns::new(texts.iter().map(String::as_str)) {
                Ok(patterns) => Some(patterns),
                Err(error) => {
                    wrong(RuleField::Servers, format!("has a bad pattern: {error}"));
                    None
                }
            },
        };
        let (allows, texts) = match (self.allow.is_empty(), self.deny.is_empty()) {
            (false, true) => (true, &self.allow),
            (true, false) => (false, &self.deny),
            (true, true) => {
                let what = "neither allows nor denies anything: add allow = [\"…\"] or deny = [\"…\"]";
                problems.push(Problem::of(index, what));
                return None;
            }
            (false, false) => {
                let what =
                    "both allows and denies: make two rules of it, of which the first that matches decides";
                problems.push(Problem::of(index, what));
                return None;
            }
        };
        let field = if allows { RuleField::Allow } else { RuleField::Deny };
        let selection = match Selection::new(texts, servers) {
            Ok(selection) => Some(selection),
            Err(sentence) => {
                wrong(field, sentence);
                None
            }
        };
        let condition = match (&self.when, &selection) {
            (Some(text), Some(selection)) => {
                let kinds: Vec<_> = selection.kinds().collect();
                match Condition::compile(text, &kinds) {
                    Ok(condition) => Some(condition),
                    Err(sentence) => {
                        wrong(RuleField::When, sentence);
                        None
                    }
                }
            }
            _ => None,
        };
        let decision = Arc::new(Decision {
            rule: self.label(index).into(),
            line: self.line,
            is_allowed: allows,
            is_enforced,
        });
        (problems.len() == before).then_some(Rule { selection: selection?, condition, allows, decision })
    }
}

/// The longest name of a rule: it is in every record of a call that it decides.
const LONGEST_NAME: usize = 100;
