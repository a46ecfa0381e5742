//! The agents that come with the server.

use std::sync::OnceLock;

use super::agentlet::Agent;

/// Their documents.
const DOCUMENTS: [&str; 4] = [
    include_str!("system/researcher.json"),
    include_str!("system/librarian.json"),
    include_str!("system/edge-builder.json"),
    include_str!("system/test-agent.json"),
];

/// All of them.
pub(crate) fn all() -> &'static [Agent] {
    static ALL: OnceLock<Vec<Agent>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |text: &&str| Agent::read(&serde_json::from_str(text).ok()?).ok();
        DOCUMENTS.iter().filter_map(read).collect()
    })
}

/// The one of this name.
pub(crate) fn named(name: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_an_agent() {
        assert_eq!(all().len(), DOCUMENTS.len());
        let names: Vec<_> = all().iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["researcher", "librarian", "edge-builder", "test-agent"]);
        for agent in all() {
            agent.check("").unwrap();
        }
    }
}
