//! The agents that come with the server.

use std::sync::OnceLock;

use super::agentlet::Agent;

/// Their documents.
const DOCUMENTS: [&str; 6] = [
    include_str!("system/researcher.json"),
    include_str!("system/librarian.json"),
    include_str!("system/edge-builder.json"),
    include_str!("system/moment-generator.json"),
    include_str!("system/mcp-agent.json"),
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

/// The one that is called this in code.
pub(crate) fn called(full: &str) -> Option<&'static Agent> {
    all().iter().find(|agent| agent.fully_qualified_name().eq_ignore_ascii_case(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_an_agent() {
        assert_eq!(all().len(), DOCUMENTS.len());
        let names: Vec<_> = all().iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(
            names,
            ["researcher", "librarian", "edge-builder", "moment-generator", "mcp-agent", "test-agent"]
        );
        for agent in all() {
            agent.check("").unwrap();
        }
    }
}
