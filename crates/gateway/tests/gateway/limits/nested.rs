//! Calls that are made of others: of a batch, through `call_tool`, and of servers in this program.

use super::*;

#[tokio::test]
async fn what_is_inside_counts_once_and_what_is_around_it_not_at_all() {
    for mode in ["all", "search"] {
        let meter = Meter::free();
        let gateway = meter
            .gateway(&format!("[tools]\nmode = \"{mode}\"\n[limits]\ntenant = {{ rate = \"4/h\" }}"))
            .await;
        let caller = who("reef/ann");
        if mode == "search" {
            for _ in 0..2 {
                let inner = json!({"name": "s_work", "arguments": {}});
                let result = call(&caller, &gateway, "call_tool", inner).await;
                assert_eq!(refusal(&result), Value::Null, "{result}");
            }
        } else {
            assert!(passes(&caller, &gateway, "s_work").await && passes(&caller, &gateway, "s_work").await);
        }
        assert_eq!(meter.count(), 2);
        let calls: Vec<_> = (0..5).map(|_| json!({"name": "s_work", "arguments": {}})).collect();
        let results = caller.get(&gateway, "tools/call_batch", json!({"calls": calls})).await;
        let results = results["results"].as_array().unwrap().clone();
        let whys = results.iter().filter(|result| result.to_string().contains("RATE_LIMIT_ERROR"));
        assert_eq!((results.len(), whys.count(), meter.count()), (5, 3, 4), "{mode}: {results:?}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn finding_tools_counts_however_it_is_asked_for() {
    let gateway =
        Meter::free().gateway("[tools]\nmode = \"search\"\n[limits]\ntenant = { rate = \"2/h\" }").await;
    let caller = who("reef/ann");
    let asked = json!({"query": "work"});
    let through = json!({"name": "search_tools", "arguments": asked});
    for (tool, arguments, passes) in [
        ("search_tools", &asked, true),
        ("call_tool", &through, true),
        ("search_tools", &asked, false),
        ("call_tool", &through, false),
    ] {
        let result = call(&caller, &gateway, tool, arguments.clone()).await;
        assert_eq!(refusal(&result) == Value::Null, passes, "{tool}: {result}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_batch_takes_its_places_one_after_the_other() {
    let meter = Meter::free();
    let gateway = meter.gateway("[limits]\ntenant = { concurrent = 1 }\nuser = { concurrent = 1 }").await;
    let calls: Vec<_> = (0..20).map(|_| json!({"name": "s_work", "arguments": {}})).collect();
    let results = who("reef/ann").get(&gateway, "tools/call_batch", json!({"calls": calls})).await;
    assert!(!results.to_string().contains("isError\":true"), "{results}");
    assert_eq!((meter.count(), meter.most()), (20, 1));
    until_idle(&gateway).await;
    gateway.close().await;
}

/// Everything is limited to one at once, and still nobody waits for themselves.
#[tokio::test]
async fn a_call_of_a_call_waits_for_nothing_that_the_other_has() {
    let every = ["tenant", "user", "endpoint", "server"]
        .map(|scope| format!("{scope} = {{ concurrent = 1, queue = 10 }}"));
    let meter = Meter::free();
    let gateway = meter.gateway(&format!("[limits]\n{}", every.join("\n"))).await;
    let agents = all_at_once(&gateway, vec![who("reef/ann"); 8], "s_agent").await;
    for result in agents {
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] != true && !said.contains("isError"), "{result}");
    }
    assert_eq!((meter.count(), meter.most()), (8, 1));
    until_idle(&gateway).await;
    gateway.close().await;
}

#[tokio::test]
async fn a_call_of_a_call_counts_for_rates() {
    let meter = Meter::free();
    let gateway = meter.gateway("[limits]\ntenant = { rate = \"3/h\" }").await;
    let caller = who("reef/ann");
    for (inner, outer) in [(true, true), (false, true), (false, false)] {
        let result = call(&caller, &gateway, "s_agent", json!({})).await;
        assert_eq!(refusal(&result) == Value::Null, outer, "{result}");
        let said = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(!said.contains("RATE_LIMIT_ERROR") && outer, inner, "{result}");
    }
    assert_eq!(meter.count(), 1);
    gateway.close().await;
}
