//! Gateways behind gateways, and loops of them.

use serde_json::json;
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, Health, ServerSettings};
use tidegate_protocol::{Json, Limits, Method, Symbol};
use tidegate_server::Server;
use tidegate_service::{Call, Door, HOP_LIMIT, Reply};

use crate::rig::*;

/// A server that says through how many gateways it was reached.
fn counting() -> ServerSettings {
    scripted("s", |call: &Call| match call.method.as_str() {
        "vendor/hops" => Some(json!({"hops": call.context.hops}).to_string()),
        "tools/list" => Some(r#"{"tools":[]}"#.to_owned()),
        "prompts/list" => Some(r#"{"prompts":[]}"#.to_owned()),
        "resources/list" => Some(r#"{"resources":[]}"#.to_owned()),
        _ => None,
    })
}

fn unprefixed(mut server: ServerSettings) -> ServerSettings {
    server.prefix = String::new();
    server.seal()
}

#[tokio::test]
async fn a_call_goes_through_so_many_gateways_and_no_more() {
    let server = Server::new("s", "1.0").tool(says("t", "found"));
    let mut all: Vec<Gateway> = vec![gateway([unprefixed(local("s", server))]).await];
    for _ in 1..HOP_LIMIT {
        let behind = all[all.len() - 1].clone();
        all.push(gateway([unprefixed(door("g", behind))]).await);
    }
    let last = &all[all.len() - 1];
    assert_eq!(modern().call(last, "t").await, ("found".to_owned(), false));
    let beyond = gateway([unprefixed(door("g", last.clone()))]).await;
    let error = modern().fails(&beyond, "tools/call", json!({"name": "t"})).await;
    assert_eq!(error.symbol(), Symbol::LoopDetected);
    all.push(beyond);
    for gateway in all {
        gateway.close().await;
    }
}

#[tokio::test]
async fn gateways_are_counted_over_the_wire_too() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let first = gateway([counting()]).await;
        let one = serve(first.clone(), eras, ([127, 0, 0, 1], 0).into()).await;
        let second = gateway([at("g", one.0)]).await;
        let two = serve(second.clone(), eras, ([127, 0, 0, 1], 0).into()).await;
        let third = gateway([at("g", two.0)]).await;
        for caller in [modern(), legacy()] {
            let result = caller.get(&third, "vendor/hops", json!({})).await;
            assert_eq!(result["hops"], 3, "{eras:?}");
        }
        for gateway in [third, second, first] {
            gateway.close().await;
        }
    }
}

#[tokio::test]
async fn a_gateway_that_is_mounted_in_itself_says_so_and_lists_nothing_twice() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let gateway = gateway([]).await;
        let (address, _serving) = serve(gateway.clone(), eras, ([127, 0, 0, 1], 0).into()).await;
        let other = local("good", Server::new("good", "1.0").tool(says("t", "found")));
        gateway.reload(settings([at("self", address), other])).await.unwrap();
        gateway.settled(PATIENCE).await;
        until("that it is noticed", async || matches!(health(&gateway, "self"), Health::Down { .. })).await;
        for caller in [modern(), legacy()] {
            assert_eq!(caller.list(&gateway, "tools/list").await, ["good_t"]);
            assert_eq!(caller.call(&gateway, "good_t").await.0, "found");
            let asked = json!({"_meta": {"dev.tidegate/server": "self"}});
            let error = caller.fails(&gateway, "vendor/loop", asked).await;
            assert!(error.message().contains("is down"), "{error}");
        }
        let Health::Down { why, .. } = health(&gateway, "self") else { panic!("{:?}", gateway.status()) };
        assert!(why.contains("connected in a loop"), "{why}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_loop_over_another_gateway_is_noticed_too() {
    let (one, two) = (gateway([]).await, gateway([]).await);
    let first = serve(one.clone(), Eras::Both, ([127, 0, 0, 1], 0).into()).await;
    let second = serve(two.clone(), Eras::Both, ([127, 0, 0, 1], 0).into()).await;
    let good = local("good", Server::new("good", "1.0").tool(says("t", "found")));
    one.reload(settings([at("two", second.0), good])).await.unwrap();
    one.settled(PATIENCE).await;
    two.reload(settings([at("one", first.0)])).await.unwrap();
    until("that it is noticed", async || matches!(health(&two, "one"), Health::Down { .. })).await;
    assert_eq!(modern().list(&one, "tools/list").await, ["good_t"]);
    assert_eq!(modern().list(&two, "tools/list").await, [""; 0]);
    two.close().await;
    one.close().await;
}

#[tokio::test]
async fn a_loop_that_nobody_notices_ends_its_calls() {
    // A proxy in between that says nothing of where it leads.
    let gateway = gateway([]).await;
    let behind = gateway.clone();
    let hiding = tower::service_fn(move |call: Call| {
        let behind = behind.clone();
        async move {
            match call.method {
                Method::Discover => {
                    Ok(Reply::Complete(Json::parse(discovery(json!({})), &Limits::default()).unwrap()))
                }
                _ => behind.answer(call).await,
            }
        }
    });
    gateway.reload(settings([door("self", hiding)])).await.unwrap();
    gateway.settled(PATIENCE).await;
    for caller in [modern(), legacy()] {
        let error = caller.fails(&gateway, "vendor/loop", json!({})).await;
        assert_eq!(error.symbol(), Symbol::LoopDetected);
    }
    gateway.close().await;
}
