//! The file of DevFlow: a SQLite database with the tables `entities` and `relations`.
//!
//! The file is somebody's, and may be damaged or made to do harm: it is read in memory, only from plain tables, and only
//! after SQLite has found nothing wrong with them.

use rusqlite::limits::Limit;
use rusqlite::{Connection, MAIN_DB, Row};

use crate::error::{Fault, Result};
use crate::graph::model::{Entity, Graph, Relation};

/// How long the file may be, in bytes.
pub(crate) const MAX_FILE: usize = 48 * 1024 * 1024;
/// How long a text in it may be, in bytes.
const MAX_TEXT: i32 = 16 * 1024 * 1024;
/// How a file of SQLite begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Reads what holds now of the entities and relations in the file.
pub(crate) fn read(mut file: Vec<u8>) -> Result<Graph> {
    if file.len() > MAX_FILE {
        return Err(wrong(format!("must have at most {MAX_FILE} bytes, and has {}", file.len())));
    }
    if file.len() < 100 || !file.starts_with(MAGIC) {
        return Err(wrong("is not a SQLite database"));
    }
    // A database in memory has no log of changes beside it; the header would ask for one.
    file[18..20].copy_from_slice(&[1, 1]);
    let database = open(&file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    drop(file);
    for table in ["entities", "relations"] {
        plain(&database, table)?;
    }
    tables(&database)
}

fn wrong(reason: impl std::fmt::Display) -> Fault {
    Fault::input("devflow", reason)
}

fn open(file: &[u8]) -> rusqlite::Result<Connection> {
    let mut database = Connection::open_in_memory()?;
    database.deserialize_read_exact(MAIN_DB, file, file.len(), true)?;
    database.pragma_update(None, "trusted_schema", false)?;
    database.pragma_update(None, "cell_size_check", true)?;
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_TEXT)?;
    Ok(database)
}

/// Sees to it that a table is one, computes nothing, and is not damaged.
fn plain(database: &Connection, table: &str) -> Result<()> {
    let unreadable = |error: rusqlite::Error| wrong(format!("cannot be read: {error}"));
    let tables: i64 = database
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql LIKE 'CREATE TABLE%'",
            [table],
            |row| row.get(0),
        )
        .map_err(unreadable)?;
    let computed: i64 = database
        .query_row("SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0", [table], |row| row.get(0))
        .map_err(unreadable)?;
    if tables != 1 || computed != 0 {
        return Err(wrong(format!("has no table {table:?} as DevFlow creates it")));
    }
    let health: String = database
        .query_row(&format!("PRAGMA quick_check({table})"), [], |row| row.get(0))
        .map_err(unreadable)?;
    match health.as_str() {
        "ok" => Ok(()),
        _ => Err(wrong(format!("is damaged: {health}"))),
    }
}

fn tables(database: &Connection) -> Result<Graph> {
    let mut graph = Graph::default();
    all(
        database,
        "SELECT name, entity_type, observations FROM entities WHERE valid_to IS NULL ORDER BY created_at, rowid",
        |row| {
            let observations: String = row.get(2)?;
            let entity = Entity {
                name: row.get(0)?,
                entity_type: row.get(1)?,
                observations: serde_json::from_str(&observations).map_err(|error| unfit(2, error))?,
                ..Entity::default()
            };
            graph.entities.push(entity);
            Ok(())
        },
    )?;
    all(
        database,
        "SELECT from_entity_name, to_entity_name, relation_type, strength, confidence, metadata FROM relations
         WHERE valid_to IS NULL ORDER BY created_at, rowid",
        |row| {
            let metadata: Option<String> = row.get(5)?;
            let metadata: Option<serde_json::Map<_, _>> = metadata
                .map(|text| serde_json::from_str(&text))
                .transpose()
                .map_err(|error| unfit(5, error))?;
            graph.relations.push(Relation {
                from: row.get(0)?,
                to: row.get(1)?,
                relation_type: row.get(2)?,
                strength: row.get(3)?,
                confidence: row.get(4)?,
                metadata: metadata.filter(|members| !members.is_empty()),
            });
            Ok(())
        },
    )?;
    for (at, entity) in graph.entities.iter().enumerate() {
        entity.check(at).map_err(|fault| wrong(fault.message))?;
    }
    for (at, relation) in graph.relations.iter().enumerate() {
        relation.check(&format!("relations[{at}]")).map_err(|fault| wrong(fault.message))?;
    }
    Ok(graph)
}

