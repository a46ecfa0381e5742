//! How much callers may do.

use tidegate_service::fair_queue::Priority;

use super::{MOST, Resolver};
use crate::limit_settings::{
    Concurrency, LimitRule, LimitScopes, LimitSet, LimitSettings, Rate, RateUnit, RunSettings,
};
use crate::source_map::{self, item_name};
use crate::written::{self, Limit, Limits, Run, Switch};
use tidegate_policy::Patterns;

/// A rate beyond this is none.
const MOST_CALLS: u32 = 1_000_000;

impl Resolver<'_> {
    /// `is_authenticated`: whether callers have tenants and roles.
    pub(super) fn limits(&mut self, limits: Limits, is_authenticated: bool) -> LimitSettings {
        let tenant = match &limits.tenant {
            None | Some(Switch::On) => Some(LimitSettings::USUAL_TENANT),
            Some(Switch::Off) => None,
            Some(Switch::Set(limit)) => self.limit(&["limits", "tenant"], limit),
        };
        let scopes = LimitScopes {
            tenant,
            ..self.scopes_of(&["limits"], None, [limits.user, limits.tool, limits.server, limits.endpoint])
        };
        let mut rules = Vec::new();
        for (index, rule) in limits.rules.into_iter().enumerate() {
            rules.push(self.limit_rule(&item_name(index), rule, is_authenticated));
        }
        let run = limits.run.map(|run| self.run(run));
        if scopes.is_empty() && rules.is_empty() && run.is_none() {
            self.required(
                &["limits"],
                &["user", "tool", "server", "endpoint", "rules", "run"],
                "limits nothing: add a limit such as user = { rate = \"60/m\" }, or remove the section",
            );
        }
        LimitSettings { scopes, rules, run }
    }

    fn scopes_of(
        &mut self,
        around: source_map::Path<'_>,
        tenant: Option<Limit>,
        others: [Option<Limit>; 4],
    ) -> LimitScopes {
        let mut meant = |name: &str, limit: Option<Limit>| {
            limit.and_then(|limit| self.limit(&[around, &[name]].concat(), &limit))
        };
        let [user, tool, server, endpoint] = others;
        LimitScopes {
            tenant: meant("tenant", tenant),
            user: meant("user", user),
            tool: meant("tool", tool),
            server: meant("server", server),
            endpoint: meant("endpoint", endpoint),
        }
    }

    fn limit(&mut self, at: source_map::Path<'_>, limit: &Limit) -> Option<LimitSet> {
        let field = |name| [at, &[name]].concat();
        if limit.rate.is_none()
            && limit.concurrent.is_none()
            && limit.request.is_none()
            && limit.response.is_none()
        {
            self.required(
                at,
                &["rate", "concurrent", "request", "response"],
                "limits nothing: say rate, concurrent, request or response",
            );
            return None;
        }
        let rate = limit.rate.as_deref().and_then(|text| match rate(text) {
            Ok(rate) => Some(rate),
            Err(sentence) => {
                self.wrong(&field("rate"), sentence);
                None
            }
        });
        let concurrency = self.concurrency(at, limit);
        let mut size = |name, size: &Option<written::Size>| {
            size.as_ref().map(|size| self.size(&field(name), Some(size), usize::MAX))
        };
        let request = size("request", &limit.request);
        let response = size("response", &limit.response);
        Some(LimitSet { rate, concurrency, request, response })
    }

    fn concurrency(&mut self, at: source_map::Path<'_>, limit: &Limit) -> Option<Concurrency> {
        let field = |name| [at, &[name]].concat();
        let Some(running) = limit.concurrent else {
            for (name, is_said) in [("queue", limit.queue.is_some()), ("wait", limit.wait.is_some())] {
                if is_said {
                    self.wrong(
                        &field(name),
                        "is about calls that wait for others to end: say concurrent, how many may run at once",
                    );
                }
            }
            return None;
        };
        let usual = Concurrency::USUAL;
        let waiting = limit.queue.unwrap_or(usual.waiting);
        if !(1..=MOST).contains(&running) {
            self.wrong(
                &field("concurrent"),
                format!("must be from 1 to {MOST}. To forbid calls altogether, do not offer the tools"),
            );
        }
        if waiting > MOST {
            self.wrong(&field("queue"), format!("must be from 0 to {MOST}"));
        }
        let wait = self.time(&field("wait"), limit.wait.as_ref(), usual.wait);
        if wait.is_zero() && waiting > 0 {
            self.wrong(
                &field("wait"),
                "must be longer than 0; say queue = 0 to refuse calls instead of having them wait",
            );
        } else if limit.wait.is_some() && waiting == 0 {
            self.note(&field("wait"), "has no effect: nothing waits (queue = 0).");
        }
        Some(Concurrency { running, waiting, wait })
    }

    fn limit_rule(&mut self, item: &str, rule: written::LimitRule, is_authenticated: bool) -> LimitRule {
        let around = ["limits", "rules", item];
        let mut selected = |name: &str, texts: Option<Vec<String>>| -> Option<Patterns> {
            let at = [&around[..], &[name]].concat();
            let texts = texts?;
            if texts.is_empty() {
                self.wrong(&at, "must have at least one pattern; leave it out for all");
            }
            Some(self.patterns(&at, &texts))
        };
        let tools = selected("tools", rule.tools);
        let servers = selected("servers", rule.servers);
        let endpoints = selected("endpoints", rule.endpoints);
        let roles = selected("roles", rule.roles);
        let tenants = selected("tenants", rule.tenants);
        for (name, is_said) in [("roles", roles.is_some()), ("tenants", tenants.is_some())] {
            if is_said && !is_authenticated {
                self.note(
                    &[&around[..], &[name]].concat(),
                    "has no effect, and neither has its rule: without [auth] nobody has any.",
                );
            }
        }
        let scopes = self.scopes_of(&around, rule.tenant, [rule.user, rule.tool, rule.server, rule.endpoint]);
        if scopes.is_empty() && rule.priority.is_none() {
            self.required(
                &around,
                &["tenant", "user", "tool", "server", "endpoint", "priority"],
                "limits nothing: add a limit such as user = { rate = \"5/m\" }, or a priority",
            );
        }
        let priority = rule.priority.map(|priority| match priority {
            written::Priority::High => Priority::High,
            written::Priority::Normal => Priority::Normal,
            written::Priority::Low => Priority::Low,
        });
        LimitRule { tools, servers, endpoints, roles, tenants, scopes, priority }
    }

    fn run(&mut self, run: Run) -> RunSettings {
        let at = |name| ["limits", "run", name];
        let usual = RunSettings::default();
        let window = self.time(&at("window"), run.window.as_ref(), usual.window);
        if window.is_zero() {
            self.wrong(&at("window"), "must be longer than 0");
        }
        if run.calls == Some(0) {
            self.wrong(&at("calls"), "must be 1 or more; leave it out for no limit");
        }
        if run.repeats == Some(0) {
            self.wrong(&at("repeats"), "must be 1 or more; except = [\"*\"] switches it off");
        }
        let bytes = run.bytes.as_ref().map(|size| self.size(&at("bytes"), Some(size), usize::MAX) as u64);
        let time = run.time.as_ref().map(|time| self.time(&at("time"), Some(time), usual.window));
        if time.is_some_and(|time| time.is_zero()) {
            self.wrong(&at("time"), "must be longer than 0; leave it out for no limit");
        }
        RunSettings {
            window,
            calls: run.calls,
            repeats: run.repeats.or(usual.repeats),
            bytes,
            time,
            except: self.patterns(&at("except"), &run.except),
        }
    }
}

