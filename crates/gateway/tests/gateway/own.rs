//! Resources that each caller has of their own: everybody sees theirs, page by page, whatever stands in between.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::Gateway;
use tidegate_server::{
    Cx, PageRequest, Resource, ResourcePage, ResourceTemplate, Server, ServerDoor, ToolError, Vars,
};
use tidegate_service::{Notice, Outbox, Reply};

use crate::rig::{Caller, Served, door, gateway, in_time, keys, legacy, local, modern, person};

/// A server whose callers have as many notes as it is told, and that keeps book of what it is asked for.
fn notes(scheme: &'static str, count: usize, asked: &Arc<Mutex<Vec<String>>>) -> Server {
    let asked = asked.clone();
    Server::new(scheme, "1.0")
        .page_size(4)
        .resource(Resource::text(format!("{scheme}://shared"), "shared", "for everybody"))
        .resource_template(ResourceTemplate::new(format!("{scheme}://{{who}}/{{n}}"), "note").reader(
            |vars: Vars, cx: Cx| async move {
                let who = cx.principal().subject.clone().unwrap_or_else(|| "nobody".into());
                match vars.get("who") == Some(&*who) {
                    true => Ok(format!("note {}", vars.get("n").unwrap_or_default())),
                    false => Err(ToolError::from("not yours")),
                }
            },
        ))
        .resource_source(move |request: PageRequest, cx: Cx| {
            let who = cx.principal().subject.clone().unwrap_or_else(|| "nobody".into());
            asked.lock().unwrap().push(format!("{who} {:?} {}", request.after, request.limit));
            let after: usize = request.after.as_deref().unwrap_or("0").parse().unwrap();
            let last = count.min(after + request.limit);
            let note = |n| Resource::new(format!("{scheme}://{who}/{n}"), format!("{n}"));
            let page = ResourcePage::new((after + 1..=last).map(note));
            std::future::ready(Ok(if last < count { page.next(last.to_string()) } else { page }))
        })
}

fn built(scheme: &'static str, count: usize) -> ServerDoor {
    notes(scheme, count, &Arc::default()).build()
}

async fn pages(caller: &Caller, gateway: &Gateway) -> Vec<Vec<String>> {
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let page = caller.get(gateway, "resources/list", params).await;
        pages.push(keys(&page));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return pages,
        }
        assert!(pages.len() < 100, "without end");
    }
}

