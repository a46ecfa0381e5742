//! [`Budget`]: how far one question may go, with everything that is asked for its sake.
//!
//! Agents may ask agents. Whatever they ask is paid for out of what the first question has, so that a question costs no
//! more for being handed on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_protocol::Object;
use tidegate_server::{Cx, Principal};
use tidegate_service::CorrelationId;

use super::settings::Bounds;
use crate::error::{Code, Fault, Result};
use crate::models::Usage;

/// Where a call says which run it belongs to.
pub(crate) const RUN_META: &str = "dev.tidegate/agent-run";

/// How deep agents may ask agents.
pub(crate) const MAX_DEPTH: u64 = 3;
/// Where a call says how deep it is.
pub(crate) const DEPTH_META: &str = "dev.tidegate/agent-depth";

/// How deep in agents that ask agents a call is.
pub(crate) fn depth(cx: &Cx) -> u64 {
    cx.meta().map_or(0, depth_in)
}

/// The same, as the `_meta` of the call says it.
pub(crate) fn depth_in(meta: &Object) -> u64 {
    meta.json(DEPTH_META).and_then(|said| said.to::<u64>().ok()).unwrap_or_default()
}

/// The questions that are being worked on, by what their calls are known by.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<HashMap<String, Arc<Budget>>>>);

/// How far one question may go.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: usize,
    tokens: u64,
    /// Who asked the first question.
    whose: Principal,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    /// How often a model was asked.
    steps: usize,
    /// How often one must still be asked, for the answers of the agents that are at work.
    kept: usize,
    tokens: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while a lock is held; should it, the numbers are still numbers.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Budget {
    fn new(bounds: &Bounds, whose: &Principal) -> Budget {
        let (steps, tokens) = (bounds.steps.max(1), bounds.tokens);
        Budget { steps, tokens, whose: whose.clone(), spent: Mutex::default() }
    }

    /// Whether whoever calls is the one who asked. Where nobody is known, agents are in the tenant that was chosen.
    fn is_of(&self, caller: &Principal) -> bool {
        self.whose == *caller || self.whose == Principal::default() && caller.subject.is_none()
    }

    /// Notes what was used.
    fn used(&self, usage: Usage) {
        let mut spent = locked(&self.spent);
        spent.tokens = spent.tokens.saturating_add(usage.total());
    }

    /// How many tokens are left after these.
    fn room(&self, about: u64) -> Result<u64> {
        let used = locked(&self.spent).tokens;
        match self.tokens.saturating_sub(used).saturating_sub(about) {
            0 => Err(outside(format!(
                "The agent was stopped because it may use {} tokens: it has used {used} and would need more",
                self.tokens
            ))),
            left => Ok(left),
        }
    }
}

/// A place in a [`Budget`]: one agent at work, whose answer is paid for.
pub(crate) struct BudgetShare {
    budget: Arc<Budget>,
    /// What the calls of this question are known by.
    pub(crate) run: String,
    /// Whether what is kept for its answer is still there.
    kept: AtomicBool,
    /// Where the budget is forgotten, by whoever brought it.
    runs: Option<Runs>,
}

impl Runs {
    /// A place in the budget of the question that a call belongs to, or in one of its own. Nobody gets into somebody else's
    /// by knowing its name.
    pub(crate) fn share(&self, cx: &Cx, bounds: &Bounds) -> Result<BudgetShare> {
        let said = cx.meta().and_then(|meta| Some(meta.str(RUN_META)?.into_owned()));
        let known = said.and_then(|run| Some((locked(&self.0).get(&run)?.clone(), run)));
        match known.filter(|(budget, _)| budget.is_of(cx.principal())) {
            Some((budget, run)) => self.joined(budget, run),
            None => Ok(self.own(bounds, cx.principal())),
        }
    }

    fn joined(&self, budget: Arc<Budget>, run: String) -> Result<BudgetShare> {
        {
            let mut spent = locked(&budget.spent);
            if spent.steps + spent.kept >= budget.steps {
                return Err(outside(format!(
                    "The agent was not asked: a question may take {} steps with all agents that are asked for its \
                     sake, and they are used up",
                    budget.steps
                )));
            }
            spent.kept += 1;
        }
        Ok(BudgetShare { budget, run, kept: AtomicBool::new(true), runs: None })
    }

    fn own(&self, bounds: &Bounds, whose: &Principal) -> BudgetShare {
        let budget = Arc::new(Budget::new(bounds, whose));
        locked(&budget.spent).kept = 1;
        let run = CorrelationId::new().to_string();
        locked(&self.0).insert(run.clone(), budget.clone());
        BudgetShare { budget, run, kept: AtomicBool::new(true), runs: Some(self.clone()) }
    }
}

impl BudgetShare {
    /// Takes one step, and says whether the agent may go on after it. If not, the step is what was kept for its answer.
    pub(crate) fn step(&self) -> bool {
        let mut spent = locked(&self.budget.spent);
        let goes_on = spent.steps + spent.kept < self.budget.steps;
        if !goes_on && self.kept.swap(false, Ordering::Relaxed) {
            spent.kept -= 1;
        }
        spent.steps += 1;
        goes_on
    }

    /// Notes what was used.
    pub(crate) fn used(&self, usage: Usage) {
        self.budget.used(usage);
    }

    /// How many tokens are left after these.
    pub(crate) fn room(&self, about: u64) -> Result<u64> {
        self.budget.room(about)
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        if self.kept.swap(false, Ordering::Relaxed) {
            locked(&self.budget.spent).kept -= 1;
        }
        if let Some(runs) = &self.runs {
            locked(&runs.0).remove(&self.run);
        }
    }
}

fn outside(message: String) -> Fault {
    Fault::new(Code::Outside, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_for_the_answer() {
        let bounds = Bounds { steps: 3, ..Bounds::default() };
        let runs = Runs::default();
        let share = runs.own(&bounds, &Principal::default());
        let other = runs.joined(share.budget.clone(), share.run.clone()).unwrap();
        assert_eq!([share.step(), share.step()], [true, false], "the third is for the other's answer");
        assert!(runs.joined(share.budget.clone(), share.run.clone()).is_err());
        assert!(!other.step());
        assert_eq!(share.room(0), Ok(bounds.tokens));
        other.used(Usage { input_tokens: bounds.tokens, output_tokens: 0 });
        assert!(share.room(0).is_err());
        drop((share, other));
        assert!(locked(&runs.0).is_empty());
    }
}
