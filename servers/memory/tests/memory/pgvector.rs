//! Vectors that PostgreSQL compares by itself, where it has pgvector.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_memory::{Embedder, MemoryServerSettings, Store, server_with};
use tidegate_server::ServerDoor;

use crate::cluster::Cluster;
use crate::meaning::{WORDS, meant, model, people, settled};
use crate::postgres::started;
use crate::rig::{Folder, ask, call_as};

/// Says that the extension must be there: then nothing is passed over.
const WANTED: &str = "TIDEGATE_MEMORY_TEST_PGVECTOR";

/// A server that has the extension, if there is one.
fn cluster() -> Option<&'static Cluster> {
    let there = "SELECT COUNT(*) FROM pg_available_extensions WHERE name = 'vector'";
    let cluster = started().filter(|cluster| cluster.number("postgres", there) == 1);
    if cluster.is_none() {
        assert!(std::env::var_os(WANTED).is_none(), "there is no PostgreSQL with pgvector");
        let _ = writeln!(std::io::stderr(), "PostgreSQL has no pgvector here: vectors in it are not tested");
    }
    cluster
}

/// A memory server on a database, with the model in this folder.
fn memory(url: &str, folder: &Folder, name: &str) -> ServerDoor {
    let mut options = MemoryServerSettings::default();
    options.embeddings = Some(Embedder::folder(model(folder, name, &WORDS)).unwrap());
    server_with(Store::connect(url).unwrap(), options)
}

async fn diagnosis(memory: &ServerDoor) -> Value {
    ask(memory, "diagnose_vector_search", json!({})).await
}

/// Waits until the memory compares vectors where it should.
async fn compares_in(memory: &ServerDoor, place: &str) {
    let mut seen = Value::Null;
    for _ in 0..1000 {
        seen = diagnosis(memory).await;
        if seen["vectorIndex"] == place {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not compared in {place}: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_machines_share_one_index_and_none_holds_it() {
    let Some(cluster) = cluster() else { return };
    let (folder, url) = (Folder::new(), cluster.database("one_index"));
    let (here, there) = (memory(&url, &folder, "tiny"), memory(&url, &folder, "tiny"));
    ask(&here, "create_entities", people()).await;
    let other = json!({"entities": [{"name": "Tea", "entityType": "drink", "observations": ["tea"]}]});
    call_as(&there, Some("other"), "create_entities", other).await;
    settled(&here, None).await;
    settled(&here, Some("other")).await;
    let config = ask(&there, "debug_embedding_config", json!({})).await;
    assert_eq!(config["vectorIndex"], "pgvector", "{config}");
    for memory in [&here, &there] {
        assert_eq!(meant(memory, None, "coffee").await, ["Ann"]);
        assert_eq!(meant(memory, Some("other"), "coffee").await, ["Tea"]);
        let seen = diagnosis(memory).await;
        assert_eq!(seen["loaded"], json!({"vectors": 0, "bytes": 0}));
        let wanted =
            json!({"version": seen["pgvector"]["version"], "vectors": 2, "hnsw": false, "complete": true});
        assert_eq!(seen["pgvector"], wanted);
    }
    ask(&here, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    assert_eq!(meant(&there, None, "coffee").await, [""; 0], "what is forgotten is not found");
    assert_eq!(diagnosis(&there).await["pgvector"]["vectors"], 1);
    ask(&there, "create_entities", people()).await;
    settled(&here, None).await;
    assert_eq!(meant(&here, None, "coffee").await, ["Ann"], "what comes back is found again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_gets_the_extension_later_starts_to_use_it() {
    let Some(cluster) = cluster() else { return };
    // Who may not add it.
    cluster.run("CREATE ROLE modest LOGIN");
    cluster.run("CREATE DATABASE later OWNER modest");
    let (folder, url) = (Folder::new(), cluster.url("later").replace("tidegate@", "modest@"));
    let before = memory(&url, &folder, "tiny");
    // More than come in at a time.
    let many = (0..600).map(|n| json!({"name": format!("n{n}"), "entityType": "t", "observations": ["car"]}));
    ask(&before, "create_entities", json!({"entities": many.collect::<Vec<_>>()})).await;
    ask(&before, "create_entities", people()).await;
    settled(&before, None).await;
    assert_eq!(meant(&before, None, "coffee").await, ["Ann"]);
    let seen = diagnosis(&before).await;
    assert_eq!((&seen["vectorIndex"], &seen["pgvector"]), (&json!("memory"), &Value::Null), "{seen}");
    assert_eq!(seen["loaded"]["vectors"], 602);

    cluster.run_in("later", "CREATE EXTENSION vector");
    let after = memory(&url, &folder, "tiny");
    compares_in(&after, "pgvector").await;
    assert_eq!(diagnosis(&after).await["pgvector"]["vectors"], 602);
    for memory in [&before, &after] {
        assert_eq!(meant(memory, None, "coffee").await, ["Ann"]);
        assert_eq!(diagnosis(memory).await["loaded"]["vectors"], 0, "who was there before uses it, too");
    }

    cluster.run_in("later", "DROP EXTENSION vector CASCADE");
    assert_eq!(meant(&after, None, "coffee").await, ["Ann"]);
    compares_in(&after, "memory").await;
    // What is written meanwhile is not missing later.
    ask(&after, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    let tea = json!({"entities": [{"name": "Eve", "entityType": "person", "observations": ["tea"]}]});
    ask(&after, "create_entities", tea).await;
    settled(&after, None).await;
    cluster.run_in("later", "CREATE EXTENSION vector");
    let again = memory(&url, &folder, "tiny");
    compares_in(&again, "pgvector").await;
    assert_eq!(meant(&again, None, "coffee").await, ["Eve"]);
    assert_eq!(diagnosis(&again).await["pgvector"]["vectors"], 602);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_has_tables_of_its_own_and_the_old_ones_go() {
    let Some(cluster) = cluster() else { return };
    let (folder, url) = (Folder::new(), cluster.database("two_models"));
    let first = memory(&url, &folder, "tiny");
    ask(&first, "create_entities", people()).await;
    settled(&first, None).await;
    compares_in(&first, "pgvector").await;
    let tables = |list: &str| cluster.number("two_models", &format!("SELECT COUNT(*) FROM {list}"));
    let all = "pg_class WHERE relkind = 'r' AND relname LIKE 'near\\_%\\_%\\_%'";
    assert_eq!((tables(all), tables("near_tables")), (2, 1));
    let second = memory(&url, &folder, "other");
    settled(&second, None).await;
    compares_in(&second, "pgvector").await;
    assert_eq!(meant(&second, None, "coffee").await, ["Ann"]);
    for _ in 0..1000 {
        if tables("near_tables WHERE model LIKE 'tiny%'") == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((tables(all), tables("near_tables")), (2, 1), "those of the first model are gone");
    assert_eq!(
        meant(&first, None, "coffee").await,
        [""; 0],
        "who still has the first model has no vectors left"
    );
    // What is new gets vectors of both.
    let tea = json!({"entities": [{"name": "Eve", "entityType": "person", "observations": ["tea"]}]});
    ask(&first, "create_entities", tea).await;
    for _ in 0..1000 {
        if meant(&first, None, "coffee").await == ["Eve"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(meant(&first, None, "coffee").await, ["Eve"]);
    compares_in(&first, "pgvector").await;
    assert_eq!((tables(all), tables("near_tables")), (4, 2));
    assert_eq!(meant(&second, None, "coffee").await, ["Ann"]);
}
