//! Who may do what behind a gateway: rules, and what they decide.
//!
//! A [`Policy`] is made once, when a configuration is loaded, from [`RuleSpec`]s. Whatever is wrong with them is found then:
//! conditions are compiled, their fields and functions looked up, and rules that contradict each other refused. Afterwards there
//! is one question, asked in two ways: [`Policy::decide`] for a call with its arguments, and [`Policy::shows`] for a list, where
//! there are none. Both come from the same walk through the rules, so that a list and a call never disagree.
//!
//! The first rule that matches decides. What depends on the caller alone is found by [`Policy::caller`], as a set of rules;
//! callers with the same set see the same.
//!
//! ```
//! use tidegate_policy::{Object, ObjectKind, Policy, PolicySpec, RuleSpec};
//! use tidegate_protocol::Json;
//! use tidegate_service::Context;
//!
//! let rule = RuleSpec {
//!     name: Some("only our own code".into()),
//!     allow: vec!["github_get_*".into()],
//!     when: Some(r#"args.owner == "acme""#.into()),
//!     ..RuleSpec::default()
//! };
//! let policy = Policy::new(&PolicySpec { rules: vec![rule], ..PolicySpec::default() }).unwrap();
//!
//! let context = Context::local();
//! let caller = policy.caller(&context);
//! let tool = Object { kind: ObjectKind::Tool, name: "github_get_file", server: "github" };
//! assert!(policy.shows(&caller, &tool));
//! let ours = Json::trusted(r#"{"owner":"acme"}"#);
//! assert!(policy.decide(&caller, &tool, Some(&ours)).is_allowed);
//! let theirs = Json::trusted(r#"{"owner":"other"}"#);
//! assert!(!policy.decide(&caller, &tool, Some(&theirs)).is_allowed);
//! ```

mod address;
mod callers;
mod condition;
mod contradictions;
mod explain;
mod object;
mod patterns;
mod policy;
mod problem;
mod rule;
mod rule_set;
mod selection;

pub use callers::{Caller, ViewRules};
pub use condition::{MAX_CONDITION_BYTES, MAX_STEPS};
pub use explain::{Explanation, Step};
pub use object::{Object, ObjectKind};
pub use patterns::{PatternError, Patterns};
pub use policy::{DefaultEffect, MAX_RULES, Policy, PolicyMode, PolicySpec};
pub use problem::{Problem, RuleField};
pub use rule::RuleSpec;
pub use rule_set::RuleSet;
