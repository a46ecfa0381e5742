//! Taking documents in: texts, files and pages, and what is refused.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;
use tidegate_memory::{MemoryServerSettings, server_with};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ask, call_as, refused};

/// A server with these options.
fn with(folder: &Folder, set: impl FnOnce(&mut MemoryServerSettings)) -> ServerDoor {
    let mut options = MemoryServerSettings::default();
    set(&mut options);
    server_with(folder.store(), options)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_only_below_the_folders_that_were_named() {
    let folder = Folder::new();
    let open = folder.path().join("open");
    std::fs::create_dir_all(open.join("deep")).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("secret.txt", b"the secret");
    write("open/notes.md", b"# Notes\n\nherring\n");
    write("open/deep/main.rs", b"fn main() {}\n");
    write("open/page.html", b"<title>Page</title><script>no()</script><p>shown");
    write("open/table.csv", b"name,age\nAnn,1\n");
    write("open/data.json", b"{\"a\": 1}");
    write("open/a.zip", b"PK\x03\x04....");
    write("open/a.pdf", b"%PDF-1.7 ...");
    write("open/a.bin", b"a\0b");
    write("open/empty.txt", b" \n");
    write("open/large.txt", &[b'x'; 1_001]);
    let nothing = folder.server();
    let why = refused(&nothing, "ingest_document", json!({"file_path": "notes.md"})).await;
    assert!(why.contains("may not read files") && why.contains("folders"), "{why}");

    let memory = with(&folder, |options| {
        options.folders = vec![open.clone()];
        options.max_document_bytes = Some(1_000);
    });
    let absolute = open.join("deep/main.rs").to_str().unwrap().to_owned();
    for (arguments, title, source, mime_type) in [
        (json!({"file_path": "notes.md"}), "Notes", "open/notes.md", "text/markdown"),
        (json!({"path": absolute}), "main.rs", "open/deep/main.rs", "text/plain"),
        (json!({"file_path": "./deep/../page.html"}), "Page", "open/page.html", "text/markdown"),
        (json!({"file_path": "table.csv"}), "table.csv", "open/table.csv", "text/csv"),
        (json!({"file_path": "data.json", "title": "Data"}), "Data", "open/data.json", "application/json"),
    ] {
        let kept = ask(&memory, "ingest_document", arguments).await;
        let kept = &kept["document"];
        assert_eq!(
            (&kept["title"], &kept["source"], &kept["mimeType"]),
            (&json!(title), &json!(source), &json!(mime_type))
        );
    }
    let secret = folder.path().join("secret.txt").to_str().unwrap().to_owned();
    let mut outside =
        vec!["../secret.txt", &secret, "/etc/passwd", "deep/../../secret.txt", "absent.md", "..", "/"];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(folder.path().join("secret.txt"), open.join("link.txt")).unwrap();
        symlink(folder.path(), open.join("up")).unwrap();
        symlink(open.join("notes.md"), open.join("within.md")).unwrap();
        outside.extend(["link.txt", "up/secret.txt", "up/memory.db"]);
        let same = ask(&memory, "ingest_document", json!({"file_path": "within.md"})).await;
        assert_eq!(same["outcome"], "unchanged", "a link within the folder is the file it leads to");
    }
    for path in outside {
        let why = refused(&memory, "ingest_document", json!({"file_path": path})).await;
        assert!(
            why.contains("there is no file") && why.contains("folders that may be read"),
            "{path}: {why}"
        );
    }
    for (path, wanted) in [
        ("a.zip", "not unpacked"),
        ("a.pdf", "pdftotext"),
        ("a.bin", "binary data"),
        ("empty.txt", "has no text"),
        ("large.txt", "1000 bytes"),
        ("deep", "is a folder"),
        ("", "must be the path"),
        ("a\u{0}b", "must be the path"),
    ] {
        let why = refused(&memory, "ingest_document", json!({"file_path": path})).await;
        assert!(why.starts_with("file_path: ") && why.contains(wanted), "{path}: {why}");
    }
    write("open/notes.md", b"# Notes\n\nmackerel\n");
    let changed = ask(&memory, "ingest_document", json!({"file_path": "notes.md"})).await;
    assert_eq!((&changed["outcome"], &changed["document"]["version"]), (&json!("updated"), &json!(2)));
    for (query, count) in [("herring", 0), ("mackerel", 1)] {
        assert_eq!(ask(&memory, "search_knowledge_base", json!({"query": query})).await["count"], count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_fetched_and_their_new_versions_replace_the_old() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tides", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (visit, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let body = format!("<title>Tides</title><h1>Tides</h1><p>visit number{}", visit / 2);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length:";
            let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes());
        }
    });
    let folder = Folder::new();
    let careful = folder.server();
    let why = refused(&careful, "ingest_document", json!({"url": url})).await;
    assert!(why.starts_with("url: ") && why.contains("not on the public internet"), "{why}");
    let memory = with(&folder, |options| options.allow_private_addresses = true);
    for (outcome, version) in [("created", 1), ("unchanged", 1), ("updated", 2)] {
        let kept = ask(&memory, "ingest_document", json!({"url": url})).await;
        assert_eq!((&kept["outcome"], &kept["document"]["version"]), (&json!(outcome), &json!(version)));
        assert_eq!((&kept["document"]["source"], &kept["document"]["title"]), (&json!(url), &json!("Tides")));
    }
    assert_eq!(ask(&memory, "search_knowledge_base", json!({"query": "number1"})).await["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_documents_get_a_sentence() {
    let folder = Folder::new();
    let memory = with(&folder, |options| options.max_document_bytes = Some(1_000));
    for (arguments, why) in [
        (json!({}), "give exactly one of"),
        (json!({"text": "a", "url": "http://x.test"}), "give exactly one of"),
        (json!({"text": "  "}), "text: has no text"),
        (json!({"text": "x".repeat(1_001)}), "text: is larger than the 1000 bytes"),
        (json!({"text": "a\u{0}b"}), "text: is binary data"),
        (json!({"text": "a", "title": " "}), "title: must not be empty"),
        (json!({"text": "a", "title": "x".repeat(201)}), "title: must have at most 200"),
        (json!({"text": "a", "title": "x\ny"}), "title: must not have control"),
        (json!({"text": "a", "tags": vec!["t"; 51]}), "tags: must be at most 50"),
        (json!({"text": "a", "tags": [""]}), "tags[0]: must not be empty"),
        (json!({"text": "a", "metadata": {"a": "x".repeat(20_000)}}), "metadata: must be at most"),
        (json!({"text": "a", "knowledge_base": "other"}), "knowledge_base"),
    ] {
        let said = refused(&memory, "ingest_document", arguments).await;
        assert!(said.contains(why), "{said}");
    }
    for (tool, arguments, why) in [
        ("get_document", json!({}), "id: give either"),
        ("get_document", json!({"id": "x"}), "id: must be an id such as"),
        ("get_document", json!({"id": "doc-1", "limit": 100_001}), "limit"),
        ("get_document", json!({"id": "doc-1", "offset": -1}), "offset"),
        ("get_document", json!({"id": "doc-1"}), "There is no document \"doc-1\""),
        ("get_document", json!({"id": "doc-1", "version": 2}), "There is no version 2"),
        ("update_document", json!({"uri": "memory://entities/1"}), "uri: must be an id"),
        ("delete_document", json!({"id": "doc-1"}), "There is no document"),
    ] {
        let said = refused(&memory, tool, arguments).await;
        assert!(said.contains(why), "{tool}: {said}");
    }
    assert_eq!(ask(&memory, "list_documents", json!({})).await["count"], 0);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_path_may_be_long_but_not_without_end() {
    let folder = Folder::new();
    let memory = with(&folder, |options| options.folders = vec![folder.path().to_owned()]);
    let keep = async |depth: usize| {
        // No two names alike, so that nothing can be made shorter by packing it.
        let names: Vec<String> = (0..depth).map(|n| scrambled(n as u64)).collect();
        let path = names.join("/");
        std::fs::create_dir_all(folder.path().join(&path)).unwrap();
        std::fs::write(folder.path().join(&path).join("a.txt"), "text").unwrap();
        call_as(&memory, None, "ingest_document", json!({"file_path": format!("{path}/a.txt")})).await
    };
    let kept = keep(11).await;
    assert_eq!(kept["structuredContent"]["outcome"], "created", "{kept}");
    let refused = keep(13).await;
    let why = refused["content"][0]["text"].as_str().unwrap();
    assert!(why.starts_with("file_path: must have at most 2500 bytes"), "{why}");
}

/// A long name that looks like no other.
#[cfg(target_os = "linux")]
fn scrambled(seed: u64) -> String {
    let mut state = seed + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[(state >> 58) as usize]
    };
    (0..220).map(|_| char::from(next())).collect()
}
