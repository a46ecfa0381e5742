//! What makes a server of a configuration fail, or a line of it do nothing, although every field is well-formed.

use std::collections::BTreeSet;

use tidegate_client::Target;
use tidegate_config::{Patterns, ServerSettings, Settings, Source, ToolMode};

use super::States;
use crate::commands::near;

/// What surely makes a server fail: its program is not there.
pub(super) fn programs(settings: &Settings) -> Vec<(String, String)> {
    let missing = |server: &ServerSettings| match &server.source {
        Source::Target(Target::Command(command)) => {
            let error = command.locate().err()?;
            Some((server.name.clone(), format!("servers.{}.command: {error}", server.name)))
        }
        _ => None,
    };
    settings.servers.iter().filter_map(missing).collect()
}

/// What matches no tool of the servers that were inspected.
pub(super) fn unmatched(settings: &Settings, states: &States) -> Vec<String> {
    let mut warnings = Vec::new();
    // The name of each tool, and of its server.
    let mut exposed: Option<Vec<(String, &str)>> = Some(Vec::new());
    for (server, state) in settings.servers.iter().zip(states) {
        let Ok(inspected) = state else {
            // What a server that is down would have is not known.
            exposed = None;
            continue;
        };
        let tools: Vec<&str> = inspected.tools.iter().map(|tool| tool.name()).collect();
        let at = format!("servers.{}", server.name);
        for (field, patterns) in [("allow", &server.allow), ("deny", &server.deny)] {
            warnings.extend(idle_patterns(&format!("{at}.{field}"), patterns, &tools));
        }
        let changed: BTreeSet<&String> =
            server.tools.keys().chain(server.options.tool_timeouts.keys()).collect();
        for tool in changed.into_iter().filter(|tool| !tools.contains(&tool.as_str())) {
            warnings.push(format!("{at}.tools: the server has no tool {tool:?}{}", meant(tool, &tools)));
        }
        if let Some(exposed) = &mut exposed {
            let offered = tools.iter().filter(|tool| server.offers(tool));
            exposed.extend(offered.map(|tool| (exposed_name(server, tool), server.name.as_str())));
        }
    }
    let Some(exposed) = exposed else { return warnings };
    let all: Vec<&str> = exposed.iter().map(|(tool, _)| tool.as_str()).collect();
    let searches = settings.endpoints.iter().any(|endpoint| endpoint.mode == Some(ToolMode::Search));
    if settings.tools.mode == ToolMode::Search || searches {
        warnings.extend(idle_patterns("tools.favourites", &settings.tools.favourites, &all));
    }
    for (scope, patterns) in settings.auth.iter().flat_map(|auth| &auth.scopes.tools) {
        let field = format!("auth.tool_scopes.{scope:?}");
        let idle = idle_patterns(&field, patterns, &all);
        if !idle.is_empty() {
            warnings.extend(idle);
            warnings.push(format!(
                "{field}: tools that such a pattern was meant for can be called without the scope"
            ));
        }
    }
    let rules = settings.policy.iter().flat_map(|policy| policy.spec().rules.iter().enumerate());
    for (at, rule) in rules {
        let Ok(patterns) = Patterns::new(rule.tool_patterns()) else { continue };
        let label = rule.label(at);
        warnings.extend(idle_patterns(&format!("policy.rules ({label})"), &patterns, &all));
    }
    for endpoint in &settings.endpoints {
        let Some(patterns) = &endpoint.tools else { continue };
        let is_there = |server: &str| endpoint.servers.as_ref().is_none_or(|servers| servers.matches(server));
        let tools: Vec<&str> =
            exposed.iter().filter(|(_, server)| is_there(server)).map(|(tool, _)| tool.as_str()).collect();
        warnings.extend(idle_patterns(&format!("endpoints.{}.tools", endpoint.name), patterns, &tools));
    }
    warnings
}

/// The name under which the gateway offers a tool, but for those that are too long or taken.
fn exposed_name(server: &ServerSettings, tool: &str) -> String {
    let renamed = server.tools.get(tool).and_then(|change| change.name.clone());
    let name = renamed.unwrap_or_else(|| format!("{}{tool}", server.prefix));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// The patterns that match nothing, each as a sentence.
fn idle_patterns(field: &str, patterns: &Patterns, tools: &[&str]) -> Vec<String> {
    let idle = |pattern: &&String| {
        Patterns::new([pattern.as_str()]).is_ok_and(|one| !tools.iter().any(|tool| one.matches(tool)))
    };
    let sentence =
        |pattern: &String| format!("{field}: {pattern:?} matches no tool{}", meant(pattern, tools));
    patterns.iter().filter(idle).map(sentence).collect()
}

fn meant(name: &str, tools: &[&str]) -> String {
    let plain: String = name.chars().filter(|c| !"*?{}[]\\".contains(*c)).collect();
    near(&plain, tools.iter().copied()).map_or(String::new(), |near| format!("; did you mean {near:?}?"))
}
