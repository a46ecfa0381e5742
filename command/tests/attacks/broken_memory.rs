//! A memory that cannot be opened: everything else works, it says why, and it comes back when it is repaired.

use serde_json::{Value, json};

use crate::rig::{Gateway, until};

const CONFIG: &str = "[servers.demo]\nbuiltin = \"demo\"\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n\
                      [memory]\nstore = \"secret-place/memory.db\"\n";

/// Starts with the memory as `breaks` leaves it, which gets its path.
fn start(breaks: impl FnOnce(&std::path::Path)) -> Gateway {
    Gateway::start_with(CONFIG, |command| {
        let folder = command.get_current_dir().unwrap().join("secret-place");
        std::fs::create_dir_all(&folder).unwrap();
        breaks(&folder.join("memory.db"));
    })
}

fn is_fine(answer: &Value) -> bool {
    answer["result"].is_object() && answer["result"]["isError"] != true
}

/// The memory says that it cannot be opened and no more than that; the others work.
#[track_caller]
fn is_down(gateway: &Gateway, why: &str) {
    gateway.answers_others();
    let added = gateway.call("demo_add", json!({"a": 1, "b": 2}));
    assert!(is_fine(&added), "{added}");
    let found = gateway.call("search_nodes", json!({"query": "tea"})).to_string();
    assert!(found.contains("The memory cannot be opened; the log of the gateway says why"), "{found}");
    assert!(!found.contains("secret-place"), "{found}");
    assert!(gateway.log().contains("secret-place/memory.db cannot be used"), "{}", gateway.log());
    assert!(gateway.log().contains(why), "{}", gateway.log());
}

#[test]
fn a_memory_that_cannot_be_opened_is_down_and_comes_back() {
    let mut gateway = start(|file| std::fs::write(file, "garbage ".repeat(1000)).unwrap());
    is_down(&gateway, "not a SQLite file at all");
    // It is tried again, which the log does not say each time.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(gateway.log().matches("cannot be used").count(), 1, "{}", gateway.log());
    std::fs::remove_file(gateway.folder.path().join("secret-place/memory.db")).unwrap();
    until("the memory is back", || is_fine(&gateway.call("search_nodes", json!({"query": "tea"}))));
    gateway.ends_cleanly();
}

#[test]
fn whatever_is_wrong_with_it() {
    let mut gateway = start(|file| std::fs::create_dir(file).unwrap());
    is_down(&gateway, "cannot be used");
    gateway.ends_cleanly();
    // A schema of a version that is not known yet.
    let newer = |file: &std::path::Path| {
        let mut whole = Gateway::start(CONFIG);
        until("the memory is there", || is_fine(&whole.call("search_nodes", json!({"query": "tea"}))));
        whole.ends_cleanly();
        let mut bytes = std::fs::read(whole.folder.path().join("secret-place/memory.db")).unwrap();
        // Where SQLite keeps `user_version`.
        bytes[60..64].copy_from_slice(&9_999_u32.to_be_bytes());
        std::fs::write(file, bytes).unwrap();
    };
    let mut gateway = start(newer);
    is_down(&gateway, "a newer version of Tidegate");
    gateway.ends_cleanly();
    // The middle of it was lost.
    let damaged = |file: &std::path::Path| {
        std::fs::write(file, [b"SQLite format 3\0".as_slice(), &[0xff; 8_000]].concat()).unwrap();
    };
    let mut gateway = start(damaged);
    is_down(&gateway, "cannot be used");
    gateway.ends_cleanly();
}

#[test]
fn a_database_that_is_not_there() {
    let config = CONFIG.replace("secret-place/memory.db", "postgres://secret-place:hush@127.0.0.1:9/memory");
    let mut gateway = Gateway::start(&config);
    let added = gateway.call("demo_add", json!({"a": 1, "b": 2}));
    assert!(is_fine(&added), "{added}");
    let found = gateway.call("search_nodes", json!({"query": "tea"})).to_string();
    assert!(found.contains("The memory cannot be opened"), "{found}");
    assert!(!found.contains("secret-place"), "{found}");
    let log = gateway.log();
    assert!(
        log.contains("the configured PostgreSQL database cannot be used") && !log.contains("hush"),
        "{log}"
    );
    gateway.ends_cleanly();
}
