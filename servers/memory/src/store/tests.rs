//! What every kind of database behind a store has to do alike.

#[cfg(feature = "postgres")]
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../../tests/memory/cluster.rs"]
mod cluster;

use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::{Dialect, Location, Memory, Store, Value, schema, tenants};
use crate::error::{Code, Fault};
use crate::graph::model::Entity;
use crate::graph::{self, entities, history, ids, properties};
use crate::schema::SCHEMA;
use crate::{pages, search};

/// A memory of each kind that there is here, with what it is kept in.
struct Kinds {
    memories: Vec<Memory>,
    folder: TempDir,
}

impl Kinds {
    fn new() -> Kinds {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tidegate_store_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let mut memories = vec![Store::open(folder.path().join("memory.db")).unwrap().of("one")];
        memories.extend(on_server(&name).map(|store| store.of("one")));
        Kinds { memories, folder }
    }
}

/// A store on a server, if there can be one: all tests of this process have the same.
#[cfg(feature = "postgres")]
pub(crate) fn on_server(database: &str) -> Option<Store> {
    Some(Store::start(location_on_server(database)?).unwrap())
}

/// An empty database on a server.
#[cfg(feature = "postgres")]
fn location_on_server(database: &str) -> Option<Location> {
    static CLUSTER: std::sync::OnceLock<Option<cluster::Cluster>> = std::sync::OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| cluster::Cluster::start(false)).as_ref()?;
    Some(Location::server(&cluster.database(database), &SCHEMA).unwrap())
}

#[cfg(not(feature = "postgres"))]
fn location_on_server(_: &str) -> Option<Location> {
    None
}

#[cfg(not(feature = "postgres"))]
pub(crate) fn on_server(_: &str) -> Option<Store> {
    None
}

const MAKE: &str =
    "INSERT INTO entities (tenant, key, name, type, since, made) VALUES (?1, 0, ?2, 't', 0, 0)";

async fn known(memory: &Memory, name: &'static str) -> bool {
    memory.view(move |view| entities::find(view, name)).await.unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_one_change_and_not_the_thread() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let failing = memory.change("test", |change| -> Result<(), Fault> {
            change.run(MAKE, &[Value::Text("half".into())])?;
            panic!("as the test wants");
        });
        // At the same time, so that both may be in one transaction.
        let (failed, made) = tokio::join!(
            failing,
            memory.change("test", |change| change.run(MAKE, &[Value::Text("whole".into())]))
        );
        assert_eq!(failed.unwrap_err().code, Code::Internal);
        assert_eq!(made.unwrap(), 1);
        assert!(!known(memory, "half").await);
        assert!(known(memory, "whole").await);
        let failed = memory.view(|_| -> Result<(), Fault> { panic!("as the test wants") }).await;
        assert_eq!(failed.unwrap_err().code, Code::Internal);
        assert!(known(memory, "whole").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_is_a_conflict() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let make = |change: &mut super::Change<'_>| change.run(MAKE, &[Value::Text("same".into())]);
        memory.change("test", make).await.unwrap();
        assert_eq!(memory.change("test", make).await.unwrap_err().code, Code::Conflict);
    }
}

