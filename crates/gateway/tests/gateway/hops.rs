//! Gateways behind gateways, and loops of them.

use serde_json::json;
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, ServerSettings};
use tidegate_protocol::Symbol;
use tidegate_server::Server;
use tidegate_service::{Call, HOP_LIMIT, Reply};

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
async fn a_gateway_that_is_mounted_in_itself_ends_its_calls() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let gateway = gateway([]).await;
        let (address, _serving) = serve(gateway.clone(), eras, ([127, 0, 0, 1], 0).into()).await;
        gateway.reload(settings([at("self", address)])).unwrap();
        gateway.settled(PATIENCE).await;
        for caller in [modern(), legacy()] {
            let reply = caller.ask(&gateway, "vendor/loop", json!({})).await;
            let Reply::Error(error) = reply else { panic!("{reply:?}") };
            assert!(error.message().contains("connected in a loop"), "{error}");
        }
        gateway.close().await;
    }
}
