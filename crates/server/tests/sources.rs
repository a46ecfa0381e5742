//! Resources that are looked up when they are listed.

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use common::{Client, drain, error_code};
use serde_json::{Value, json};
use tidegate_server::{
    Cx, PageRequest, Principal, Resource, ResourcePage, Server, ServerDoor, ToolError, Watched,
};
use tidegate_service::Notice;

/// Numbers that are there, and what was asked for: by whom, after what, how many.
#[derive(Default)]
struct Shop {
    there: Mutex<BTreeSet<u64>>,
    asked: Mutex<Vec<(Option<String>, usize)>>,
}

impl Shop {
    fn of(there: impl IntoIterator<Item = u64>) -> Arc<Shop> {
        Arc::new(Shop { there: Mutex::new(there.into_iter().collect()), asked: Mutex::default() })
    }

    fn page(&self, prefix: &str, request: &PageRequest, cx: &Cx) -> Result<ResourcePage, ToolError> {
        self.asked.lock().unwrap().push((request.after.clone(), request.limit));
        if cx.principal().subject.as_deref() == Some("broken") {
            return Err(ToolError::from("The shop is closed"));
        }
        let after: u64 = request.after.as_deref().unwrap_or("0").parse().unwrap();
        let there = self.there.lock().unwrap();
        let found: Vec<u64> = there.range(after + 1..).take(request.limit + 1).copied().collect();
        let shown = &found[..found.len().min(request.limit)];
        let page =
            ResourcePage::new(shown.iter().map(|n| {
                Resource::new(format!("{prefix}:{n}"), format!("{prefix}{n}")).title("One").size(*n)
            }));
        Ok(if found.len() > shown.len() { page.next(shown[shown.len() - 1].to_string()) } else { page })
    }
}