#[test]
fn whoever_writes_does_so_alone() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let location = memory.store.0.location.clone();
        let mut first = location.open(true).unwrap();
        first.begin_write().unwrap();
        let (begun, other) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || {
            let mut second = location.open(true).unwrap();
            second.begin_write().unwrap();
            begun.send(()).unwrap();
            second.commit().unwrap();
        });
        let soon = std::time::Duration::from_millis(300);
        assert!(other.recv_timeout(soon).is_err(), "two write at once");
        first.commit().unwrap();
        other.recv().unwrap();
        second.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_hides_a_failure_is_stored_whole_or_not_at_all() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let hidden = memory.change("test", |change| {
            change.run(MAKE, &[Value::Text("before".into())])?;
            let _ = change.run(MAKE, &[Value::Text("before".into())]);
            Ok(())
        });
        let told = hidden.await.is_ok();
        assert_eq!(told, known(memory, "before").await, "what is told is so");
        memory.change("test", |change| change.run(MAKE, &[Value::Text("after".into())])).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_as_they_went() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let relation = "INSERT INTO relations (tenant, source, target, type, strength, confidence, metadata, version, since, made)
                        VALUES (?1, ?2, 'b', 'r', ?3, ?4, ?5, ?6, 1, 1)";
        memory
            .change("test", move |change| {
                let long = Value::Int(i64::MAX - 1);
                change.run(
                    relation,
                    &[Value::Text("?1 'ü' \" \\".into()), Value::Real(0.1), Value::Null, Value::Null, long],
                )?;
                let whole = Value::Int(2);
                change.run(
                    relation,
                    &[
                        Value::Text("b".into()),
                        whole,
                        Value::Real(1.0),
                        Value::Text("m".into()),
                        Value::Int(1),
                    ],
                )
            })
            .await
            .unwrap();
        let rows = memory
            .view(|view| {
                view.all(
                    "SELECT source, strength, confidence, metadata, version FROM relations
                     WHERE tenant = ?1 AND (?2 IS NULL OR type = ?2) AND (?3 IS NULL OR version > ?3) ORDER BY source",
                    &[Value::Null, Value::Int(0)],
                    |row| {
                        let numbers = (row.maybe_real(1)?, row.maybe_real(2)?, row.int(4)?);
                        Ok((row.text(0)?, numbers, row.maybe_text(3)?, row.maybe_int(2).ok().flatten()))
                    },
                )
            })
            .await
            .unwrap();
        assert_eq!(rows[0].0, "?1 'ü' \" \\");
        assert_eq!(rows[0].1, (Some(0.1), None, i64::MAX - 1));
        assert_eq!(rows[0].2, None);
        assert_eq!(rows[1].1, (Some(2.0), Some(1.0), 1));
        assert_eq!(rows[1].2.as_deref(), Some("m"));
        let sums = memory
            .view(|view| {
                view.one(
                    "SELECT COUNT(*), SUM(since), MAX(version), SUM(strength), AVG(since), COUNT(confidence) > 5
                     FROM relations WHERE tenant = ?1",
                    &[],
                    |row| {
                        let reals = (row.maybe_real(3)?, row.maybe_real(4)?);
                        Ok((row.int(0)?, row.int(1)?, row.int(2)?, reals, row.int(5)?))
                    },
                )
            })
            .await
            .unwrap();
        assert_eq!(sums, Some((2, 2, i64::MAX - 1, (Some(2.1), Some(1.0)), 0)));
        let missing = memory.view(|view| {
            view.one("SELECT confidence FROM relations WHERE tenant = ?1 ORDER BY source", &[], |row| {
                row.int(0)
            })
        });
        assert_eq!(missing.await.unwrap_err().code, Code::Database, "none is no number");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_found_by_all_words_else_by_any() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let entity = |name: &str, said: &[&str]| Entity {
            name: name.to_owned(),
            entity_type: "t".to_owned(),
            observations: said.iter().map(|said| (*said).to_owned()).collect(),
            ..Entity::default()
        };
        let made = vec![
            entity("Harbour", &["ships receive cargo at the quay"]),
            entity("Quay", &["a wall"]),
            entity("Crêpe", &["flour, eggs"]),
        ];
        memory.change("test", move |change| entities::create(change, made)).await.unwrap();
        let found = async |text: &'static str, kinds: &'static [i64]| {
            let hits = memory.view(move |view| {
                let hits = search::lexical(view, text, kinds, 10)?;
                hits.iter().map(|hit| Ok(entities::keyed(view, hit.owner)?.unwrap().name)).collect()
            });
            let names: Result<Vec<String>, Fault> = hits.await;
            names.unwrap()
        };
        assert_eq!(found("cargo ships", &[pages::ENTITY]).await, ["Harbour"]);
        assert_eq!(found("quay", &[pages::ENTITY]).await, ["Quay", "Harbour"], "a name counts more");
        assert_eq!(found("cargo zebra", &[pages::ENTITY]).await, ["Harbour"], "one of them will do");
        assert_eq!(found("crepe EGGS", &[pages::ENTITY]).await, ["Crêpe"]);
        assert_eq!(found("quay", &[99]).await, [""; 0]);
        assert_eq!(found("' & ! | ( :*", &[pages::ENTITY]).await, [""; 0]);
        let nearly = memory
            .view(|view| match view.dialect() {
                Dialect::Postgres => search::fuzzy(view, "recieve", &[pages::ENTITY], 10).map(Some),
                Dialect::Sqlite => Ok(None),
            })
            .await
            .unwrap();
        if let Some(nearly) = nearly {
            assert_eq!(nearly.len(), 1, "{nearly:?}");
        }
    }
}

