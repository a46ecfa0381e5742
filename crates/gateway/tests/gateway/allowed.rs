//! What a server may do in the name of its caller, without coming back to the gateway for it.

use serde_json::{Value, json};
use tidegate_config::Patterns;
use tidegate_gateway::Gateway;
use tidegate_protocol::{Error, Limits, Method, Params, Symbol};
use tidegate_server::{Resource, Server};
use tidegate_service::Call;

use crate::rig::{Caller, PATIENCE, endpoint, local, person, says, settings};

fn allows(
    gateway: &Gateway,
    server: &str,
    caller: &Caller,
    method: Method,
    params: Value,
) -> Result<(), Symbol> {
    let params = Params::parse(&params.into(), &Limits::default()).unwrap();
    let call = Call::new(method, params, caller.0.clone());
    gateway.allows(server, &call).map_err(|error| error.symbol())
}

#[tokio::test]
async fn no_more_than_its_caller_could_do_through_the_gateway() {
    let server = Server::new("s", "1")
        .tool(says("read", "r"))
        .tool(says("write", "w"))
        .tool(says("wipe", "x"))
        .resource(Resource::text("mem:a", "a", "a"))
        .resource(Resource::text("mem:b", "b", "b"));
    let mut served = local("s", server);
    served.deny = Patterns::new(["wipe"]).unwrap();
    let mut settings = settings([served.seal()]);
    let mut narrow = endpoint("narrow");
    narrow.tools = Some(Patterns::new(["s_read"]).unwrap());
    narrow.resources = Some(Patterns::new(["mem:a"]).unwrap());
    settings.endpoints = vec![narrow];
    let refused = || Error::new(Symbol::InsufficientScope, "a scope is missing");
    let needs_scope = move |call: &Call| match call.params.str("name").as_deref() {
        Some("s_write") if call.context.principal.subject.as_deref() == Some("bob") => Err(refused()),
        _ => Ok(()),
    };
    let gateway = Gateway::builder().settings(settings).check(needs_scope).start().unwrap();
    gateway.settled(PATIENCE).await;
    let (ann, bob) = (person("ann"), person("bob"));
    for (caller, tool, expected) in [
        (&ann, "read", Ok(())),
        (&ann, "write", Ok(())),
        (&ann, "wipe", Err(Symbol::ToolNotFound)),
        (&bob, "write", Err(Symbol::InsufficientScope)),
        (&bob, "read", Ok(())),
        (&ann.at("narrow"), "read", Ok(())),
        (&ann.at("narrow"), "write", Err(Symbol::ToolNotFound)),
        (&ann.at("nowhere"), "read", Err(Symbol::ToolNotFound)),
    ] {
        let seen = allows(&gateway, "s", caller, Method::ToolsCall, json!({"name": tool}));
        assert_eq!(seen, expected, "{tool}");
    }
    for (caller, uri, expected) in [
        (&ann, "mem:b", Ok(())),
        (&ann.at("narrow"), "mem:a", Ok(())),
        (&ann.at("narrow"), "mem:b", Err(Symbol::ResourceNotFound)),
    ] {
        let seen = allows(&gateway, "s", caller, Method::ResourcesRead, json!({"uri": uri}));
        assert_eq!(seen, expected, "{uri}");
    }
    let elsewhere = allows(&gateway, "other", &ann, Method::ToolsCall, json!({"name": "read"}));
    assert_eq!(elsewhere, Err(Symbol::MethodNotFound));
    gateway.close().await;
}
