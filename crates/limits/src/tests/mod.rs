//! What is limited, for whom, and what callers are told. One file for each theme.

mod floods;
mod places;
mod rates;
mod rules;
mod runs;
mod sizes;

use std::sync::Arc;
use std::time::Duration;

use tidegate_config::{Concurrency, LimitScopes, LimitSet, LimitSettings, Rate, RateUnit};
use tidegate_protocol::{Error, Json, Limits, Method, Params};
use tidegate_service::{Call, Context, Principal, Reply};

use crate::{CallLimits, Entering, LimitStore, Pass, Target};

/// `TENANT/SUBJECT`, or a subject alone.
fn principal(who: &str) -> Principal {
    match who.split_once('/') {
        Some((tenant, subject)) => {
            Principal::subject(subject).in_tenant(tenant).issued_by("https://id.example.com")
        }
        None => Principal::subject(who),
    }
}

fn params(text: &str) -> Params {
    Params::parse(&Json::trusted(text.to_owned()), &Limits::default()).unwrap()
}

/// A call of `github_search`.
fn call(who: &str) -> Call {
    let mut context = Context::local();
    context.principal = principal(who);
    Call::new(Method::ToolsCall, params(r#"{"name":"github_search"}"#), context)
}

/// A call with other parameters.
fn call_with(who: &str, text: &str) -> Call {
    Call { params: params(text), ..call(who) }
}

const SEARCH: Target<'_> = Target {
    server: Some("github"),
    tool: Some("github_search"),
    is_part: false,
    is_counted: false,
    is_unlisted: false,
};

fn rate(calls: u32, per: RateUnit) -> Option<LimitSet> {
    Some(LimitSet { rate: Some(Rate { calls, per }), ..LimitSet::default() })
}

fn concurrent(running: usize, waiting: usize) -> Option<LimitSet> {
    let wait = Duration::from_secs(10);
    Some(LimitSet { concurrency: Some(Concurrency { running, waiting, wait }), ..LimitSet::default() })
}

fn settings(scopes: LimitScopes) -> LimitSettings {
    LimitSettings { scopes, rules: Vec::new(), run: None }
}

/// Limits with a store of their own.
struct Rig {
    limits: CallLimits,
    store: Arc<LimitStore>,
}

impl Rig {
    fn new(settings: &LimitSettings) -> Rig {
        Rig { limits: CallLimits::new(settings), store: Arc::new(LimitStore::new()) }
    }

    fn of(scopes: LimitScopes) -> Rig {
        Rig::new(&settings(scopes))
    }

    fn enter(&self, call: &Call) -> Result<Entering, Error> {
        self.limits.enter(&self.store, call, SEARCH)
    }

    /// A call that goes in without waiting.
    #[track_caller]
    fn pass(&self, call: &Call) -> Pass {
        passed(self.enter(call).unwrap())
    }

    /// Makes a call and ends it.
    fn done(&self, call: &Call) -> Result<(), Error> {
        passed(self.enter(call)?).answered(&Reply::Complete(Json::empty_object()))
    }

    #[track_caller]
    fn refused(&self, call: &Call) -> Error {
        self.enter(call).unwrap_err()
    }
}

#[track_caller]
fn passed(entering: Entering) -> Pass {
    match entering {
        Entering::Passed(pass) => pass,
        Entering::Waiting(_) => panic!("it has to wait"),
    }
}

/// What is said, to people and to machines.
fn said(error: &Error) -> String {
    format!("{} {}", error.message(), error.data().map_or("", |data| data.as_str()))
}
