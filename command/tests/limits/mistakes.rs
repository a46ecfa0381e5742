//! Mistakes in `[limits]`: at the start and while it runs.

use super::*;
use crate::rig::{AUTH, SERVERS};

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    // What is written, what is said about it, and in which line of the file: the first says where its state is.
    let cases = [
        ("[limits]\ntenant = { rate = \"many\" }", "tenant", 3),
        ("[limits]\ntenant = { rate = \"0/m\" }", "rate", 3),
        ("[limits]\ntenant = { concurrent = 0 }", "concurrent", 3),
        ("[limits]\ntenat = { rate = \"1/m\" }", "tenat", 3),
        ("[limits]\nuser = { rate = \"1/m\", wait = \"1s\" }", "wait", 3),
        ("[limits]\n[[limits.rules]]\ntools = [\"a\"]", "limits nothing", 3),
        ("[limits]\n[limits.run]\nrepeats = 0", "repeats", 4),
    ];
    for (text, said, line) in cases {
        let (code, log) = match Gateway::try_start(&format!("{text}\n{SERVERS}{AUTH}")) {
            Ok(_) => panic!("it serves with {text:?}"),
            Err(ended) => ended,
        };
        assert_eq!(code, 2, "{text:?}: {log}");
        let line = format!("tidegate.toml:{line}:");
        assert!(log.contains(said) && log.contains(&line), "{text:?}: {log}");
    }
}

#[test]
fn a_mistake_while_it_runs_leaves_the_limits_as_they_were() {
    let config = |limits: &str| format!("state_dir = \"state\"\n[limits]\n{limits}\n{SERVERS}{AUTH}");
    let gateway = Gateway::start("[limits]\ntenant = { rate = \"2/h\" }\n");
    let ann = member(&gateway, "ann", "reef");
    let lists = || ann.modern("tools/list", json!({})).status;
    assert_eq!(lists(), 200);
    gateway.write("tidegate.toml", &config("tenant = { rate = \"9/century\" }"));
    gateway.logs("Configuration not changed");
    assert_eq!([lists(), lists()], [200, 429], "counted as before");
    // The same again, with something that does not matter: still the same count.
    gateway.write("tidegate.toml", &config("tenant = { rate = \"2/h\" }\nuser = { request = \"1MiB\" }"));
    gateway.logs("Configuration changed: reloading");
    assert_eq!(lists(), 429);
    gateway.write("tidegate.toml", &config("tenant = { rate = \"3/h\" }"));
    until("it is in force", || lists() == 200);
    assert_eq!([lists(), lists(), lists()], [200, 200, 429], "another limit begins anew");
}
