//! Tenants: who calls says which, and no name leads into another one.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::issuer::fresh;
use crate::rig::{ANN, BOB, CID, Caller, Gateway};

fn remember(caller: &Caller, name: &str) -> bool {
    let entity = json!({"name": name, "entityType": "pearl", "observations": ["kept"]});
    caller.call("create_entities", json!({"entities": [entity]})).is_fine()
}

fn knows(caller: &Caller, name: &str) -> bool {
    caller.call("read_graph", json!({})).body.contains(name)
        || caller.call("open_nodes", json!({"names": [name]})).body.contains("kept")
        || caller.modern("resources/read", json!({"uri": "memory://knowledge-graph"})).body.contains(name)
}

/// Names that are somebody else's for those who read them carelessly.
fn tricky() -> Vec<String> {
    let fixed = [
        "Tide",
        "TIDE",
        " tide",
        "tide ",
        "tide\u{0}",
        "tide\n",
        "tide\t",
        "./tide",
        "../tide",
        "reef/../tide",
        "tide/",
        "/tide",
        "tide\\",
        "tide%00",
        "t%69de",
        "ti\u{200b}de",
        "\u{202e}edit",
        "tide;reef",
        "tide,reef",
        "*",
        "%",
        "_",
        "tid_",
        "tide' OR '1'='1",
        "tide\"; DROP TABLE entities; --",
        "${TIDE}",
        "{{tide}}",
        "null",
        "undefined",
        "true",
        "0",
        "default",
        "Default",
        "system",
        ".",
        "..",
        "-",
        "\u{feff}tide",
        "ｔｉｄｅ",
        "tídé",
        "ti\u{301}de",
    ];
    let mut all: Vec<String> = fixed.iter().map(|name| (*name).to_owned()).collect();
    all.push("t".repeat(100_000));
    all
}

#[test]
fn a_tricky_name_is_a_name_or_is_refused() {
    let gateway = Gateway::start("");
    let (ann, cid) = (gateway.as_user(ANN), gateway.as_user(CID));
    let (anns, cids) = (fresh(), fresh());
    assert!(remember(&ann, &anns) && remember(&cid, &cids));
    for name in tricky() {
        let shown: String = name.chars().take(40).collect();
        let caller =
            gateway.with_token(&gateway.token("", CID, |claims| claims["org"] = name.clone().into()));
        let own = fresh();
        let kept = remember(&caller, &own);
        for (whose, of) in [("Ann's", &anns), ("Cid's", &cids)] {
            assert!(!knows(&caller, of), "{shown:?} sees what is {whose}");
        }
        for (who, other) in [("Ann", &ann), ("Cid", &cid)] {
            assert!(!knows(other, &own), "{who} sees what is {shown:?}'s");
        }
        // Whoever is let in at all has a memory.
        let is_let_in = caller.modern("tools/list", json!({})).status == 200;
        assert_eq!(kept, is_let_in, "{shown:?}");
    }
    let files: Vec<_> =
        std::fs::read_dir(gateway.folder.path()).unwrap().flatten().map(|f| f.file_name()).collect();
    for file in &files {
        let name = file.to_string_lossy();
        let known = [
            "out",
            "err",
            "state",
            "tidegate.toml",
            "keys.toml",
            "reef.json",
            "other.json",
            ".local",
            ".cache",
            ".config",
        ];
        assert!(known.contains(&&*name) || name.starts_with("keys"), "no name became a file: {files:?}");
    }
}

