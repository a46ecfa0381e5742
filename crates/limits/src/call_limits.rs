//! [`CallLimits`]: what the configuration says about how much callers may do, asked once for each call.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_config::{LimitRule, LimitSettings, Rate, RunSettings};
use tidegate_protocol::{Error, Method};
use tidegate_service::fair_queue::{Entry, Priority};
use tidegate_service::{Call, Held};
use tokio::time::Instant;

use crate::counters::Taken;
use crate::gates::Slot;
use crate::group::{Group, Limit, Limits};
use crate::keyed::CounterKey;
use crate::pass::{Entering, Pass, Queued, ResponseLimit, RunPart};
use crate::refusal::{Reached, over_budget};
use crate::runs::RunKey;
use crate::scope::{Scope, Subjects};
use crate::status::LimitLeft;
use crate::store::LimitStore;

/// What a call is for. The names are those of what it was routed to, never what a caller made up: each of them may be counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target<'a> {
    /// The server that it goes to, if it goes to one.
    pub server: Option<&'a str>,
    /// The tool by its exposed name, if it calls one.
    pub tool: Option<&'a str>,
    /// Whether it is part of another call, as those of an agent are. One that has the [`Held`] of another is, whatever this says.
    pub is_part: bool,
    /// Whether its caller was counted for it before, because another server was asked first: it counts only for its server and tool.
    pub is_counted: bool,
    /// Whether nobody lists the tool. Anybody can make up such names, so that they are counted as one tool of their server.
    pub is_unlisted: bool,
}

/// How much callers may do. It does not change; what was counted is in a [`LimitStore`].
#[derive(Debug)]
pub struct CallLimits {
    /// Rules first, then all calls: narrow before wide.
    groups: Vec<Group>,
    limits: Limits,
    run: Option<RunSettings>,
}

/// Which of the groups a call is in. There are seldom more.
struct Selected(SmallVec<[bool; 16]>);

impl Selected {
    fn has<T>(&self, limit: &&Limit<T>) -> bool {
        self.0[limit.group]
    }
}

impl CallLimits {
    /// What the configuration says.
    pub fn new(settings: &LimitSettings) -> CallLimits {
        let nth = |at: usize, rule: &LimitRule| {
            let same = |other: &&LimitRule| {
                let (mut other, mut rule) = ((*other).clone(), rule.clone());
                (other.priority, rule.priority) = (None, None);
                other == rule
            };
            settings.rules[..at].iter().filter(same).count()
        };
        let (mut groups, mut limits) = (Vec::new(), Limits::default());
        for (at, rule) in settings.rules.iter().enumerate() {
            let group = Group::of_rule(rule);
            limits.add(&rule.scopes, at, group.is_rule(), &group.identity(nth(at, rule)));
            groups.push(group);
        }
        limits.add(&settings.scopes, groups.len(), false, &Group::ALL.identity(0));
        groups.push(Group::ALL);
        CallLimits { groups, limits, run: settings.run.clone() }
    }

    /// How much is left to whoever has used most, for each kind of subject that has a limit. It looks at everything that is counted, so it
    /// is for whoever asks now and then.
    pub fn left(&self, store: &LimitStore) -> Vec<LimitLeft> {
        let (emptiest, fullest) = (store.counters.emptiest(), store.gates.fullest());
        fn least<T>(limits: &[Limit<T>], scope: Scope, left: &HashMap<u64, f64>) -> Option<f64> {
            let of_scope = limits.iter().filter(|limit| limit.scope == scope);
            // What nobody has used is all left.
            of_scope.map(|limit| left.get(&limit.number).copied().unwrap_or(1.0)).reduce(f64::min)
        }
        let of_scope = |scope| LimitLeft {
            scope,
            rate: least(&self.limits.rates, scope, &emptiest),
            places: least(&self.limits.places, scope, &fullest),
        };
        let all = Scope::ALL.into_iter().map(of_scope);
        all.filter(|left| left.rate.is_some() || left.places.is_some()).collect()
    }

