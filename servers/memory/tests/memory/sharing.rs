//! Several memories of one file at once, as when a configuration is read anew while another process comes and goes.

use std::process::Command;

use serde_json::{Value, json};
use tidegate_memory::{Store, server};

use crate::rig::{Folder, ask};

const FILE: &str = "TIDEGATE_SHARED_FILE";

async fn keep(store: &Store, name: &str) {
    let entity = json!({"name": name, "entityType": "t", "observations": []});
    ask(&server(store.clone()), "create_entities", json!({"entities": [entity]})).await;
}

/// Not a test of its own: a process that uses the memory for a moment.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "what_another_process_leaves_behind_is_not_taken_away starts it"]
async fn another_process() {
    let store = Store::open(std::env::var(FILE).unwrap()).unwrap();
    keep(&store, "of another process").await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_leaves_behind_is_not_taken_away() {
    let folder = Folder::new();
    let file = folder.path().join("memory.db");
    let first = Store::open(&file).unwrap();
    keep(&first, "one").await;
    // A second one in this process. Whoever opens and closes the file itself gives up the locks of the first.
    let second = Store::open(&file).unwrap();
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sharing::another_process", "--ignored"])
        .env(FILE, &file)
        .output()
        .unwrap();
    assert!(other.status.success(), "{other:?}");
    keep(&first, "two").await;
    keep(&second, "three").await;
    first.close().await;
    second.close().await;
    let graph = ask(&server(Store::open(&file).unwrap()), "read_graph", json!({})).await;
    let names: Vec<&str> = graph["entities"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entity: &Value| entity["name"].as_str())
        .collect();
    assert_eq!(names, ["one", "of another process", "two", "three"]);
}