/// What a rate such as `100/m` means. The error is a sentence.
fn rate(text: &str) -> Result<Rate, String> {
    let wrong =
        || "must be a number of calls and a time, such as \"5/s\", \"100/m\", \"1000/h\" or \"5000/d\"";
    let (calls, per) = text.split_once('/').ok_or_else(wrong)?;
    let per = match per.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" => RateUnit::Second,
        "m" | "min" | "minute" => RateUnit::Minute,
        "h" | "hour" => RateUnit::Hour,
        "d" | "day" => RateUnit::Day,
        _ => return Err(wrong().to_owned()),
    };
    let calls = calls.trim();
    if calls.is_empty() || !calls.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong().to_owned());
    }
    match calls.parse() {
        Ok(0) => Err("must be at least 1. To forbid calls altogether, do not offer the tools".to_owned()),
        Ok(calls) if calls <= MOST_CALLS => Ok(Rate { calls, per }),
        _ => Err(format!("must be at most {MOST_CALLS}; leave it out for no limit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, meant) in [
            ("100/m", Some("100/m")),
            (" 5 / s ", Some("5/s")),
            ("1000/hour", Some("1000/h")),
            ("1/Day", Some("1/d")),
            ("7/min", Some("7/m")),
            ("0/m", None),
            ("-1/m", None),
            ("+1/m", None),
            ("1.5/m", None),
            ("100", None),
            ("/m", None),
            ("100/", None),
            ("100/w", None),
            ("100/m/m", None),
            ("1000001/s", None),
            ("99999999999999999999/s", None),
        ] {
            assert_eq!(rate(text).ok().map(|rate| rate.to_string()).as_deref(), meant, "{text}");
        }
    }
}