    /// Lets a call in, has it wait for its turn, or refuses it. To be asked once for each call, after it is known that it is
    /// allowed and where it goes.
    ///
    /// Sizes come first, then the budget of the run, then rates, then places: rules before what is for all, users before tenants,
    /// endpoints, tools and servers. Whoever is refused in between has used up what came before, except for the budget of its run.
    pub fn enter(&self, store: &Arc<LimitStore>, call: &Call, target: Target<'_>) -> Result<Entering, Error> {
        if !counts(&call.method) {
            return Ok(Entering::Passed(Pass::free()));
        }
        let outer = call.context.extensions.get::<Held>();
        let target = Target { is_part: target.is_part || outer.is_some(), ..target };
        let selected = Selected(self.groups.iter().map(|group| group.selects(call, target)).collect());
        let mut pass = Pass { has_tenant: call.context.principal.tenant.is_some(), ..Pass::free() };
        if let Some(outer) = &outer {
            pass.held.extend_from_slice(&outer.0);
        }
        self.check_sizes(&selected, call, target, &mut pass)?;
        pass.run = self.book(store, call, target)?;
        let mut subjects = Subjects::of(call, target, &store.keys);
        self.take_rates(store, &selected, &mut subjects, &pass)?;
        self.take_places(store, &selected, subjects, outer.as_deref(), pass)
    }

    /// Who is let in first where calls wait, for a call of which it is not known yet where it goes: rules that name servers do not
    /// count.
    pub fn priority(&self, call: &Call) -> Priority {
        let tool = match call.method {
            Method::ToolsCall => call.params.str("name"),
            _ => None,
        };
        self.priority_of(call, Target { tool: tool.as_deref(), ..Target::default() })
    }

    fn priority_of(&self, call: &Call, target: Target<'_>) -> Priority {
        let says = |group: &&Group| group.priority.is_some() && group.selects(call, target);
        self.groups.iter().find(says).and_then(|group| group.priority).unwrap_or_default()
    }

    fn check_sizes(
        &self,
        selected: &Selected,
        call: &Call,
        target: Target<'_>,
        pass: &mut Pass,
    ) -> Result<(), Error> {
        let size = call.params.as_str().len();
        for limit in self.limits.sizes.iter().filter(|limit| selected.has(limit)) {
            if let Some(most) = limit.quota.request.filter(|most| size > *most) {
                let name = limit.scope.name(call, target);
                return Err(reached(limit, &name, pass).request(size, most));
            }
            if let Some(most) = limit.quota.response
                && pass.response.as_ref().is_none_or(|other| most < other.most)
            {
                let (scope, is_rule) = (limit.scope, limit.is_rule);
                pass.response = Some(ResponseLimit { most, scope, is_rule });
            }
        }
        Ok(())
    }

    /// Books the call for its run.
    fn book(
        &self,
        store: &Arc<LimitStore>,
        call: &Call,
        target: Target<'_>,
    ) -> Result<Option<Box<RunPart>>, Error> {
        let Some(settings) = self.run.as_ref().filter(|_| is_of_run(call, target) && !target.is_counted)
        else {
            return Ok(None);
        };
        let key = RunKey::of(call, &store.keys);
        let digest = target.tool.filter(|tool| {
            let goes_on = call.params.has("requestState") || call.params.has("inputResponses");
            settings.repeats.is_some() && !goes_on && !settings.except.matches(tool)
        });
        let digest = digest.map(|tool| digest_of(store, tool, call));
        match store.runs.book(settings, key, digest, call.params.as_str().len() as u64) {
            Ok(booking) => Ok(Some(Box::new(RunPart {
                store: store.clone(),
                booking,
                began: None,
                counts_time: !target.is_part,
                result_bytes: 0,
            }))),
            Err(why) => Err(over_budget(settings, why, target.tool)),
        }
    }

