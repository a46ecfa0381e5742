//! What the tools of an agent are called: by whoever names them, where they are, and by models.

use std::collections::HashSet;

use crate::agents::agentlet::Named;

/// What the memory itself is called by those who name a server with each tool.
const HERE: [&str; 6] = ["percolate", "default", "local", "memory", "tidegate", "tidegate-memory"];

/// Whether a tool may be one of the memory's own.
pub(super) fn is_here(named: &Named) -> bool {
    named.mcp_server.as_deref().is_none_or(|server| HERE.contains(&server.to_lowercase().as_str()))
}

/// What a tool may be called among the memory's own, with the name of the memory before it or without.
pub(super) fn own_names(named: &Named) -> Vec<String> {
    if !is_here(named) {
        return Vec::new();
    }
    let plain = named.tool_name.as_str();
    let short = HERE.iter().find_map(|server| plain.strip_prefix(server)?.strip_prefix('_'));
    [Some(plain), short].into_iter().flatten().map(str::to_owned).collect()
}

/// What a tool may be called, the likeliest first.
pub(super) fn names(named: &Named) -> Vec<String> {
    let plain = named.tool_name.clone();
    match named.mcp_server.as_deref() {
        Some(server) if is_here(named) => vec![plain.clone(), format!("{server}_{plain}")],
        Some(server) => vec![format!("{server}_{plain}"), plain],
        None => vec![plain],
    }
}

/// The name as models take it, and no other tool has it.
pub(super) fn alias(name: &str, taken: &mut HashSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let base: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(60).collect();
    let mut alias = base.clone();
    for n in 2.. {
        if taken.insert(alias.clone()) {
            break;
        }
        alias = format!("{base}_{n}");
    }
    alias
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ANSWER;

    #[test]
    fn names_fit_what_models_take() {
        let mut taken = HashSet::from([ANSWER.to_owned()]);
        assert_eq!(alias("a.b/c", &mut taken), "a_b_c");
        assert_eq!(alias("a_b_c", &mut taken), "a_b_c_2");
        assert_eq!(alias("answer", &mut taken), "answer_2");
        assert_eq!(alias(&"x".repeat(100), &mut taken).len(), 60);
    }

    #[test]
    fn the_memory_has_many_names() {
        let named = |server: Option<&str>, tool: &str| {
            own_names(&Named {
                mcp_server: server.map(str::to_owned),
                tool_name: tool.to_owned(),
                usage: None,
            })
        };
        assert_eq!(named(None, "search_nodes"), ["search_nodes"]);
        assert_eq!(named(Some("Percolate"), "search_nodes"), ["search_nodes"]);
        assert_eq!(named(None, "memory_search_nodes"), ["memory_search_nodes", "search_nodes"]);
        assert!(named(Some("web"), "search_nodes").is_empty());
    }
}
