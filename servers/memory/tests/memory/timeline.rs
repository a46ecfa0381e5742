//! When the memory changed.

use serde_json::{Value, json};
use tidegate_protocol::Method;
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, call_as, request};

async fn timeline(memory: &ServerDoor, tenant: Option<&str>) -> Value {
    let read = json!({"uri": "memory://timeline"});
    let read = request(memory, tenant, Method::ResourcesRead, read).await.unwrap();
    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_moment_is_told_and_shows_the_graph_as_it_was() {
    let folder = Folder::new();
    let memory = folder.server();
    assert_eq!(timeline(&memory, None).await, json!({"changes": 0, "moments": []}));
    for n in 0..3 {
        let entity = json!({"name": format!("Thing {n}"), "entityType": "thing", "observations": []});
        ask(&memory, "create_entities", json!({"entities": [entity]})).await;
        // Changes of the same millisecond are one moment.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let told = timeline(&memory, None).await;
    assert_eq!(told["changes"], 3);
    let moments = told["moments"].as_array().unwrap();
    assert_eq!((moments.len(), &told["first"], &told["last"]), (3, &moments[0]["at"], &moments[2]["at"]));
    for (n, moment) in moments.iter().enumerate() {
        let then = ask(&memory, "get_graph_at_time", json!({"timestamp": moment["at"]})).await;
        assert_eq!(then["graph"]["entities"].as_array().unwrap().len(), n + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_changes_there_are_the_moments_stay_few_and_one_s_own() {
    let folder = Folder::new();
    let memory = folder.server();
    call_as(&memory, Some("other"), "create_entities", json!({"entities": [ann()]})).await;
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    for n in 0..600 {
        let said = json!({"entityName": "Ann", "contents": [format!("fact {n}")]});
        ask(&memory, "add_observations", said).await;
    }
    let told = timeline(&memory, None).await;
    assert_eq!(told["changes"], 601);
    let moments = told["moments"].as_array().unwrap();
    assert!((2..=240).contains(&moments.len()), "{}", moments.len());
    let sum: i64 = moments.iter().map(|moment| moment["changes"].as_i64().unwrap()).sum();
    assert_eq!(sum, 601);
    assert!(moments.is_sorted_by_key(|moment| moment["at"].as_i64()));
    assert_eq!(told["last"], moments[moments.len() - 1]["at"]);
    assert_eq!(timeline(&memory, Some("other")).await["changes"], 1);
}