#[tokio::test]
async fn everybody_sees_their_own_page_by_page() {
    let asked = Arc::default();
    let plain = Server::new("plain", "1.0").resource(Resource::text("plain://x", "x", ""));
    let servers = [local("a", notes("a", 6, &asked)), local("plain", plain), door("b", built("b", 1))];
    let gateway = gateway(servers).await;
    assert_eq!(*asked.lock().unwrap(), [""; 0], "the gateway itself wants nobody's");
    for (caller, who) in [(person("ann"), "ann"), (person("bob"), "bob"), (legacy(), "nobody")] {
        let of = |scheme: &str, n: usize| format!("{scheme}://{who}/{n}");
        let shared = ["a://shared", "plain://x", "b://shared"].map(str::to_owned);
        let first = shared.into_iter().chain((1..=4).map(|n| of("a", n))).collect::<Vec<_>>();
        assert_eq!(
            pages(&caller, &gateway).await,
            [first, vec![of("a", 5), of("a", 6)], vec![of("b", 1)]],
            "{who}"
        );
        assert_eq!(*asked.lock().unwrap(), [format!("{who} None 4"), format!("{who} Some(\"4\") 4")]);
        asked.lock().unwrap().clear();
        let read = caller.get(&gateway, "resources/read", json!({"uri": of("a", 6)})).await;
        assert_eq!(read["contents"][0]["text"], "note 6");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_cursor_is_one_callers_and_outlives_changes_of_the_lists() {
    let a = built("a", 9);
    let gateway = gateway([door("a", a.clone())]).await;
    let (ann, bob) = (person("ann"), person("bob"));
    let first = ann.get(&gateway, "resources/list", json!({})).await;
    for n in 0..8 {
        a.handle().add_resource(Resource::text(format!("a://new{n}"), "new", "")).unwrap();
        crate::rig::until("the new one is listed", async || {
            let list = modern().list(&gateway, "resources/list").await;
            list.contains(&format!("a://new{n}"))
        })
        .await;
    }
    let cursor = json!({"cursor": first["nextCursor"]});
    let second = ann.get(&gateway, "resources/list", cursor.clone()).await;
    assert_eq!(keys(&second), ["a://ann/5", "a://ann/6", "a://ann/7", "a://ann/8"]);
    for (caller, cursor) in [(&bob, cursor), (&ann, json!({"cursor": "7"})), (&ann, json!({"cursor": 7}))] {
        let error = caller.fails(&gateway, "resources/list", cursor).await;
        assert!(error.message().contains("the cursor does not belong to this list"), "{}", error.message());
    }
    let templates = ann.fails(&gateway, "resources/templates/list", json!({"cursor": first["nextCursor"]}));
    assert!(templates.await.message().contains("cursor"));
    gateway.close().await;
}

#[tokio::test]
async fn gateways_behind_gateways_and_servers_elsewhere() {
    let served = Served::start(notes("a", 6, &Arc::default()), Eras::Both).await;
    let inner = gateway([served.named("a"), door("b", built("b", 1))]).await;
    let outer = gateway([door("inner", inner.clone())]).await;
    let listed = pages(&modern(), &outer).await.concat();
    let own = (1..=6).map(|n| format!("a://nobody/{n}")).chain(["b://nobody/1".to_owned()]);
    let all: Vec<_> = ["a://shared", "b://shared"].map(str::to_owned).into_iter().chain(own).collect();
    assert_eq!(listed, all);
    outer.close().await;
    inner.close().await;
}

#[tokio::test]
async fn two_servers_of_the_same_kind_are_told_apart() {
    let gateway = gateway([door("one", built("a", 1)), door("two", built("a", 2))]).await;
    let listed = pages(&person("ann"), &gateway).await.concat();
    assert_eq!(
        listed,
        ["one+a://shared", "two+a://shared", "one+a://ann/1", "two+a://ann/1", "two+a://ann/2"]
    );
    let read = person("ann").get(&gateway, "resources/read", json!({"uri": "two+a://ann/2"})).await;
    assert_eq!(read["contents"][0]["text"], "note 2");
    gateway.close().await;
}

#[tokio::test]
async fn one_that_fails_does_not_take_away_what_others_have() {
    let broken = Server::new("broken", "1.0")
        .resource(Resource::text("broken://shared", "shared", ""))
        .resource_source(|_: PageRequest, _: Cx| {
            std::future::ready(Err(ToolError::from("The disk is full")))
        });
    let gateway = gateway([local("broken", broken), door("b", built("b", 1))]).await;
    let listed = pages(&person("ann"), &gateway).await.concat();
    assert_eq!(listed, ["broken://shared", "b://shared", "b://ann/1"]);
    gateway.close().await;
}

async fn listen(caller: &Caller, gateway: &Gateway, wanted: Value) -> Outbox {
    match caller.ask(gateway, "subscriptions/listen", json!({"notifications": wanted})).await {
        Reply::Subscription(subscription) => subscription.events,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_whose_resources_come_and_go_hear_of_it() {
    let a = built("a", 1);
    let gateway = gateway([door("a", a.clone())]).await;
    let (ann, bob) = (person("ann"), person("bob"));
    let wanted = json!({"resourcesListChanged": true, "resourceSubscriptions": ["a://ann/1"]});
    let of_ann = listen(&ann, &gateway, wanted.clone()).await;
    let of_bob = listen(&bob, &gateway, wanted.clone()).await;
    let nobody = listen(&modern(), &gateway, wanted).await;
    a.handle().resources_changed_for(&ann.0.principal);
    assert_eq!(in_time("news", of_ann.next()).await, Some(Notice::ResourcesChanged));
    a.handle().resource_updated_for(&ann.0.principal, "a://ann/1");
    assert_eq!(in_time("news", of_ann.next()).await, Some(Notice::ResourceUpdated("a://ann/1".into())));
    // Nor does the gateway, who asks as nobody, tell others what nobody's are.
    a.handle().resources_changed_for(&modern().0.principal);
    assert_eq!(in_time("news", nobody.next()).await, Some(Notice::ResourcesChanged));
    // What everybody has is told to everybody.
    a.handle().add_resource(Resource::text("a://new", "new", "")).unwrap();
    assert_eq!(in_time("news", of_bob.next()).await, Some(Notice::ResourcesChanged));
    gateway.close().await;
}
