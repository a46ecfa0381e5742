//! [`GatewayPlan`]: which rows about gateways a run measures.

use super::Gateway;
use super::case::{GatewayCase, Setting};
use super::peers::Peer;
use crate::binaries::Program;

/// The gateways to compare, case by case.
type Cases = Vec<(GatewayCase, Vec<Gateway>)>;

/// What to measure.
#[derive(Default)]
pub(crate) struct GatewayPlan {
    pub(crate) settings: Vec<(Setting, Cases)>,
    pub(crate) lists: Vec<Gateway>,
    pub(crate) idle: Vec<Gateway>,
    pub(crate) start_up: Vec<Gateway>,
    /// Whether ours is weighed after many people have called it.
    pub(crate) principals: bool,
    /// Whether a quiet tenant calls ours beside one that floods it.
    pub(crate) fairness: bool,
}

impl GatewayPlan {
    /// `named` picks rows: "ours gateway http modern x16 32B", "ours gateway list", "… idle", "… start-up", "… principals"
    /// and "… fairness".
    pub(crate) fn of(quick: bool, named: impl Fn(String) -> bool) -> Self {
        let mut plan = Self::default();
        for setting in Setting::ALL {
            let subjects = |case: GatewayCase| {
                let takes = |gateway: &Gateway| gateway.takes(case) && named(gateway.row_name(case));
                Gateway::ALL.into_iter().filter(takes).collect::<Vec<_>>()
            };
            let cases = setting.cases(quick).into_iter().map(|case| (case, subjects(case)));
            let cases: Vec<_> = cases.filter(|(_, subjects)| !subjects.is_empty()).collect();
            if !cases.is_empty() {
                plan.settings.push((setting, cases));
            }
        }
        let pick = |can: fn(Gateway) -> bool, what: &str| {
            let wanted = |gateway: &Gateway| can(*gateway) && named(format!("{gateway} gateway {what}"));
            Gateway::ALL.into_iter().filter(wanted).collect()
        };
        plan.lists = pick(Gateway::lists_many, "list");
        plan.idle = pick(Gateway::mounts_many, "idle");
        plan.start_up = pick(|gateway| gateway != Gateway::Direct && gateway.extra().is_none(), "start-up");
        plan.principals = named("ours gateway principals".to_owned());
        plan.fairness = named("ours gateway fairness".to_owned());
        plan
    }

    /// How many rows of the table of gateways there will be.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> usize {
        let cases = self.settings.iter().flat_map(|(_, cases)| cases);
        cases.map(|(_, gateways)| gateways.len()).sum()
    }

    /// What has to be built.
    pub(crate) fn programs(&self) -> Vec<Program> {
        let mut programs: Vec<_> = self.all().filter_map(Gateway::program).collect();
        if self.principals || self.fairness {
            programs.push(Program::OUR_GATEWAY);
        }
        let is_any = self.principals || self.all().next().is_some();
        if is_any { [vec![Program::FLOOR], programs].concat() } else { programs }
    }

    /// What has to be installed.
    pub(crate) fn peers(&self) -> impl Iterator<Item = Peer> {
        self.all().filter_map(Gateway::peer)
    }

    fn all(&self) -> impl Iterator<Item = Gateway> {
        let cases = self.settings.iter().flat_map(|(_, cases)| cases).flat_map(|(_, gateways)| gateways);
        cases.chain(&self.lists).chain(&self.idle).chain(&self.start_up).copied()
    }
}
