//! Which fields of a configuration hold secrets in plain text.

use tidegate_builtin::Builtins;
use toml::de::{DeTable, DeValue};

use crate::entry::is_plain_secret;
use crate::source_map::dotted;

/// Those fields, as people write them. To be called before anything is filled in.
pub(crate) fn find(root: &DeTable<'_>, builtins: &Builtins) -> Vec<String> {
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
    let asked = table(root, "auth").and_then(|auth| auth.get("introspection"));
    for server in asked.and_then(|asked| asked.get_ref().as_array()).into_iter().flatten() {
        named(&["auth", "introspection"], server.get_ref().as_table(), &mut found);
    }
    for section in builtins.names() {
        within(&[section], table(root, section), &mut found);
    }
    found
}

/// The same for the section of a server of the program: by the names of its fields, and passwords in addresses.
fn within(path: &[&str], section: Option<&DeTable<'_>>, found: &mut Vec<String>) {
    named(path, section, found);
    for (name, value) in section.into_iter().flat_map(DeTable::iter) {
        let path = [path, &[name.get_ref()]].concat();
        if value.get_ref().as_str().is_some_and(has_password) {
            found.push(dotted(&path));
        }
        within(&path, value.get_ref().as_table(), found);
    }
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
