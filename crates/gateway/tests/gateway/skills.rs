//! Skills over MCP (SEP-2640) of two servers behind one gateway, as the public conformance suite asks for them: its scenarios
//! `sep-2640-skills-enumeration`, `-manifest` and `-directory`, in the words of a client of each era. One of the two servers speaks
//! each.

mod crossing;
mod joined;
mod library;
mod selected;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::Gateway;
use tokio_util::sync::DropGuard;

use self::library::{Library, SKILLS, digest};
use crate::callers::Wire;
use crate::rig::{settings, started};

/// The revisions whose clients look for extensions.
const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// Two servers that have a skill of the same name: a modern one here, and a legacy one over HTTP.
async fn two() -> (Gateway, Library, Library, DropGuard) {
    let alpha = Library::new(&["refunds", "acme/billing/invoices", "pdf"]);
    let mut beta = Library::new(&["refunds", "notes", "reports"]);
    beta.scope = "private";
    let (there, stop) = beta.there("beta", Eras::Legacy).await;
    let mut all = settings([alpha.here("alpha"), there]);
    // So that there are several pages.
    all.tools.page_bytes = 1200;
    (started(all).await, alpha, beta, stop)
}

/// What a client of the suite does.
async fn ask(wire: &mut Wire, method: &str, params: Value) -> Result<Value, i64> {
    let answer = wire.request(method, params).await;
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(answer["error"]["code"].as_i64().unwrap()),
    }
}

/// The extension's settings, as the client's era finds them.
async fn declared(gateway: &Gateway, revision: &'static str) -> (Wire, Value) {
    let mut wire = Wire::silent(gateway, "suite", revision);
    let found = match wire.is_modern() {
        true => ask(&mut wire, "server/discover", json!({})).await.unwrap(),
        false => {
            let hello = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}});
            let found = ask(&mut wire, "initialize", hello).await.unwrap();
            wire.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
            found
        }
    };
    (wire, found["capabilities"]["extensions"][SKILLS].clone())
}

/// All pages of a list.
async fn pages(wire: &mut Wire, method: &str, params: Value) -> Vec<Value> {
    let (mut pages, mut params) = (Vec::new(), params);
    loop {
        let page = ask(wire, method, params.clone()).await.unwrap();
        let next = page.get("nextCursor").cloned();
        pages.push(page);
        match next {
            Some(cursor) => params["cursor"] = cursor,
            None => return pages,
        }
        assert!(pages.len() < 100, "without end");
    }
}

/// The folder of a `SKILL.md`, and the skill's name.
fn root(uri: &str) -> (&str, &str) {
    let root = uri.strip_suffix("/SKILL.md").unwrap_or_else(|| panic!("{uri}"));
    (root, root.rsplit('/').next().unwrap())
}

