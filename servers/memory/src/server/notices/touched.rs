//! What changes were about, as far as somebody wants to know.

use std::collections::{BTreeMap, BTreeSet};

use crate::agents::address::{OWN, name_at};
use crate::documents::model::key_at;
use crate::error::Result;
use crate::graph::address::{GRAPH, entity_at};
use crate::server::page::TIMELINE;
use crate::store::{ChangeNotice, Value, View};

/// Something that changes can be about, and that can be watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchedResource {
    /// The whole graph.
    Graph,
    /// When the memory changed.
    Timeline,
    /// The list of agents that were made.
    Agents,
    /// A document, by its number.
    Document(i64),
    /// An agent, by its name in small letters.
    Agent(String),
    /// An entity, by its name.
    Entity(String),
}

impl WatchedResource {
    /// What is at an address, if it is one of ours and can change.
    pub(crate) fn at(uri: &str) -> Option<WatchedResource> {
        match uri {
            GRAPH => Some(WatchedResource::Graph),
            TIMELINE => Some(WatchedResource::Timeline),
            OWN => Some(WatchedResource::Agents),
            _ => key_at(uri)
                .map(WatchedResource::Document)
                .or_else(|| name_at(uri).map(WatchedResource::Agent))
                .or_else(|| entity_at(uri).map(WatchedResource::Entity)),
        }
    }
}

/// What somebody wants to know of the changes of one tenant's memory.
#[derive(Debug, Default, Clone)]
pub(crate) struct Interest {
    /// Things, and the addresses under which they are watched: one thing may have several.
    pub(crate) things: BTreeMap<WatchedResource, Vec<String>>,
    /// Whether things have come or gone.
    pub(crate) list: bool,
}

impl Interest {
    pub(crate) fn is_none(&self) -> bool {
        self.things.is_empty() && !self.list
    }
}

/// What the changes from number `first` to number `last` were about.
pub(crate) fn notice_of(
    view: &mut View<'_>,
    first: i64,
    last: i64,
    interest: &Interest,
) -> Result<ChangeNotice> {
    let mut look = ChangeReader { view, span: [Value::Int(first), Value::Int(last)] };
    let entities = look.any("entities")?;
    let graph = entities || look.any("observations")? || look.any("relations")? || look.any("properties")?;
    let (agents, documents) = (look.any("agents")?, look.any("documents")?);
    let named = match graph {
        true => look.names(interest)?,
        false => BTreeSet::new(),
    };
    let agents_touched = match agents {
        true => look.each("name", "agents", |row| row.text(0))?,
        false => BTreeSet::new(),
    };
    let documents_touched = match documents {
        true => look.each("key", "documents", |row| row.int(0))?,
        false => BTreeSet::new(),
    };
    let touched = |thing: &WatchedResource| match thing {
        WatchedResource::Graph => graph,
        WatchedResource::Timeline => true,
        WatchedResource::Agents => agents,
        WatchedResource::Document(key) => documents_touched.contains(key),
        WatchedResource::Agent(name) => agents_touched.contains(name),
        WatchedResource::Entity(name) => named.contains(name.as_str()),
    };
    let uris = interest.things.iter().filter(|(thing, _)| touched(thing)).flat_map(|(_, uris)| uris.clone());
    Ok(ChangeNotice { uris: uris.collect(), list: interest.list && (entities || agents || documents) })
}

/// Looks at what was made and ended in a span of changes.
struct ChangeReader<'a, 'v> {
    view: &'a mut View<'v>,
    span: [Value<'static>; 2],
}

impl ChangeReader<'_, '_> {
    /// The rows of a table that were made or ended.
    fn sql(columns: &str, table: &str, ended: &str, more: &str) -> String {
        format!("SELECT {columns} FROM {table} WHERE tenant = ?1 AND {ended} >= ?2 AND {ended} <= ?3 {more}")
    }

    /// Whether there is any.
    fn any(&mut self, table: &str) -> Result<bool> {
        for ended in ["made", "gone"] {
            let sql = Self::sql("1", table, ended, "LIMIT 1");
            if self.view.one(&sql, &self.span, |row| row.int(0))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a column says in all of them.
    fn each<T: Ord>(
        &mut self,
        column: &str,
        table: &str,
        mut read: impl FnMut(&dyn crate::store::Row) -> Result<T>,
    ) -> Result<BTreeSet<T>> {
        let mut found = BTreeSet::new();
        for ended in ["made", "gone"] {
            let sql = Self::sql(column, table, ended, "");
            self.view.each(&sql, &self.span, |row| {
                found.insert(read(row)?);
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The names of watched entities that were touched: themselves, what is known of them, or their relations. A change may
    /// be about very many entities, and few are watched.
    fn names<'i>(&mut self, interest: &'i Interest) -> Result<BTreeSet<&'i str>> {
        let watched: BTreeSet<&str> = interest
            .things
            .keys()
            .filter_map(|thing| match thing {
                WatchedResource::Entity(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let mut touched = BTreeSet::new();
        if watched.is_empty() {
            return Ok(touched);
        }
        let mut keys: BTreeMap<i64, &str> = BTreeMap::new();
        for name in &watched {
            let sql = "SELECT key FROM entities WHERE tenant = ?1 AND name = ?2";
            let known = self.view.all(sql, &[Value::Text((*name).into())], |row| row.int(0))?;
            keys.extend(known.into_iter().map(|key| (key, *name)));
        }
        for ended in ["made", "gone"] {
            let mut named = |name: &str| touched.extend(watched.get(name).copied());
            self.view.each(&Self::sql("name", "entities", ended, ""), &self.span, |row| {
                named(&row.text(0)?);
                Ok(())
            })?;
            self.view.each(&Self::sql("source, target", "relations", ended, ""), &self.span, |row| {
                named(&row.text(0)?);
                named(&row.text(1)?);
                Ok(())
            })?;
            for table in ["observations", "properties"] {
                self.view.each(&Self::sql("DISTINCT entity", table, ended, ""), &self.span, |row| {
                    touched.extend(keys.get(&row.int(0)?).copied());
                    Ok(())
                })?;
            }
        }
        Ok(touched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_known_by_their_addresses() {
        for (uri, thing) in [
            ("memory://knowledge-graph", Some(WatchedResource::Graph)),
            ("memory://timeline", Some(WatchedResource::Timeline)),
            ("my-agents://list", Some(WatchedResource::Agents)),
            ("memory://documents/doc-7", Some(WatchedResource::Document(7))),
            ("memory://entities/a%20b", Some(WatchedResource::Entity("a b".into()))),
            ("agentlet://user/ann/Greeter", Some(WatchedResource::Agent("greeter".into()))),
            ("agentlet://greeter", Some(WatchedResource::Agent("greeter".into()))),
            ("agentlet://system/researcher", None),
            ("system-agents://list", None),
            ("memory://documents/x", None),
            ("researcher", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(WatchedResource::at(uri), thing, "{uri}");
        }
    }
}
