//! A caller who makes up tenants without end.

use serde_json::{Value, json};

use crate::rig::Gateway;

/// How many tenants there may be, besides the usual one.
const MOST: usize = 150;
/// How many are tried.
const TRIED: usize = 400;

fn entities(name: &str, tenant: Option<&str>) -> Value {
    let mut arguments = json!({"entities": [{"name": name, "entityType": "t", "observations": ["said"]}]});
    if let Some(tenant) = tenant {
        arguments["tenant_id"] = tenant.into();
    }
    arguments
}

fn is_fine(answer: &Value) -> bool {
    answer["result"].is_object() && answer["result"]["isError"] != true
}

#[test]
fn tenants_are_bounded_in_number() {
    let config = "[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n[memory]\nmax_tenants = 150\n";
    let mut gateway = Gateway::start(config);
    // Whoever only looks is kept nowhere.
    for n in 0..TRIED {
        let found = gateway.call("search_nodes", json!({"query": "said", "tenant_id": format!("looks {n}")}));
        assert!(is_fine(&found), "{found}");
    }
    let mut refused = 0;
    for n in 0..TRIED {
        let kept = gateway.call("create_entities", entities("Ann", Some(&format!("tenant {n}"))));
        match is_fine(&kept) {
            true => assert!(n < MOST, "{n}: {kept}"),
            false => {
                refused += 1;
                assert!(kept.to_string().contains("max_tenants"), "{kept}");
            }
        }
    }
    assert_eq!(refused, TRIED - MOST);
    // Those who were there, and whoever is not told apart, go on.
    for tenant in [Some("tenant 0"), Some("tenant 149"), None] {
        let kept = gateway.call("create_entities", entities("Ben", tenant));
        assert!(is_fine(&kept), "{tenant:?}: {kept}");
    }
    gateway.answers_others();
    assert!(gateway.peak() < 250, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
    let file = gateway.folder.path().join(".local/share/tidegate/memory.db");
    let megabytes = file.metadata().unwrap().len() / 1024 / 1024;
    assert!(megabytes < 40, "{megabytes} MB for {MOST} tenants");
}
