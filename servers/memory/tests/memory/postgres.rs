//! What holds on a file holds on a PostgreSQL server, and what only a server can do.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_memory::{Store, server};

use crate::archive;
use crate::cluster::{self, Cluster};
use crate::rig::{Folder, STORE, ann, ask, call_as, on_postgres, refused};

/// Says, once and where it is seen, that there is nothing to test with.
fn installed() -> bool {
    let installed = cluster::programs().is_some();
    if !installed {
        let _ = writeln!(std::io::stderr(), "PostgreSQL 15 or newer is not installed: tested on files only");
    }
    installed
}

/// A server, if there can be one: the tests here share it, with a database each.
pub(crate) fn started() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    CLUSTER.get_or_init(|| installed().then(|| Cluster::start(false)).flatten()).as_ref()
}

#[test]
fn everything_holds_on_a_server_too() {
    if on_postgres() || !installed() {
        return;
    }
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "postgres::", "--skip", "pgvector::"])
        .env(STORE, "postgres")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "on PostgreSQL:\n{said}");
    assert!(!said.contains(" 0 passed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_machines_share_one_memory() {
    let Some(cluster) = started() else { return };
    let url = cluster.database("shared");
    // All of them find nothing there, and make the tables at once.
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || server(Store::connect(&url).unwrap()))
        })
        .collect();
    let machines: Vec<_> = opening.into_iter().map(|opened| opened.join().unwrap()).collect();
    let mut calls = Vec::new();
    for n in 0..80 {
        let machine = machines[n % machines.len()].clone();
        // Each name is made by all four, each in a change of its own.
        let entity = json!({"name": format!("thing {}", n / 4), "entityType": "t", "observations": ["one"]});
        calls.push(tokio::spawn(async move {
            let made = ask(&machine, "create_entities", json!({"entities": [entity]})).await;
            made["created"].as_u64().unwrap()
        }));
    }
    let mut made = 0;
    for call in calls {
        made += call.await.unwrap();
    }
    assert_eq!(made, 20, "each was made once");
    for machine in &machines {
        let graph = ask(machine, "read_graph", json!({})).await;
        assert_eq!(graph["entities"].as_array().unwrap().len(), 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_moves_between_files_and_servers() {
    let Some(cluster) = started() else { return };
    let (old, new) = (Folder::new(), Folder::new());
    let (file, back) = (old.server(), new.server());
    let on_server = server(Store::connect(&cluster.database("moved")).unwrap());
    archive::much(&file).await;
    ask(&on_server, "import_graph", json!({"jsonl": archive::exported(&file).await})).await;
    archive::assert_same(&file, &on_server).await;
    ask(&back, "import_graph", json!({"jsonl": archive::exported(&on_server).await})).await;
    archive::assert_same(&file, &back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connections_are_made_anew() {
    let Some(cluster) = started() else { return };
    let memory = server(Store::connect(&cluster.database("cut")).unwrap());
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    for n in 0..3 {
        ask(&memory, "read_graph", json!({})).await;
        cluster.run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'cut'");
        let said = format!("said {n}");
        ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": [said]})).await;
        let graph = ask(&memory, "open_nodes", json!({"names": ["Ann"]})).await;
        assert_eq!(graph["entities"][0]["observations"].as_array().unwrap().len(), 3 + n);
    }
}

/// What became of the writes, as their callers were told.
#[derive(Default)]
struct Told {
    stored: BTreeSet<usize>,
    refused: BTreeSet<usize>,
    unknown: BTreeSet<usize>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_keeps_what_it_acknowledged() {
    const WRITERS: usize = 4;
    let Some(mut cluster) = Cluster::start(true) else { return };
    let memory = server(Store::connect(&cluster.database("crash")).unwrap());
    ask(&memory, "create_entities", json!({"entities": [{"name": "log", "entityType": "t"}]})).await;
    let told = Arc::new(Mutex::new(Told::default()));
    let (next, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let (memory, told, next, enough) = (memory.clone(), told.clone(), next.clone(), enough.clone());
        writers.push(tokio::spawn(async move {
            while !enough.load(Ordering::Relaxed) {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let entry = json!({"entityName": "log", "contents": [n.to_string()]});
                let result = call_as(&memory, None, "add_observations", entry).await;
                let why = result["content"][0]["text"].as_str().unwrap().to_owned();
                let mut told = told.lock().unwrap();
                match result["isError"].as_bool().unwrap_or_default() {
                    false => told.stored.insert(n),
                    true if why.contains("not known whether") => told.unknown.insert(n),
                    true => told.refused.insert(n),
                };
            }
        }));
    }
    let stored = || told.lock().unwrap().stored.len();
    for _ in 0..3 {
        let before = stored();
        wait_until(|| stored() > before + 20).await;
        cluster.crash();
    }
    let before = stored();
    wait_until(|| stored() > before + 20).await;
    enough.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let graph = ask(&memory, "open_nodes", json!({"names": ["log"]})).await;
    let kept = graph["entities"][0]["observations"].as_array().unwrap().iter();
    let kept: BTreeSet<usize> = kept.map(|entry| entry.as_str().unwrap().parse().unwrap()).collect();
    let told = told.lock().unwrap();
    assert!(told.stored.is_subset(&kept), "lost: {:?}", told.stored.difference(&kept));
    assert!(told.refused.is_disjoint(&kept), "refused and kept: {:?}", told.refused.intersection(&kept));
    let known: BTreeSet<usize> = told.stored.union(&told.unknown).copied().collect();
    assert!(kept.is_subset(&known), "nobody was told: {:?}", kept.difference(&known));
}

async fn wait_until(reached: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !reached() {
        assert!(Instant::now() < until, "nothing is stored any more");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_found_as_in_a_file() {
    let Some(cluster) = started() else { return };
    let memory = server(Store::connect(&cluster.database("words")).unwrap());
    let entity = json!({"name": "Zoë", "entityType": "person", "observations": ["wrote a-b_c.txt", "mails zoe@example.com"]});
    ask(&memory, "create_entities", json!({"entities": [entity, ann()]})).await;
    for (query, name) in [
        ("example zoe", "Zoë"),
        ("ZOË txt", "Zoë"),
        ("txt wrote", "Zoë"),
        ("com mails", "Zoë"),
        ("kiel TEA", "Ann"),
        ("tea') | 'kiel", "Ann"),
    ] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert_eq!(found["entities"][0]["name"], name, "{query}");
    }
    for query in ["tea wrote", "tea & !kiel:A"] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert!(found["note"].is_string(), "{query}: nothing has all of these words");
    }
    for query in ["'", "\\", ":*", "%", "--", "¿?"] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        let count = found["entities"].as_array().unwrap().len();
        assert_eq!(count, 0, "{query}: {found}");
    }
    let why = refused(&memory, "add_observations", json!({"entityName": "Ann", "contents": ["a\0b"]})).await;
    assert!(why.contains("U+0000"), "{why}");
    // As long as it may be, and every word another one.
    let long: Vec<String> = (0..40)
        .map(|n| {
            (0..1_250).map(|w| format!("{:03x} ", n * 1_250 + w)).collect::<String>()[..4_999].to_owned()
        })
        .collect();
    ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": long})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_will_not_do_is_refused_with_a_sentence() {
    let why = |url: &str| Store::connect(url).err().unwrap().message;
    let said = why("mysql://me:secret@localhost/memory");
    assert!(said.contains("postgres://") && !said.contains("secret"), "{said}");
    let said = why("postgres://me:secret@localhost:notaport/memory");
    assert!(said.contains("url") && !said.contains("secret"), "{said}");
    let said = why("postgres://me:secret@127.0.0.1:1/memory");
    assert!(said.contains("refused") && !said.contains("secret"), "{said}");
    let Some(cluster) = started() else { return };
    let said = why(&cluster.url("nowhere"));
    assert!(said.contains("\"nowhere\" does not exist"), "{said}");
    cluster.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let said = why(&cluster.url("latin"));
    assert!(said.contains("LATIN1"), "{said}");
    let url = cluster.database("newer");
    drop(Store::connect(&url).unwrap());
    cluster.run_in("newer", "UPDATE tidegate_memory SET version = 1000");
    let said = why(&url);
    assert!(said.contains("newer version"), "{said}");
    cluster.run("CREATE ROLE guest LOGIN");
    cluster.run("CREATE DATABASE closed");
    let said = why(&cluster.url("closed").replace("tidegate@", "guest@"));
    assert!(said.contains("permission denied"), "{said}");
}

/// Tells the child where to connect to.
const ENCRYPTED: &str = "TIDEGATE_ENCRYPTED_URL";

/// Not a test of its own: a process that trusts the certificate of the server.
#[test]
#[ignore = "a_certificate_must_be_trusted starts it"]
fn the_process_that_trusts() {
    let url = std::env::var(ENCRYPTED).unwrap();
    Store::connect(&url).unwrap();
    let wrong = Store::connect(&url.replace("sesame", "open")).err().unwrap();
    assert!(wrong.message.contains("password authentication failed"), "{wrong}");
    let elsewhere = Store::connect(&url.replace("localhost", "127.0.0.1")).err().unwrap();
    assert!(elsewhere.message.contains("certificate"), "{elsewhere}");
}

#[test]
fn a_certificate_must_be_trusted() {
    let folder = Folder::new();
    let (certificate, key) = (folder.path().join("server.crt"), folder.path().join("server.key"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    if !made.is_ok_and(|made| made.status.success()) || !installed() {
        let _ = writeln!(std::io::stderr(), "without openssl and PostgreSQL, encryption is not tested");
        return;
    }
    let read = |path| std::fs::read_to_string(path).unwrap();
    let cluster = Cluster::start_encrypted(&read(&certificate), &read(&key)).unwrap();
    cluster.run("CREATE ROLE me LOGIN SUPERUSER PASSWORD 'sesame'");
    cluster.database("secret");
    let url = format!("postgres://me:sesame@localhost:{}/secret?sslmode=require", cluster.port());
    let trusting = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres::the_process_that_trusts", "--ignored"])
        .env("SSL_CERT_FILE", &certificate)
        .env(ENCRYPTED, &url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&trusting.stdout);
    assert!(trusting.status.success() && said.contains("1 passed"), "{said}");
    let why = Store::connect(&url).err().unwrap().message;
    assert!(why.contains("certificate") && !why.contains("sesame"), "{why}");
    Store::connect(&url.replace("require", "disable")).unwrap();
    let plain = started().unwrap().database("plain") + "?sslmode=require";
    let why = Store::connect(&plain).err().unwrap().message;
    assert!(why.contains("TLS"), "{why}");
}
