//! Ids of entities. An id stays the same when an entity gets another name or type, is deleted and restored, or moves to
//! another store with its history.

use super::entities::{self, EntityRow};
use crate::error::Result;
use crate::store::{Value, View};

/// What the id of an entity begins with that was made before entities had ids: the number of its first row follows.
const OLD: char = 'e';
/// Longest id that is brought from elsewhere.
pub(crate) const MAX_ID: usize = 100;

/// A new id: a random UUID.
pub(crate) fn new() -> String {
    let mut bytes = tidegate_service::random::<16>();
    // RFC 9562: version 4, and the variant of the RFC.
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut id = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            id.push('-');
        }
        id.push_str(&format!("{byte:02x}"));
    }
    id
}

/// The id of the entity whose first row has this number, if the row says none.
pub(crate) fn old(key: i64) -> String {
    format!("{OLD}{key}")
}

/// The id of an entity.
pub(crate) fn of(view: &mut View<'_>, key: i64) -> Result<String> {
    let known =
        view.one("SELECT uid FROM entities WHERE tenant = ?1 AND id = ?2", &[Value::Int(key)], |row| {
            row.maybe_text(0)
        })?;
    Ok(known.flatten().unwrap_or_else(|| old(key)))
}

/// The entity with this id, if it still exists.
pub(crate) fn find(view: &mut View<'_>, id: &str) -> Result<Option<EntityRow>> {
    let mut key = view.one(
        "SELECT key FROM entities WHERE tenant = ?1 AND uid = ?2",
        &[Value::Text(id.into())],
        |row| row.int(0),
    )?;
    if key.is_none()
        && let Some(number) = id.strip_prefix(OLD).and_then(|number| number.parse::<i64>().ok())
    {
        key = view.one(
            "SELECT key FROM entities WHERE tenant = ?1 AND id = ?2 AND key = ?2 AND uid IS NULL",
            &[Value::Int(number)],
            |row| row.int(0),
        )?;
    }
    key.map_or(Ok(None), |key| entities::keyed(view, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids() {
        let (one, other) = (new(), new());
        assert_ne!(one, other);
        let parts: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{one}");
        assert!(one.chars().all(|c| c == '-' || c.is_ascii_hexdigit()), "{one}");
        assert_eq!(&one[14..15], "4", "{one}");
    }
}