    /// Takes one of each rate, in one go: counters that are elsewhere are asked once for each call.
    fn take_rates(
        &self,
        store: &LimitStore,
        selected: &Selected,
        subjects: &mut Subjects<'_>,
        pass: &Pass,
    ) -> Result<(), Error> {
        let Subjects { call, target, .. } = *subjects;
        let mut asked: SmallVec<[&Limit<Rate>; 4]> = SmallVec::new();
        let mut wanted: SmallVec<[(CounterKey, Rate); 4]> = SmallVec::new();
        for limit in self.limits.rates.iter().filter(|limit| selected.has(limit)) {
            if target.is_counted && limit.scope.is_of_outer_call() {
                continue;
            }
            if let Some(key) = subjects.key(limit) {
                wanted.push((key, limit.quota));
                asked.push(limit);
            }
        }
        match store.counters.take(&wanted) {
            Taken::All => Ok(()),
            Taken::AllBefore(at, after) => {
                let limit = asked[at];
                let name = limit.scope.name(call, target);
                Err(reached(limit, &name, pass).rate(limit.quota, after))
            }
        }
    }

    fn take_places(
        &self,
        store: &Arc<LimitStore>,
        selected: &Selected,
        mut subjects: Subjects<'_>,
        outer: Option<&Held>,
        mut pass: Pass,
    ) -> Result<Entering, Error> {
        let Subjects { call, target, .. } = subjects;
        let places = self.limits.places.iter().filter(|limit| selected.has(limit));
        let mut slots = places.filter_map(|limit| {
            // The call that this one is part of has a place, and waits for this one: waiting for a second could last forever.
            if target.is_part && limit.scope.is_of_outer_call() {
                return None;
            }
            let key = subjects.key(limit)?;
            if outer.is_some_and(|outer| outer.has(key.subject)) {
                return None;
            }
            let name = limit.scope.name(call, target);
            Some(Slot { key, scope: limit.scope, limit: limit.quota, is_rule: limit.is_rule, name })
        });
        let deadline = call.context.deadline.map(Instant::from_std);
        let principal = &call.context.principal;
        while let Some(slot) = slots.next() {
            let mut priority = Priority::default();
            let turn = || {
                priority = self.priority_of(call, target);
                (slot.scope.fair_key(principal), priority)
            };
            match store.gates.enter(&slot, turn, deadline) {
                Entry::Entered(place) => pass.hold(&slot, place),
                Entry::Full => return Err(pass.reached(&slot).full(slot.limit)),
                Entry::Waits(waiting) => {
                    let rest = slots.map(|slot| (slot.scope.fair_key(principal), slot));
                    return Ok(Entering::Waiting(Box::new(Queued {
                        waiting,
                        rest: rest.map(|(fair, slot)| (slot.into_owned(), fair)).collect(),
                        slot: slot.into_owned(),
                        pass,
                        store: store.clone(),
                        priority,
                        deadline,
                    })));
                }
            }
        }
        drop(slots);
        pass.begin();
        Ok(Entering::Passed(pass))
    }
}

/// Whether a call is counted at all. What keeps a connection alive, answers a question or ends something always gets through.
fn counts(method: &Method) -> bool {
    !method.is_notification()
        && !matches!(
            method,
            Method::Initialize | Method::Ping | Method::Discover | Method::TasksUpdate | Method::TasksCancel
        )
}

/// Whether a call is one that an agent makes to get on: it goes somewhere, and is not only asking how something is going.
fn is_of_run(call: &Call, target: Target<'_>) -> bool {
    let goes_somewhere = target.server.is_some() || target.tool.is_some();
    goes_somewhere && !matches!(call.method, Method::TasksGet | Method::TasksResult | Method::Listen)
}

fn reached<'a, T>(limit: &Limit<T>, name: &'a str, pass: &Pass) -> Reached<'a> {
    Reached { scope: limit.scope, name, has_tenant: pass.has_tenant, is_rule: limit.is_rule }
}

/// What tells a call from others: the tool and the values of its arguments, however they are spelled.
fn digest_of(store: &LimitStore, tool: &str, call: &Call) -> u64 {
    let arguments = call.params.json("arguments").map(|arguments| arguments.canonical());
    // Without arguments is as good as with none.
    let arguments = arguments.as_ref().map_or("{}", |arguments| arguments.as_str());
    store.keys.hash([Some(tool), Some(arguments)])
}
