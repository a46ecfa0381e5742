//! Which fields of a configuration hold secrets in plain text.

use toml::de::{DeTable, DeValue};

use crate::entry::is_plain_secret;
use crate::places::dotted;

/// Those fields, as people write them. To be called before anything is filled in.
pub(crate) fn secrets(root: &DeTable<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let servers = table(root, "servers");
    for (server, value) in servers.into_iter().flat_map(DeTable::iter) {
        let DeValue::Table(server_table) = value.get_ref() else { continue };
        for field in ["env", "headers"] {
            named(&["servers", server.get_ref(), field], table(server_table, field), &mut found);
        }
    }
    named(&["defaults", "env"], table(root, "defaults").and_then(|all| table(all, "env")), &mut found);
    let keys = root.get("sealing_keys").and_then(|keys| keys.get_ref().as_array());
    let is_plain = |key: &str| !key.trim().is_empty() && !key.contains("${");
    if keys.into_iter().flatten().any(|key| key.get_ref().as_str().is_some_and(is_plain)) {
        found.push("sealing_keys".to_owned());
    }
    let Some(memory) = table(root, "memory") else { return found };
    named(&["memory", "embeddings"], table(memory, "embeddings"), &mut found);
    for (name, value) in table(memory, "models").into_iter().flat_map(DeTable::iter) {
        named(&["memory", "models", name.get_ref()], value.get_ref().as_table(), &mut found);
    }
    let store = memory.get("store").and_then(|store| store.get_ref().as_str());
    if store.is_some_and(has_password) {
        found.push("memory.store".to_owned());
    }
    found
}

fn table<'a, 'i>(around: &'a DeTable<'i>, name: &str) -> Option<&'a DeTable<'i>> {
    around.get(name)?.get_ref().as_table()
}

/// Adds the members of a table whose names say that they are secrets.
fn named(path: &[&str], table: Option<&DeTable<'_>>, found: &mut Vec<String>) {
    for (name, value) in table.into_iter().flat_map(DeTable::iter) {
        let name = name.get_ref().as_ref();
        if value.get_ref().as_str().is_some_and(|value| is_plain_secret(name, value)) {
            found.push(dotted(&[path, &[name]].concat()));
        }
    }
}

/// Whether an address has a password that is not a reference.
fn has_password(address: &str) -> bool {
    let user = address.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.contains("${"))
}
