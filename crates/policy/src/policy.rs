//! [`Policy`]: rules, of which the first that matches decides.

use std::sync::{Arc, LazyLock};

use tidegate_protocol::Json;
use tidegate_service::{ContextParts, Decision};

use crate::callers::{Caller, CallerFacts, Callers, ViewRules};
use crate::condition::{Condition, Facts, Given};
use crate::contradictions;
use crate::object::{Object, ObjectKind};
use crate::problem::Problem;
use crate::rule::{Rule, RuleSpec};
use crate::rule_set::RuleSet;

/// Most rules of a policy.
pub const MAX_RULES: usize = 1000;

/// A policy as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySpec {
    /// What is decided where no rule matches; `None` is to deny if there are rules, and to allow if there are none.
    pub default: Option<DefaultEffect>,
    /// Where the default is written.
    pub default_line: Option<usize>,
    /// Whether decisions count.
    pub mode: PolicyMode,
    /// The rules, in their order.
    pub rules: Vec<RuleSpec>,
}

/// What is decided where no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultEffect {
    /// It may be done.
    Allow,
    /// It may not be done.
    Deny,
}

/// Whether decisions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyMode {
    /// What is refused is not done.
    #[default]
    Enforce,
    /// Everything is decided and recorded, and nothing is refused.
    Shadow,
}

/// Who may do what. It never changes: another configuration has another one.
#[derive(Debug)]
pub struct Policy {
    pub(crate) rules: Vec<Rule>,
    callers: Callers,
    /// Rules whose condition is about callers alone, so that it is part of who they are for.
    of_callers: Vec<usize>,
    /// Rules that compare callers with what they call.
    mixed: RuleSet,
    pub(crate) otherwise: Arc<Decision>,
    mode: PolicyMode,
    notes: Vec<(usize, String)>,
    spec: PolicySpec,
}

/// What is said to somebody whom nobody has authenticated, where everybody should be.
pub(crate) static UNKNOWN: LazyLock<Arc<Decision>> = LazyLock::new(|| {
    Arc::new(Decision { rule: "no claims".into(), line: None, is_allowed: false, is_enforced: true })
});

/// What the rules say, as far as that can be told.
enum Walk<'a> {
    Decided(&'a Arc<Decision>),
    /// It depends on the arguments.
    Open,
}

impl Policy {
    /// Compiles a policy, or says everything that is wrong with it.
    pub fn new(spec: &PolicySpec) -> Result<Policy, Vec<Problem>> {
        let mut problems = Vec::new();
        let is_enforced = spec.mode == PolicyMode::Enforce;
        if spec.rules.len() > MAX_RULES {
            let sentence = format!("there are more than {MAX_RULES} rules");
            return Err(vec![Problem { rule: None, field: None, sentence }]);
        }
        let compiled: Vec<_> = spec
            .rules
            .iter()
            .enumerate()
            .map(|(index, rule)| rule.compile(index, is_enforced, &mut problems))
            .collect();
        let mut notes = Vec::new();
        contradictions::find(&spec.rules, &compiled, &mut problems, &mut notes);
        let default = spec.default.unwrap_or(match spec.rules.is_empty() {
            true => DefaultEffect::Allow,
            false => DefaultEffect::Deny,
        });
        if spec.rules.is_empty() && default == DefaultEffect::Deny {
            let sentence = "lets nobody do anything: add [[policy.rules]] with what may be done".to_owned();
            problems.push(Problem { rule: None, field: None, sentence });
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let rules: Vec<Rule> = compiled.into_iter().flatten().collect();
        let mut mixed = RuleSet::none(rules.len());
        let mut of_callers = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let Some(uses) = rule.condition.as_ref().map(Condition::uses) else { continue };
            if uses.arguments {
                continue;
            }
            match (uses.caller(), uses.target()) {
                (true, true) => mixed.insert(index),
                (_, false) => of_callers.push(index),
                (false, true) => {}
            }
        }
        let otherwise = Decision {
            rule: "default".into(),
            line: spec.default_line,
            is_allowed: default == DefaultEffect::Allow,
            is_enforced,
        };
        Ok(Policy {
            callers: Callers::new(&spec.rules),
            rules,
            of_callers,
            mixed,
            otherwise: Arc::new(otherwise),
            mode: spec.mode,
            notes,
            spec: spec.clone(),
        })
    }

    /// What is worth knowing: the rule, counted from 0, and the rest of a sentence about it.
    pub fn notes(&self) -> &[(usize, String)] {
        &self.notes
    }

    /// Whether decisions count.
    pub fn mode(&self) -> PolicyMode {
        self.mode
    }

    /// Whether what no rule is about may be done.
    pub fn allows_by_default(&self) -> bool {
        self.otherwise.is_allowed
    }

    /// As it is written.
    pub fn spec(&self) -> &PolicySpec {
        &self.spec
    }

    /// Whether it refuses nothing to anybody, so that nobody needs to be asked.
    pub fn is_open(&self) -> bool {
        self.rules.is_empty() && self.otherwise.is_allowed
    }

