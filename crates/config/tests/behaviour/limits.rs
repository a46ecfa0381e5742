//! How much callers may do: what `[limits]` means, and what is wrong with one.

use std::time::Duration;

use tidegate_config::{Concurrency, LimitSet, LimitSettings, Rate, RateUnit, RunSettings};
use tidegate_service::fair_queue::Priority;

use crate::{parse, wrong};

fn limits(text: &str) -> LimitSettings {
    parse(text).unwrap().limits.unwrap()
}

fn notes(text: &str) -> String {
    parse(text).unwrap().notes.join("\n")
}

fn rate(calls: u32, per: RateUnit) -> LimitSet {
    LimitSet { rate: Some(Rate { calls, per }), ..LimitSet::default() }
}

#[test]
fn the_section_alone() {
    assert_eq!(parse("").unwrap().limits, None);
    let limits = limits("[limits]");
    assert_eq!(limits, LimitSettings::default());
    let tenant = limits.scopes.tenant.unwrap();
    assert_eq!(tenant.rate.unwrap().to_string(), "100/m");
    let wait = Duration::from_secs(60);
    assert_eq!(tenant.concurrency, Some(Concurrency { running: 10, waiting: 100, wait }));
    assert_eq!((limits.scopes.user, limits.run), (None, None));
    assert_eq!(self::limits("[limits]\ntenant = true"), LimitSettings::default());
}

#[test]
fn what_is_written() {
    let limits = limits(
        r#"
        [auth]
        keys = "keys.toml"
        [limits]
        tenant = { rate = "100/m", concurrent = 4, queue = 7, wait = "10s", request = "1MiB", response = 4096 }
        user = { rate = "60/minute" }
        server = { concurrent = 20, queue = 0 }
        [[limits.rules]]
        tools = ["github_create_*"]
        roles = ["intern"]
        user = { rate = "5/h" }
        [[limits.rules]]
        endpoints = ["default"]
        tenants = ["reef"]
        servers = ["git*"]
        priority = "high"
        [limits.run]
        window = "20m"
        calls = 200
        repeats = 3
        bytes = "50MiB"
        time = "5m"
        except = ["*_status"]
        "#,
    );
    assert_eq!(
        limits.scopes.tenant,
        Some(LimitSet {
            concurrency: Some(Concurrency { running: 4, waiting: 7, wait: Duration::from_secs(10) }),
            request: Some(1 << 20),
            response: Some(4096),
            ..rate(100, RateUnit::Minute)
        })
    );
    assert_eq!(limits.scopes.user, Some(rate(60, RateUnit::Minute)));
    assert_eq!(limits.scopes.server.unwrap().concurrency.unwrap().waiting, 0);
    let [create, urgent] = &limits.rules[..] else { panic!("{:?}", limits.rules) };
    assert!(create.tools.as_ref().unwrap().matches("github_create_issue"));
    assert!(create.roles.is_some() && create.priority.is_none());
    assert_eq!(create.scopes.user, Some(rate(5, RateUnit::Hour)));
    assert_eq!(urgent.priority, Some(Priority::High));
    assert!(urgent.scopes.is_empty() && urgent.tenants.is_some() && urgent.servers.is_some());
    let run = limits.run.unwrap();
    assert_eq!((run.window, run.calls, run.repeats), (Duration::from_secs(1200), Some(200), Some(3)));
    assert_eq!((run.bytes, run.time), (Some(50 << 20), Some(Duration::from_secs(300))));
    assert!(run.except.matches("build_status"));
    assert_eq!(self::limits("[limits.run]").run, Some(RunSettings::default()));
    assert_eq!(self::limits("[limits]\ntenant = false\n[limits.run]").scopes.tenant, None);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    for (text, expected) in [
        ("[limits]\nuser = { rate = \"0/m\" }", "2:10: limits.user.rate: must be at least 1. To forbid"),
        (
            "[limits]\nuser = { rate = \"often\" }",
            "limits.user.rate: must be a number of calls and a time, such as",
        ),
        ("[limits]\nuser = { rate = \"9999999/s\" }", "limits.user.rate: must be at most 1000000"),
        ("[limits]\nuser = {}", "limits.user: limits nothing: say rate, concurrent, request or response"),
        ("[limits]\nuser = { queue = 5, rate = \"1/s\" }", "limits.user.queue: is about calls that wait"),
        ("[limits]\ntenant = { concurrent = 0 }", "limits.tenant.concurrent: must be from 1 to"),
        (
            "[limits]\ntenant = { concurrent = 1, wait = \"0s\" }",
            "limits.tenant.wait: must be longer than 0; say queue = 0",
        ),
        ("[limits]\ntenant = { concurrent = 1, queue = 2000000 }", "limits.tenant.queue: must be from 0 to"),
        ("[limits]\ntenant = { request = 0 }", "limits.tenant.request: must be more than 0"),
        ("[limits]\ntenant = { response = \"lots\" }", "limits.tenant.response: must be a number of bytes"),
        ("[limits]\ntenant = false", "limits: limits nothing: add a limit"),
        ("[limits]\ntenants = { rate = \"1/s\" }", "did you mean \"tenant\""),
        ("[limits]\nuser = [\"5/m\"]", "limits.user: must be a table, not a list"),
        ("[limits.rules]\npriority = \"high\"", "limits.rules: must be written [[limits.rules]]"),
        ("[[limits.rules]]\ntools = [\"a\"]", "limits.rules: limits nothing: add a limit"),
        (
            "[[limits.rules]]\ntools = []\npriority = \"low\"",
            "limits.rules.tools: must have at least one pattern",
        ),
        (
            "[[limits.rules]]\ntools = [\"[\"]\npriority = \"low\"",
            "limits.rules.tools: pattern 1 is not a valid glob",
        ),
        ("[[limits.rules]]\npriority = \"urgent\"", "high"),
        ("[[limits.rules]]\nuser = { rate = \"1/x\" }", "2:10: limits.rules.user.rate: must be"),
        ("[[limits.rules]]\nuser = [\"5/m\"]", "limits.rules.user: must be a table, not a list"),
        ("[limits.run]\nwindow = \"0s\"", "limits.run.window: must be longer than 0"),
        ("[limits.run]\ncalls = 0", "limits.run.calls: must be 1 or more"),
        ("[limits.run]\nrepeats = 0", "limits.run.repeats: must be 1 or more"),
        ("[limits.run]\nrepeats = -1", "limits.run.repeats"),
        ("[limits.run]\nbytes = 0", "limits.run.bytes: must be more than 0"),
        ("[limits.run]\ntime = \"0s\"", "limits.run.time: must be longer than 0"),
    ] {
        wrong(text, expected);
    }
}

#[test]
fn what_has_no_effect_is_noted() {
    let rule = "[[limits.rules]]\nroles = [\"dev\"]\ntenants = [\"reef\"]\npriority = \"low\"";
    let notes_without = notes(rule);
    assert!(notes_without.contains("limits.rules.roles has no effect"), "{notes_without}");
    assert!(notes_without.contains("limits.rules.tenants has no effect"), "{notes_without}");
    let with = format!("[auth]\nkeys = \"keys.toml\"\n{rule}");
    assert!(!notes(&with).contains("limits"), "{}", notes(&with));
    let idle = notes("[limits]\ntenant = { concurrent = 1, queue = 0, wait = \"5s\" }");
    assert!(idle.contains("limits.tenant.wait has no effect"), "{idle}");
}