/// A way to name a tenant.
type Way = (&'static str, fn(&Caller, &str) -> Answer);

const WAYS: &[Way] = &[
    ("an argument", |who, tenant| who.call("read_graph", json!({"tenant_id": tenant}))),
    ("an argument that writes", |who, tenant| {
        let entities = json!([{"name": "x", "entityType": "t", "observations": []}]);
        who.call("create_entities", json!({"entities": entities, "tenant_id": tenant}))
    }),
    ("_meta", |who, tenant| {
        let meta = json!({"tenant_id": tenant});
        who.modern("tools/call", json!({"name": "read_graph", "arguments": {}, "_meta": meta}))
    }),
    ("_meta, by its long name", |who, tenant| {
        let meta = json!({"dev.tidegate/tenant": tenant});
        who.modern("tools/call", json!({"name": "read_graph", "arguments": {}, "_meta": meta}))
    }),
    ("the address of a resource", |who, tenant| {
        who.modern("resources/read", json!({"uri": format!("memory://knowledge-graph?tenant_id={tenant}")}))
    }),
    ("the address of an agent", |who, tenant| {
        who.modern("resources/read", json!({"uri": format!("agentlet://user/cid/helper?tenant_id={tenant}")}))
    }),
    ("an agent that is asked", |who, tenant| {
        let agent = format!("agentlet://user/cid/helper?tenant_id={tenant}");
        who.call("ask_agent", json!({"agent_uri": agent, "prompt": "?"}))
    }),
    ("a batch", |who, tenant| {
        let calls = json!([{"name": "read_graph", "arguments": {"tenant_id": tenant}}]);
        who.modern("tools/call_batch", json!({"calls": calls}))
    }),
];

#[test]
fn a_tenant_that_is_named_must_be_ones_own() {
    let gateway = Gateway::start("");
    let (ann, cid) = (gateway.as_user(ANN), gateway.as_user(CID));
    let secret = fresh();
    assert!(remember(&cid, &secret));
    let own = ann.call("read_graph", json!({"tenant_id": "reef"}));
    assert!(own.is_fine(), "to repeat it is fine: {own:?}");

    // One that exists and one that does not are refused in the same words.
    for (what, way) in WAYS {
        let (exists, does_not) = (way(&ann, "tide"), way(&ann, "atoll"));
        assert!(!exists.body.contains(&secret), "{what}: {exists:?}");
        let plain = |answer: &Answer, tenant: &str| {
            let text = answer.json().to_string().replace("tidegate", "T").replace(tenant, "X");
            text.split("correlationId").next().unwrap_or_default().to_owned()
        };
        assert_eq!(plain(&exists, "tide"), plain(&does_not, "atoll"), "{what} tells whether it exists");
        assert!(
            exists.body.contains("TENANT_NOT_FOUND") || exists.body.to_lowercase().contains("tenant"),
            "{what}: {exists:?}"
        );
        let message = exists.json();
        let has_failed = message["error"].is_object() || exists.body.contains("\"isError\":true");
        assert!(has_failed, "{what}: {exists:?}");
    }
}

#[test]
fn headers_name_no_tenant() {
    let gateway = Gateway::start("");
    let (ann, cid) = (gateway.as_user(ANN), gateway.as_user(CID));
    let secret = fresh();
    assert!(remember(&cid, &secret));
    let session = ann.session();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_graph", "arguments": {}}});
    let headers = [
        ("Mcp-Session-Id", session.as_str()),
        ("X-Tenant-Id", "tide"),
        ("X-User-Id", "cid"),
        ("X-Org-Id", "tide"),
    ];
    let answer = ann.send("POST", "/mcp", &headers, &body.to_string());
    assert!(answer.is_fine() && !answer.body.contains(&secret), "{answer:?}");
}

#[test]
fn nobody_is_asked_for_a_tenant() {
    let gateway = Gateway::start("");
    let ann = gateway.as_user(ANN);
    let session = ann.session();
    for (method, params) in
        [("tools/list", json!({})), ("resources/templates/list", json!({})), ("prompts/list", json!({}))]
    {
        for answer in [ann.modern(method, params.clone()), ann.in_session(&session, method, params.clone())] {
            assert!(answer.is_fine(), "{answer:?}");
            assert!(!answer.body.contains("tenant_id"), "{method}: {answer:?}");
        }
    }
}

#[test]
fn people_of_one_tenant_share_its_memory() {
    let gateway = Gateway::start("");
    let shared = fresh();
    assert!(remember(&gateway.as_user(ANN), &shared));
    assert!(knows(&gateway.as_user(BOB), &shared));
    assert!(!knows(&gateway.as_user(CID), &shared));
}

#[test]
fn without_tenants_everybody_has_a_memory_of_their_own() {
    let auth = "[[auth.jwt]]\nissuer = \"https://id.reef.example\"\njwks = \"reef.json\"\n\
                [[auth.jwt]]\nissuer = \"https://id.other.example\"\njwks = \"other.json\"\n";
    let gateway = Gateway::start_exactly(&format!("{}{auth}", crate::rig::SERVERS));
    let callers: Vec<(&str, Caller)> = [ANN, BOB, crate::rig::NAMESAKE]
        .map(|user| (user.name, gateway.with_token(&gateway.token("", user, drop_org))))
        .into();
    let secrets: Vec<String> = callers.iter().map(|_| fresh()).collect();
    for ((who, caller), secret) in callers.iter().zip(&secrets) {
        assert!(remember(caller, secret), "{who}");
    }
    for (at, (who, caller)) in callers.iter().enumerate() {
        for (of, secret) in secrets.iter().enumerate() {
            assert_eq!(knows(caller, secret), at == of, "{who} and what is {}'s", callers[of].0);
        }
    }
}

fn drop_org(claims: &mut Value) {
    claims.as_object_mut().unwrap().remove("org");
}
