//! Faults of lists, and of the resources and prompts on them.

use std::collections::HashSet;

use serde_json::Value;

use super::lists::{ListFault, Listing};
use super::report::{Level, Report};
use crate::commands::failure::Failure;

/// What is wrong with a list as such.
pub(super) fn check_list(report: &mut Report, method: &str, member: &str, listed: &Listing) {
    let about = method;
    match &listed.fault {
        None => {}
        Some(ListFault::Failed(error)) => {
            report.add(
                Level::Broken,
                about,
                Failure::from(error.clone()).line(),
                "the server declares this capability: answer the request, or do not declare it",
            );
        }
        Some(ListFault::NoArray) => report.add(
            Level::Broken,
            about,
            format!("the response has no array {member:?}"),
            format!("respond with {{\"{member}\": [...]}}"),
        ),
        Some(ListFault::Circle) => report.add(
            Level::Broken,
            about,
            "the list never ends: a cursor leads back to an earlier page",
            "leave out nextCursor on the last page",
        ),
        Some(ListFault::Endless) => report.add(
            Level::Broken,
            about,
            "the list never ends: more than 500 pages",
            "leave out nextCursor on the last page, and use larger pages",
        ),
    }
}

/// What is wrong with resources, templates or prompts: `key` is what tells them apart.
pub(super) fn check_each(report: &mut Report, kind: &str, key: &str, items: &[Value]) {
    let mut seen = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let text = |member: &str| item.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
        let Some(own) = text(key) else {
            let about = format!("{kind} {}", at + 1);
            report.add(
                Level::Broken,
                &about,
                format!("has no {key}, so clients cannot use it"),
                format!("give it a {key}"),
            );
            continue;
        };
        let about = format!("{kind} {own}");
        if text("name").is_none() {
            report.add(Level::Broken, &about, "has no name, so clients reject it", "give it a name");
        }
        if !seen.insert(own.to_owned()) {
            report.add(Level::Broken, &about, "is listed more than once", "list it once");
        }
    }
}