#[tokio::test]
async fn enumeration() {
    let (gateway, alpha, beta, _stop) = two().await;
    for revision in REVISIONS {
        let (mut wire, settings) = declared(&gateway, revision).await;
        assert_eq!(settings, json!({"directoryRead": true}), "{revision}");
        let pages = pages(&mut wire, "skills/list", json!({})).await;
        assert!(pages.len() > 1, "{revision}");
        let entries: Vec<Value> =
            pages.iter().flat_map(|page| page["skills"].as_array().unwrap().clone()).collect();
        for page in &pages {
            let hints = (page.get("resultType"), page.get("ttlMs").is_some(), page["cacheScope"].as_str());
            match wire.is_modern() {
                // For as long as the shortest is good, for whom all are: a legacy server promises nothing.
                true => assert_eq!(hints, (Some(&json!("complete")), true, Some("private"))),
                false => assert_eq!(hints, (None, false, None)),
            }
        }
        // Entries are whole, each is there once, and nothing but addresses has changed.
        let expected: Vec<Value> = [(&alpha, "alpha"), (&beta, "beta")]
            .into_iter()
            .flat_map(|(library, label)| library.listed.iter().map(move |path| (library, label, path)))
            .map(|(library, label, path)| {
                let text = library.entry(path).to_string().replace("skill://", &format!("skill://{label}/"));
                serde_json::from_str(&text).unwrap()
            })
            .collect();
        assert_eq!(entries, expected, "{revision}");
        for entry in &entries {
            let uri = entry["uri"].as_str().unwrap();
            let (root, name) = root(uri);
            assert_eq!(entry["frontmatter"]["name"], name);
            let files = entry["resources"].as_array().unwrap();
            let uris: BTreeSet<&str> = files.iter().map(|file| file["uri"].as_str().unwrap()).collect();
            assert!(uris.contains(uri) && uris.len() == files.len() && files.len() <= 512);
            assert!(uris.iter().all(|file| file.starts_with(&format!("{root}/"))), "{uris:?}");
            for file in files {
                // What is read is what the digest and the size are of.
                let read = ask(&mut wire, "resources/read", json!({"uri": file["uri"]})).await.unwrap();
                let text = read["contents"][0]["text"].as_str().unwrap();
                assert_eq!(read["contents"][0]["uri"], file["uri"]);
                assert_eq!(
                    (digest(text), text.len()),
                    (file["digest"].as_str().unwrap().to_owned(), file["size"].as_u64().unwrap() as usize)
                );
            }
            let got = ask(&mut wire, "skills/get", json!({"uri": uri})).await.unwrap();
            assert_eq!(got["skill"], *entry);
            assert!(got.get("nextCursor").is_none());
            assert_eq!(
                (got.get("ttlMs").is_some(), got.get("cacheScope").is_some()),
                (wire.is_modern(), wire.is_modern())
            );
        }
        for unknown in [
            "skill://nobody-has-this/SKILL.md",
            "skill://alpha/nobody-has-this/SKILL.md",
            "skill://alpha/notes/SKILL.md",
        ] {
            assert_eq!(
                ask(&mut wire, "skills/get", json!({"uri": unknown})).await,
                Err(-32602),
                "{revision} {unknown}"
            );
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn manifest() {
    let (gateway, _, _, _stop) = two().await;
    for revision in REVISIONS {
        let (mut wire, _) = declared(&gateway, revision).await;
        let all = pages(&mut wire, "resources/list", json!({})).await;
        let all: Vec<Value> =
            all.iter().flat_map(|page| page["resources"].as_array().unwrap().clone()).collect();
        assert_eq!(all.len(), 6);
        for resource in &all {
            let uri = resource["uri"].as_str().unwrap();
            let read = ask(&mut wire, "resources/read", json!({"uri": uri})).await.unwrap();
            assert_eq!(
                (&read["contents"][0]["mimeType"], &resource["mimeType"]),
                (&json!("text/markdown"), &json!("text/markdown"))
            );
            let text = read["contents"][0]["text"].as_str().unwrap();
            let field = |name: &str| {
                let line = text
                    .lines()
                    .skip(1)
                    .take_while(|line| *line != "---")
                    .find_map(|line| line.strip_prefix(&format!("{name}: ")));
                json!(line.unwrap())
            };
            assert_eq!(
                (&resource["name"], &resource["description"]),
                (&field("name"), &field("description"))
            );
            assert_eq!(field("name"), root(uri).1);
            assert!(
                resource["_meta"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .all(|key| key.starts_with("io.modelcontextprotocol.skills/"))
            );
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn directory() {
    let (gateway, _, _, _stop) = two().await;
    for revision in REVISIONS {
        let (mut wire, settings) = declared(&gateway, revision).await;
        assert_eq!(settings["directoryRead"], true);
        for label in ["alpha", "beta"] {
            let folder = format!("skill://{label}/refunds");
            // One child on each page.
            let pages = pages(&mut wire, "resources/directory/read", json!({"uri": folder})).await;
            let children: Vec<_> =
                pages.iter().flat_map(|page| page["resources"].as_array().unwrap().clone()).collect();
            let kinds: Vec<_> = children
                .iter()
                .map(|child| (child["uri"].as_str().unwrap(), child["mimeType"].as_str().unwrap()))
                .collect();
            assert_eq!(pages.len(), 2);
            let (file, below) = (format!("{folder}/SKILL.md"), format!("{folder}/templates"));
            assert_eq!(kinds, [(&*file, "text/markdown"), (&*below, "inode/directory")]);
            assert!(pages.iter().all(|page| page.get("resultType").is_some() == wire.is_modern()));
            let deeper = ask(&mut wire, "resources/directory/read", json!({"uri": below})).await.unwrap();
            assert_eq!(deeper["resources"][0]["uri"], format!("{below}/a.md"));
            for wrong in [file, format!("skill://{label}/nothing"), "skill://refunds".to_owned()] {
                let answer = ask(&mut wire, "resources/directory/read", json!({"uri": wrong})).await;
                assert_eq!(answer, Err(-32602), "{wrong}");
            }
        }
    }
    gateway.close().await;
}
