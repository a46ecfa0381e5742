//! Pages and cursors.

mod common;

use common::{Client, error_code};
use serde_json::{Value, json};
use tidegate_protocol::seal::Key;
use tidegate_server::{Cx, Prompt, PromptArgs, Resource, ResourceTemplate, Server, ServerDoor, Tool, Vars};

fn door(page_size: usize) -> ServerDoor {
    let mut server = Server::new("s", "1").page_size(page_size);
    for i in 0..5 {
        server = server
            .tool(Tool::new(format!("t{i}")).handler(|(), _cx: Cx| async {}))
            .prompt(Prompt::new(format!("p{i}")).handler(|_: PromptArgs, _cx: Cx| async { Ok("") }))
            .resource(Resource::text(format!("r:{i}"), format!("r{i}"), ""))
            .resource_template(
                ResourceTemplate::new(format!("x{i}:{{a}}"), format!("x{i}"))
                    .reader(|_: Vars, _cx: Cx| async { Ok("") }),
            );
    }
    server.build()
}

/// The names of all pages.
async fn pages(client: &Client, method: &str, member: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let result = client.request(method, params.clone()).await;
        let names = result[member].as_array().unwrap_or_else(|| panic!("{result}"));
        pages.push(names.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect());
        match result.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn every_list_comes_in_pages_and_in_order() {
    let (paged, whole) = (door(2), door(1000));
    for (method, member, prefix) in [
        ("tools/list", "tools", "t"),
        ("prompts/list", "prompts", "p"),
        ("resources/list", "resources", "r"),
        ("resources/templates/list", "resourceTemplates", "x"),
    ] {
        let names: Vec<String> = (0..5).map(|i| format!("{prefix}{i}")).collect();
        for client in [Client::modern(&paged), Client::legacy(&paged)] {
            let pages = pages(&client, method, member).await;
            assert_eq!(pages, names.chunks(2).collect::<Vec<_>>(), "{method}");
        }
        assert_eq!(pages(&Client::modern(&whole), method, member).await, [names], "{method}");
    }
}

#[tokio::test]
async fn cursors_are_good_for_their_list_and_caller_only() {
    let door = door(2);
    let ann = Client::modern(&door).named("ann");
    let cursor = ann.request("tools/list", json!({})).await["nextCursor"].clone();
    assert!(ann.request("tools/list", json!({"cursor": cursor})).await.get("tools").is_some());
    let bob = Client::modern(&door).named("bob");
    let mut tampered = cursor.as_str().unwrap().to_owned();
    tampered.replace_range(30..31, if &tampered[30..31] == "A" { "B" } else { "A" });
    for (client, method, cursor) in [
        (&ann, "prompts/list", cursor.clone()),
        (&bob, "tools/list", cursor.clone()),
        (&ann, "tools/list", json!("nonsense")),
        (&ann, "tools/list", json!("")),
        (&ann, "tools/list", json!(7)),
        (&ann, "tools/list", Value::Null),
        (&ann, "tools/list", json!(tampered)),
    ] {
        let result = client.request(method, json!({"cursor": cursor})).await;
        assert_eq!(error_code(&result), Some(-32602), "{method} {cursor}: {result}");
        assert!(result["error"]["message"].as_str().unwrap().contains("cursor"), "{result}");
    }
}

#[tokio::test]
async fn a_cursor_survives_changes_without_skipping_or_repeating() {
    let door = door(2);
    let (client, handle) = (Client::modern(&door), door.handle());
    let first = client.request("tools/list", json!({})).await;
    assert!(handle.remove_tool("t0") && handle.remove_tool("t1") && handle.remove_tool("t2"));
    handle.add_tool(Tool::new("new").handler(|(), _cx: Cx| async {})).unwrap();
    let second = client.request("tools/list", json!({"cursor": first["nextCursor"]})).await;
    let names: Vec<_> =
        second["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["t3", "t4"]);
    let third = client.request("tools/list", json!({"cursor": second["nextCursor"]})).await;
    assert_eq!(third["tools"][0]["name"], "new");
}

#[tokio::test]
async fn a_cursor_of_another_process_goes_on_after_the_same_entry() {
    let server = |tools: &[&str]| {
        let server = Server::new("s", "1").page_size(2).request_state_key(Key::derive("shared"));
        let tool = |name: &&str| Tool::new(*name).handler(|(), _cx: Cx| async {});
        tools.iter().map(tool).fold(server, Server::tool).build()
    };
    let cursor = |page: &Value| json!({"cursor": page["nextCursor"]});
    let first = Client::modern(&server(&["a", "b", "c", "d"])).request("tools/list", json!({})).await;
    // The numbers of entries are other ones there; the last one that was listed is the same.
    let other = server(&["new", "a", "more", "b", "c", "d"]);
    let second = Client::modern(&other).request("tools/list", cursor(&first)).await;
    let names: Vec<_> = second["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["c", "d"]);
    let without = Client::modern(&server(&["a", "c", "d"])).request("tools/list", cursor(&first)).await;
    assert_eq!(error_code(&without), Some(-32602), "nobody knows where to go on: {without}");
}