#[test]
fn a_file_of_anybody_else_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (notes, other, empty) = (folder.join("notes.txt"), folder.join("other.db"), folder.join("empty.db"));
    std::fs::write(&notes, "a long text that is no database at all").unwrap();
    let program = rusqlite::Connection::open(&other).unwrap();
    program.execute_batch("CREATE TABLE tenants (name TEXT); PRAGMA user_version = 3").unwrap();
    drop(program);
    rusqlite::Connection::open(&empty).unwrap().execute_batch("VACUUM").unwrap();
    for (file, what) in [(&notes, "not a SQLite file at all"), (&other, "a SQLite file of another program")] {
        let before = std::fs::read(file).unwrap();
        let why = Store::open(file).err().unwrap();
        assert!(
            why.message.starts_with("It is not a Tidegate memory") && why.message.contains(what),
            "{why}"
        );
        assert_eq!(std::fs::read(file).unwrap(), before);
    }
    let left = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(left, 3, "nothing is beside them");
    Store::open(&empty).unwrap();
    Store::open(&empty).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_in_the_one_file_at_the_end() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        // A reader that is still there, and changes of which nobody waits for the last.
        known(memory, "nobody").await;
        for name in ["one", "two", "three"] {
            memory.change("test", move |change| change.run(MAKE, &[Value::Text(name.into())])).await.unwrap();
        }
        let last = memory.clone();
        let last = tokio::spawn(async move {
            last.change("test", |change| change.run(MAKE, &[Value::Text("last".into())])).await
        });
        tokio::join!(memory.store.close(), memory.store.close());
        let is_kept = last.await.unwrap().is_ok();
        let gone = memory.change("test", |change| change.run(MAKE, &[Value::Text("late".into())])).await;
        assert_eq!(gone.unwrap_err(), Fault::closed());
        assert_eq!(memory.view(|_| Ok(())).await.unwrap_err(), Fault::closed());
        let file = kinds.folder.path().join("memory.db");
        if memory.store.0.location.is_file() {
            assert_eq!(std::fs::read_dir(kinds.folder.path()).unwrap().count(), 1, "only the file itself");
            let copy = kinds.folder.path().join("copy.db");
            std::fs::copy(&file, &copy).unwrap();
            let copy = Store::open(copy).unwrap().of("one");
            for name in ["one", "two", "three"] {
                assert!(known(&copy, name).await, "{name}");
            }
            assert_eq!(known(&copy, "last").await, is_kept);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many_tenants() {
    let kinds = Kinds::new();
    for memory in &kinds.memories {
        let store = &memory.store;
        store.limit_tenants(3);
        let keep = async |tenant: &str| {
            let memory = store.of(tenant);
            memory.change("test", |change| change.run(MAKE, &[Value::Text("x".into())])).await.map(drop)
        };
        let tenants = async || {
            let counted = store.read(|sql| {
                let mut count = 0;
                sql.each("SELECT COUNT(*) FROM tenants", &[], &mut |row| {
                    count = row.int(0)?;
                    Ok(())
                })?;
                Ok(count)
            });
            counted.await.unwrap()
        };
        for tenant in ["one", "two", "three"] {
            keep(tenant).await.unwrap();
        }
        // One more is refused, and the usual memory and those that are known go on.
        let fault = keep("four").await.unwrap_err();
        assert_eq!(fault.code, Code::Full);
        assert!(fault.message.contains("has 3 tenants") && fault.message.contains("max_tenants"), "{fault}");
        keep(crate::store::DEFAULT_TENANT).await.unwrap();
        memory.change("test", |change| change.run(MAKE, &[Value::Text("y".into())])).await.unwrap();
        // Who looks is nobody, whatever they look for.
        for n in 0..super::REMEMBERED + 10 {
            assert!(!known(&store.of(&format!("who {n}")), "x").await);
        }
        let nobody = store.of("nobody");
        let found = nobody.view(|view| search::lexical(view, "x", &[pages::ENTITY], 10)).await;
        assert_eq!(found.unwrap(), []);
        assert_eq!(tenants().await, 4);
        assert!(store.0.tenants().len() <= 4);
        store.limit_tenants(usize::MAX);
        for n in 0..40 {
            keep(&format!("more {n}")).await.unwrap();
        }
        for n in 0..super::REMEMBERED + 10 {
            store.0.remember_tenant(&format!("some {n}").into(), 1);
        }
        assert!(store.0.tenants().len() <= super::REMEMBERED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_memory_gains_properties_and_ids() {
    let name = format!("tidegate_store_older_{}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let file = Location::file(&folder.path().join("memory.db"), &SCHEMA).unwrap();
    for location in std::iter::once(file).chain(location_on_server(&name)) {
        // A driver of PostgreSQL waits in its own way, which a thread that runs tasks must not.
        let older = location.clone();
        std::thread::spawn(move || as_before(&older)).join().unwrap();
        let memory = Store::start(location).unwrap().of("one");
        let (id, versions) = memory
            .change("test", |change| {
                let anna = ids::find(change, "e7")?.expect("it is known by the number of its first row");
                assert_eq!(anna.name, "Anna");
                properties::set(change, &anna, serde_json::from_str(r#"{"a": 1}"#).unwrap())?;
                let versions = history::of_entity(change, "Anna", 10, None)?.versions;
                Ok((ids::of(change, anna.key)?, versions))
            })
            .await
            .unwrap();
        assert_eq!(id, "e7");
        assert_eq!(versions.iter().map(|version| version.properties.len()).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(versions.iter().all(|version| version.id == id), "{versions:?}");
        assert!(!known(&memory, "Ann").await && known(&memory, "Anna").await);
        memory.store.close().await;
    }
}

/// Makes a memory as the version before properties left it, with an entity that was renamed.
fn as_before(location: &Location) {
    let before = SCHEMA.steps.iter().position(|step| *step == [graph::PROPERTY_TABLES]).unwrap();
    let mut older = location.open(true).unwrap();
    older.begin_write().unwrap();
    assert_eq!(schema::version(&mut *older).unwrap(), 0);
    schema::apply_steps(&mut *older, &SCHEMA, 0, before).unwrap();
    let tenant = tenants::tenant(&mut *older, &SCHEMA, "one", 10).unwrap();
    for statement in [
        "INSERT INTO changes (tenant, at, what) VALUES (?1, 5, 'create_entities')",
        "INSERT INTO changes (tenant, at, what) VALUES (?1, 6, 'update_entity')",
        "INSERT INTO entities (id, tenant, key, name, type, since, until, made, gone)
         VALUES (7, ?1, 7, 'Ann', 't', 5, 6, 1, 2)",
        "INSERT INTO entities (id, tenant, key, name, type, since, made) VALUES (8, ?1, 7, 'Anna', 't', 6, 2)",
    ] {
        older.run(statement, &[Value::Int(tenant)]).unwrap();
    }
    older.commit().unwrap();
}