    /// Who makes a call, as far as rules are concerned.
    pub fn caller<'a>(&self, context: &'a ContextParts) -> Caller<'a> {
        let mut caller = Caller { context, rules: self.callers.rules(context), is_unknown: false };
        // None of these asks what it is about.
        let nothing = Object { kind: ObjectKind::Page, name: "", server: "" };
        let given = Given::new(None);
        for &index in &self.of_callers {
            let facts = Facts { caller: context, object: &nothing, arguments: &given };
            if caller.rules.contains(index) && !self.rules[index].holds(&facts) {
                caller.rules.remove(index);
            }
        }
        caller
    }

    /// Somebody of whom nothing is known, where everybody should be known: everything is refused.
    pub fn unknown_caller<'a>(&self, context: &'a ContextParts) -> Caller<'a> {
        Caller { context, rules: self.callers.none(), is_unknown: true }
    }

    /// By what the view of a caller is found.
    pub fn view_rules(&self, caller: &Caller<'_>) -> ViewRules {
        let is_compared = caller.rules.meets(&self.mixed);
        ViewRules {
            rules: caller.rules.clone(),
            is_unknown: caller.is_unknown,
            caller: is_compared.then(|| Arc::new(CallerFacts::of(caller.context))),
        }
    }

    /// The rules that are about an object, whoever calls. Who asks for the same one often keeps it.
    pub fn about(&self, object: &Object<'_>) -> RuleSet {
        let mut about = self.callers.none();
        for (index, rule) in self.rules.iter().enumerate() {
            if rule.selection.matches(object, !rule.allows) {
                about.insert(index);
            }
        }
        about
    }

    /// Whether a caller may do something. Without arguments they count as empty.
    pub fn decide(
        &self,
        caller: &Caller<'_>,
        object: &Object<'_>,
        arguments: Option<&Json>,
    ) -> &Arc<Decision> {
        self.decide_among(caller, &self.about(object), object, arguments)
    }

    /// The same, where the rules are known that are [about](Policy::about) the object.
    pub fn decide_among(
        &self,
        caller: &Caller<'_>,
        about: &RuleSet,
        object: &Object<'_>,
        arguments: Option<&Json>,
    ) -> &Arc<Decision> {
        match self.walk(caller, about, object, Some(arguments)) {
            Walk::Decided(decision) => decision,
            // With arguments nothing stays open.
            Walk::Open => &self.otherwise,
        }
    }

    /// Whether a caller sees something: whether there are arguments with which it may be done. In shadow mode everything is seen.
    pub fn shows(&self, caller: &Caller<'_>, object: &Object<'_>) -> bool {
        self.shows_among(caller, &self.about(object), object)
    }

    /// The same, where the rules are known that are [about](Policy::about) the object.
    pub fn shows_among(&self, caller: &Caller<'_>, about: &RuleSet, object: &Object<'_>) -> bool {
        self.hides_among(caller, about, object).is_none_or(|decision| !decision.refuses())
    }

    /// Whether a caller may see something of a kind of a server, whatever it is called: where it is not known what there is.
    pub fn may_show_any(&self, caller: &Caller<'_>, kind: ObjectKind, server: &str) -> bool {
        if caller.is_unknown {
            return false;
        }
        let rules = self.rules.iter().enumerate().filter(|(index, _)| caller.rules.contains(*index));
        for (_, rule) in rules.filter(|(_, rule)| rule.selection.is_about(kind, server)) {
            match rule.allows {
                true => return true,
                false if rule.condition.is_none() && rule.selection.is_all_of(kind) => {
                    return !rule.decision.refuses();
                }
                false => {}
            }
        }
        !self.otherwise.refuses()
    }

    /// What hides something from a caller, whatever the arguments are; `None` if nothing does. It may be a decision that does not
    /// count.
    pub fn hides_among(
        &self,
        caller: &Caller<'_>,
        about: &RuleSet,
        object: &Object<'_>,
    ) -> Option<&Arc<Decision>> {
        match self.walk(caller, about, object, None) {
            Walk::Decided(decision) if !decision.is_allowed => Some(decision),
            Walk::Decided(_) | Walk::Open => None,
        }
    }

    /// The one walk through the rules. Without arguments, what depends on them stays open.
    fn walk(
        &self,
        caller: &Caller<'_>,
        about: &RuleSet,
        object: &Object<'_>,
        arguments: Option<Option<&Json>>,
    ) -> Walk<'_> {
        if caller.is_unknown {
            return Walk::Decided(&UNKNOWN);
        }
        let given = Given::new(arguments.flatten());
        for index in caller.rules.both(about) {
            let rule = &self.rules[index];
            let holds = match (&rule.condition, arguments) {
                (None, _) => true,
                (Some(condition), None) if condition.uses().arguments => match rule.allows {
                    true => return Walk::Open,
                    // It may be denied, or what comes behind it may allow it.
                    false => false,
                },
                (Some(_), _) => rule.holds(&Facts { caller: caller.context, object, arguments: &given }),
            };
            if holds {
                return Walk::Decided(&rule.decision);
            }
        }
        Walk::Decided(&self.otherwise)
    }
}

impl Rule {
    /// Whether the condition holds. One that cannot be evaluated lets nobody in: what allows does not match, what denies does.
    fn holds(&self, facts: &Facts<'_>) -> bool {
        match self.condition.as_ref().map(|condition| condition.holds(facts)) {
            None => true,
            Some(Ok(holds)) => holds,
            Some(Err(why)) => {
                note_without_value(&self.decision, &why);
                !self.allows
            }
        }
    }
}

/// For whoever wonders why a rule does not match.
fn note_without_value(decision: &Decision, why: &str) {
    tracing::debug!(rule = &*decision.rule, "the condition of a rule has no value: {why}");
}