/// A text that is not the JSON that it should be.
fn unfit(column: usize, error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

fn all(
    database: &Connection,
    sql: &str,
    mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> Result<()> {
    let mut read = || {
        let mut statement = database.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    };
    read().map_err(|error: rusqlite::Error| wrong(format!("cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
        CREATE TABLE entities (
            id TEXT PRIMARY KEY, name TEXT NOT NULL,
            entity_type TEXT NOT NULL CHECK(entity_type IN ('feature', 'task', 'decision', 'component', 'test')),
            observations TEXT NOT NULL DEFAULT '[]', embedding TEXT, version INTEGER NOT NULL DEFAULT 1,
            created_at INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL DEFAULT 0,
            valid_from INTEGER NOT NULL DEFAULT 0, valid_to INTEGER, changed_by TEXT);
        CREATE TABLE relations (
            id TEXT PRIMARY KEY, from_entity_id TEXT NOT NULL, to_entity_id TEXT NOT NULL,
            from_entity_name TEXT NOT NULL, to_entity_name TEXT NOT NULL, relation_type TEXT NOT NULL,
            strength REAL NOT NULL DEFAULT 0.5, confidence REAL NOT NULL DEFAULT 0.5,
            metadata TEXT NOT NULL DEFAULT '{}', version INTEGER NOT NULL DEFAULT 1,
            created_at INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL DEFAULT 0,
            valid_from INTEGER NOT NULL DEFAULT 0, valid_to INTEGER, changed_by TEXT);";

    fn file(sql: &str) -> Vec<u8> {
        let mut database = Connection::open_in_memory().unwrap();
        database.execute_batch(sql).unwrap();
        database.serialize(MAIN_DB).unwrap().to_vec()
    }

    #[test]
    fn what_holds_now_is_read() {
        let rows = "
            INSERT INTO entities (id, name, entity_type, observations, valid_to) VALUES
                ('1', 'Dam', 'feature', '[\"old\"]', 5), ('2', 'Dam', 'feature', '[\"a wall\", \"dry feet\"]', NULL),
                ('3', 'Dig', 'task', '[]', NULL);
            INSERT INTO relations (id, from_entity_id, to_entity_id, from_entity_name, to_entity_name, relation_type,
                strength, confidence, metadata)
                VALUES ('1', '3', '2', 'Dig', 'Dam', 'part_of', 0.9, 0.8, '{\"createdAt\": 1}');";
        let mut bytes = file(&format!("{TABLES}{rows}"));
        // As DevFlow leaves it: with a log of changes.
        bytes[18..20].copy_from_slice(&[2, 2]);
        let graph = read(bytes).unwrap();
        assert_eq!(graph.entities.len(), 2);
        assert_eq!(graph.entities[0].observations, ["a wall", "dry feet"]);
        let relation = &graph.relations[0];
        assert_eq!((&*relation.from, &*relation.to, &*relation.relation_type), ("Dig", "Dam", "part_of"));
        assert_eq!((relation.strength, relation.confidence), (Some(0.9), Some(0.8)));
        assert_eq!(relation.metadata.as_ref().unwrap()["createdAt"], 1);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let endless =
            "CREATE VIEW entities AS WITH RECURSIVE n(name) AS (VALUES (1) UNION ALL SELECT name + 1 FROM n)
            SELECT name, '' AS entity_type, '[]' AS observations, NULL AS valid_to, 0 AS created_at FROM n;";
        let computed = TABLES.replacen("embedding TEXT", "embedding TEXT AS (hex(zeroblob(400000000)))", 1);
        let unfit = "INSERT INTO entities (id, name, entity_type, observations) VALUES ('1', 'Dam', 'task', 'no JSON');";
        let mut damaged = file(TABLES);
        let length = damaged.len();
        damaged[length / 2..].fill(0xff);
        for (bytes, why) in [
            (b"nonsense".to_vec(), "not a SQLite database"),
            ([MAGIC, &[0; 200]].concat(), "devflow"),
            (file("CREATE TABLE other (id)"), "no table \"entities\""),
            (file(endless), "no table \"entities\""),
            (file(&computed), "as DevFlow creates it"),
            (file(&format!("{TABLES}{unfit}")), "cannot be read"),
            (damaged, "devflow"),
        ] {
            let fault = read(bytes).unwrap_err();
            assert!(fault.message.contains(why), "{why}: {fault}");
        }
    }
}