fn door(page_size: usize, fixed: usize, shops: &[(&'static str, Arc<Shop>)]) -> ServerDoor {
    let mut server = Server::new("s", "1").page_size(page_size);
    for n in 0..fixed {
        server = server.resource(Resource::text(format!("fixed:{n}"), format!("fixed{n}"), ""));
    }
    for (prefix, shop) in shops {
        let (prefix, shop) = (*prefix, shop.clone());
        server = server.resource_source(move |request: PageRequest, cx: Cx| {
            std::future::ready(shop.page(prefix, &request, &cx))
        });
    }
    server.build()
}

fn names(page: &Value) -> Vec<String> {
    let entries = page["resources"].as_array().unwrap_or_else(|| panic!("{page}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

async fn pages(client: &Client, mut params: Value) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = client.request("resources/list", params.clone()).await;
        pages.push(names(&page));
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => return pages,
        }
        assert!(pages.len() < 100, "without end");
    }
}

#[tokio::test]
async fn sources_follow_what_is_fixed_in_pages_of_one_size() {
    let (a, b) = (Shop::of([1, 2, 3, 5]), Shop::of([7, 8]));
    let door = door(3, 2, &[("a", a.clone()), ("b", b)]);
    for client in [Client::modern(&door), Client::legacy(&door)] {
        assert_eq!(
            pages(&client, json!({})).await,
            [vec!["fixed0", "fixed1", "a1"], vec!["a2", "a3", "a5"], vec!["b7", "b8"]]
        );
    }
    let asked = a.asked.lock().unwrap()[..2].to_vec();
    assert_eq!(asked, [(None, 1), (Some("1".to_owned()), 3)], "no more than there is room for");
    let first = Client::legacy(&door).request("resources/list", json!({})).await;
    assert_eq!(first["resources"][2], json!({"uri": "a:1", "name": "a1", "title": "One", "size": 1}));
}

#[tokio::test]
async fn full_and_empty_pages() {
    // The fixed ones fill pages of their own, the source begins on the next.
    let door = door(2, 4, &[("a", Shop::of([])), ("b", Shop::of([1]))]);
    let client = Client::modern(&door);
    assert_eq!(
        pages(&client, json!({})).await,
        [vec!["fixed0", "fixed1"], vec!["fixed2", "fixed3"], vec!["b1"]]
    );
    let only = self::door(5, 0, &[("a", Shop::of([]))]);
    assert_eq!(pages(&Client::modern(&only), json!({})).await, [[""; 0]], "there is such a method");
}

#[tokio::test]
async fn a_cursor_stays_good_when_things_come_and_go() {
    let shop = Shop::of([10, 20, 30, 40, 50]);
    let door = door(2, 0, &[("a", shop.clone())]);
    let client = Client::modern(&door);
    let first = client.request("resources/list", json!({})).await;
    assert_eq!(names(&first), ["a10", "a20"]);
    {
        let mut there = shop.there.lock().unwrap();
        there.extend([5, 35]);
        there.remove(&20);
        there.remove(&30);
    }
    let second = client.request("resources/list", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(names(&second), ["a35", "a40"]);
}

#[tokio::test]
async fn cursors_into_sources_are_sealed_for_their_caller() {
    let door = door(1, 0, &[("a", Shop::of([1, 2]))]);
    let ann = Client::modern(&door).named("ann");
    let cursor = ann.request("resources/list", json!({})).await["nextCursor"].clone();
    assert!(!cursor.as_str().unwrap().contains('1'.to_string().repeat(3).as_str()));
    let bob = Client::modern(&door).named("bob");
    for (client, cursor) in
        [(&bob, cursor.clone()), (&ann, json!("a:1")), (&ann, json!(7)), (&ann, Value::Null)]
    {
        let result = client.request("resources/list", json!({"cursor": cursor})).await;
        assert_eq!(error_code(&result), Some(-32602), "{result}");
        assert!(
            result["error"]["message"].as_str().unwrap().contains("the cursor does not belong to this list")
        );
    }
    // What is not the caller's own is asked for without a cursor into what is.
    let fixed = json!({"cursor": cursor, "_meta": {"dev.tidegate/own-resources": false}});
    assert_eq!(error_code(&ann.request("resources/list", fixed).await), Some(-32602));
}

#[tokio::test]
async fn a_source_that_fails_says_why() {
    let door = door(5, 1, &[("a", Shop::of([1]))]);
    let result = Client::modern(&door).named("broken").request("resources/list", json!({})).await;
    assert!(result["error"]["message"].as_str().unwrap().contains("The shop is closed"), "{result}");
}

#[tokio::test]
async fn both_parts_can_be_had_alone() {
    let door = door(3, 2, &[("a", Shop::of(1..=5))]);
    let client = Client::modern(&door);
    let only = |own: bool| json!({"_meta": {"dev.tidegate/own-resources": own}});
    assert_eq!(pages(&client, only(false)).await, [["fixed0", "fixed1"]]);
    assert_eq!(pages(&client, only(true)).await, [vec!["a1", "a2", "a3"], vec!["a4", "a5"]]);
    let said = client.request("server/discover", json!({})).await;
    assert_eq!(said["capabilities"]["experimental"], json!({"dev.tidegate/own-resources": {}}));
}

#[tokio::test]
async fn what_is_a_callers_own_is_never_for_everybody() {
    use tidegate_server::{CacheHint, Scope};
    let hint = CacheHint { ttl: std::time::Duration::from_secs(9), scope: Scope::Public };
    let page = |_: PageRequest, _: Cx| std::future::ready(Ok(ResourcePage::default()));
    let door = Server::new("s", "1").cache(hint).resource_source(page).build();
    let client = Client::modern(&door);
    let list = client.request("resources/list", json!({})).await;
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(9000), &json!("private")));
    let fixed = json!({"_meta": {"dev.tidegate/own-resources": false}});
    assert_eq!(client.request("resources/list", fixed).await["cacheScope"], "public");
}

#[tokio::test]
async fn who_watches_what() {
    let door = door(3, 1, &[("a", Shop::of([]))]);
    let of = |tenant: &str, subject: &str| Principal {
        tenant: Some(tenant.into()),
        subject: Some(subject.into()),
        issuer: None,
    };
    let listen = async |principal: Principal, wanted: Value| {
        let mut client = Client::modern(&door);
        client.context().principal = principal;
        client.listen(wanted).await
    };
    let ann = listen(of("acme", "ann"), json!({"resourceSubscriptions": ["a:2", "a:1"]})).await;
    let bob =
        listen(of("acme", "bob"), json!({"resourceSubscriptions": ["a:2"], "resourcesListChanged": true}))
            .await;
    let eve =
        listen(of("other", "eve"), json!({"resourceSubscriptions": ["a:9"], "resourcesListChanged": true}))
            .await;
    let handle = door.handle();
    let watched = handle.watched_by(&of("acme", "anybody"));
    assert_eq!(watched, Watched { uris: vec!["a:1".into(), "a:2".into()], list: true });
    handle.resources_changed_for(&of("acme", "anybody"));
    assert_eq!(drain(&bob.events), [Notice::ResourcesChanged]);
    assert!(drain(&ann.events).is_empty() && drain(&eve.events).is_empty());
    drop(bob);
    assert!(!handle.watched_by(&of("acme", "ann")).list);
    let weak = handle.downgrade();
    drop((ann, eve));
    assert!(weak.upgrade().is_some_and(|server| server.subscriptions() == 0));
    drop((handle, door));
    assert!(weak.upgrade().is_none(), "it does not keep the server");
}
