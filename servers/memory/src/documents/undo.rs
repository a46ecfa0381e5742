//! Taking back what a change did to documents: what it made ends, and the version before it comes back as a new one.

use super::chunks::replace_chunks;
use super::{read, write};
use crate::changes::blocked;
use crate::changes::versioned::{self, Table, UndoCounts};
use crate::error::Result;
use crate::store::{Change, Value};
use crate::texts::chunk::chunks;

const DOCUMENTS: Table = Table { name: "documents", called: "title" };

/// Takes back what a change did to documents. Refused if later changes are about the same.
pub(crate) fn undo(change: &mut Change<'_>, undoing: i64) -> Result<UndoCounts> {
    let mut undone = UndoCounts::default();
    for ended in versioned::end(change, &DOCUMENTS, undoing)? {
        undone.removed += i64::from(ended.called.is_some());
        match ended.before {
            Some(before) => {
                bring(change, undoing, before, ended.called.as_deref())?;
                undone.restored += 1;
            }
            None => _ = replace_chunks(change, ended.key, "", &[], false)?,
        }
    }
    Ok(undone)
}

/// Makes a version of a document the present one again. `called` is the title that it had until now.
fn bring(change: &mut Change<'_>, undoing: i64, row: i64, called: Option<&str>) -> Result<()> {
    let kept = read::row(change, row)?;
    let title = &kept.document.title;
    if let Some(origin) = &kept.origin
        && let Some(other) = read::by_origin(change, origin)?
    {
        return Err(blocked(change, undoing, other.made, title)?);
    }
    let values = [Value::Int(change.now), Value::Int(change.id), Value::Int(row)];
    change.run(
        "INSERT INTO documents (tenant, key, version, title, base, origin, source, kind, bytes, characters, chunks,
             digest, tags, metadata, created, since, made, root)
         SELECT tenant, key,
             (SELECT max(version) + 1 FROM documents v WHERE v.tenant = d.tenant AND v.key = d.key),
             title, base, origin, source, kind, bytes, characters, chunks, digest, tags, metadata, created, ?2, ?3,
             COALESCE(root, id)
         FROM documents d WHERE tenant = ?1 AND id = ?4",
        &values,
    )?;
    let text = read::text(change, &kept)?;
    let afresh = called != Some(title);
    let count = replace_chunks(change, kept.key, title, &chunks(&text, kept.kind), afresh)?;
    write::set_chunk_count(change, kept.key, count)
}
