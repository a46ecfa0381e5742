//! Addresses: the URIs under which the graph and each entity are read.

use crate::uri::{escaped, unescaped};

/// The whole graph.
pub(crate) const GRAPH: &str = "memory://knowledge-graph";
/// What stands before the name of an entity.
pub(crate) const BEFORE_NAME: &str = "memory://entities/";

/// The address of an entity: its name, escaped where it must be.
pub(crate) fn entity_uri(name: &str) -> String {
    format!("{BEFORE_NAME}{}", escaped(name))
}

/// The name of the entity at an address, if that is one.
pub(crate) fn entity_at(uri: &str) -> Option<String> {
    let name = uri.strip_prefix(BEFORE_NAME)?;
    // What is no escape stands for itself, as it does when the address is read.
    Some(unescaped(name).unwrap_or_else(|_| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(entity_uri("a b/ü"), "memory://entities/a%20b%2F%C3%BC");
        assert_eq!(entity_at("memory://entities/a%20b%2f%C3%BC").as_deref(), Some("a b/ü"));
        assert_eq!(entity_at("memory://entities/100%").as_deref(), Some("100%"));
        assert_eq!(entity_at("memory://documents/doc-1"), None);
    }
}
