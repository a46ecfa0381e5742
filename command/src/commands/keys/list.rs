//! The list of keys, for people and for programs. There is no key in it.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_auth::keys::{ApiKey, KeyFile, KeyState, LastUse};
use tidegate_service::{epoch_ms, rfc3339_ms};

use super::file::KeysFile;
use super::shown_time;
use crate::commands::failure::Failure;
use crate::commands::output;
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::width;

pub(super) fn show(place: &KeysFile, json: bool) -> Result<(), Failure> {
    let file = KeyFile::read(&place.path)?;
    let used = place.state_dir.as_deref().map(LastUse::read).unwrap_or_default();
    let now = epoch_ms();
    if json {
        let keys: Vec<Value> = file.keys().iter().map(|key| of(key, &used, now)).collect();
        return output::text(&json!({ "file": place.path, "keys": keys }).to_string());
    }
    if file.keys().is_empty() {
        output::note("There are no keys. Make one with tidegate keys add NAME.");
        return Ok(());
    }
    let mut table =
        Table::new(&["NAME", "ID", "TENANT", "ROLES", "ENDPOINTS", "SCOPES", "LAST USE", "STATE"]);
    for key in file.keys() {
        table.row([
            key.name.to_string(),
            key.id.to_string(),
            key.tenant.as_deref().unwrap_or("-").to_owned(),
            words(Some(&key.roles)),
            words(key.endpoints.as_ref()),
            words(key.scopes.as_ref()),
            used.get(&key.id).map_or("never".to_owned(), shown_time),
            state(key, now),
        ]);
    }
    output::text(&table.show(width(), Paint::stdout()))?;
    file.note().iter().for_each(|note| output::note(&format!("note: {note}")));
    Ok(())
}

/// A list in one cell.
fn words(list: Option<&Vec<Arc<str>>>) -> String {
    match list {
        None => "all".to_owned(),
        Some(list) if list.is_empty() => "-".to_owned(),
        Some(list) => list.join(", "),
    }
}

fn state(key: &ApiKey, now: u64) -> String {
    let time = |ms: Option<u64>| ms.map(shown_time).unwrap_or_default();
    match key.state(now) {
        KeyState::Revoked => format!("revoked {}", time(key.revoked_ms)),
        KeyState::Expired => format!("expired {}", time(key.expires_ms)),
        KeyState::Valid if key.expires_ms.is_some() => format!("valid until {}", time(key.expires_ms)),
        KeyState::Valid => "valid".to_owned(),
    }
}

fn of(key: &ApiKey, used: &LastUse, now: u64) -> Value {
    let time = |ms: Option<u64>| ms.map(rfc3339_ms);
    let texts = |list: &Vec<Arc<str>>| list.iter().map(|one| one.to_string()).collect::<Vec<_>>();
    json!({
        "id": &*key.id,
        "name": &*key.name,
        "tenant": key.tenant.as_deref(),
        "roles": texts(&key.roles),
        "scopes": key.scopes.as_ref().map(texts),
        "endpoints": key.endpoints.as_ref().map(texts),
        "created": time(key.created_ms),
        "expires": time(key.expires_ms),
        "revoked": time(key.revoked_ms),
        "lastUsed": time(used.get(&key.id)),
        "state": match key.state(now) {
            KeyState::Valid => "valid",
            KeyState::Expired => "expired",
            KeyState::Revoked => "revoked",
        },
    })
}
