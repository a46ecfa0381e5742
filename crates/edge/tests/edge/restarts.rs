//! Sessions that outlive the process: sealed ids, what is remembered in a directory, and what stays dead. A process is an
//! endpoint here; what it had in memory is gone with it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_edge::http::Settings;
use tidegate_protocol::seal::{Key, Sealer};
use tidegate_service::Notice;

use crate::common::*;

fn settings(dir: &Path) -> Settings {
    Settings::default().keep_sessions(Sealer::new(Key::derive("key")), dir)
}

/// A process that serves.
fn start(stub: &Stub, settings: Settings) -> Client {
    Client::new(stub, settings)
}

/// The same session at another process.
fn at(session: &Session, client: &Client) -> Session {
    Session { client: client.clone(), ..session.clone() }
}

/// Longer than changes are collected for before they are written.
async fn written() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

async fn status(ask: Ask) -> u16 {
    ask.send().await.status
}

fn files(dir: &TempDir, part: &str) -> Vec<String> {
    let all = std::fs::read_dir(dir.path().join(part)).into_iter().flatten();
    all.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

const EVERYTHING: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];

/// Whether a stream tells that everything may have changed, and nothing else.
async fn tells_everything(events: &mut Events, subscribed: bool) -> bool {
    for method in &EVERYTHING[..if subscribed { 4 } else { 3 }] {
        if events.message().await["method"] != *method {
            return false;
        }
    }
    events.is_quiet().await
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_on_in_another_process() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let capabilities = json!({"roots": {"listChanged": true}, "sampling": {}, "experimental": {"x": [1]}});
    for revision in LEGACY {
        let before = start(&stub, settings(dir.path()));
        let session = Session::with(&before, revision, capabilities.clone()).await;
        assert!(
            session.id.len() <= 1024 && session.id.bytes().all(|b| b.is_ascii_graphic()),
            "{}",
            session.id
        );
        let context = |answer: Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let then = context(session.call(1, "context", json!({})).send().await.json().await);
        drop(before);

        let session = at(&session, &start(&stub, settings(dir.path())));
        let now = context(session.call(1, "context", json!({})).send().await.json().await);
        assert_eq!(now, then, "revision, capabilities, name and version are those of the handshake");
        // Whatever comes first opens it, and an answer that nobody waits for does no harm.
        for message in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        ] {
            let session = at(&session, &start(&stub, settings(dir.path())));
            assert_eq!(status(session.post(&message)).await, 202);
            assert!(session.works().await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn level_and_subscriptions_are_remembered() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    let other = at(&Session::open(&session.client, "2025-11-25").await, &session.client);
    session.request(1, "logging/setLevel", json!({"level": "error"})).send().await;
    for uri in ["mem:a", "mem:b", "mem:\"c"] {
        session.request(1, "resources/subscribe", json!({"uri": uri})).send().await;
    }
    session.request(1, "resources/unsubscribe", json!({"uri": "mem:b"})).send().await;
    assert_eq!(files(&dir, "state").len(), 0, "nobody waits for the disk");
    written().await;
    assert_eq!(files(&dir, "state"), [r#"{"level":"error","subscriptions":["mem:\"c","mem:a"]}"#]);

    // As after kill -9: the process before has said no more, and it is not waited for.
    let after = start(&stub, settings(dir.path()));
    let session = at(&session, &after);
    let answer = session.call(1, "context", json!({})).send().await.json().await;
    assert!(text(&answer).contains(r#""logLevel":"error""#), "{answer}");
    let mut events = session.get().send().await.events();
    for method in &EVERYTHING[..3] {
        assert_eq!(events.message().await["method"], *method);
    }
    let told = [events.message().await, events.message().await];
    assert_eq!(told.each_ref().map(|told| told["params"]["uri"].as_str().unwrap()), ["mem:\"c", "mem:a"]);
    assert!(events.is_quiet().await);
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    assert_eq!(events.message().await["params"]["uri"], "mem:a");
    // What it changes now is remembered, too; and nothing is kept of one that has what everybody has.
    session.request(1, "logging/setLevel", json!({"level": "info"})).send().await;
    for uri in ["mem:a", "mem:\"c"] {
        session.request(1, "resources/unsubscribe", json!({"uri": uri})).send().await;
    }
    written().await;
    assert_eq!(files(&dir, "state").len(), 0);
    // Another session has what it had: the usual level and nothing subscribed to.
    let answer = at(&other, &after).call(1, "context", json!({})).send().await.json().await;
    assert!(text(&answer).contains(r#""logLevel":"info""#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn what_is_half_written_or_foreign_is_passed_over() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    written().await;
    let file = std::fs::read_dir(dir.path().join("state")).unwrap().next().unwrap().unwrap().path();
    for wrong in ["", "{\"level\":\"in", "[]", "{\"level\":\"loud\",\"subscriptions\":[]}"] {
        std::fs::write(&file, wrong).unwrap();
        std::fs::write(dir.path().join("ended").join("notes.txt"), "mine").unwrap();
        let after = at(&session, &start(&stub, settings(dir.path())));
        assert!(after.works().await, "{wrong}");
        let mut events = after.get().send().await.events();
        assert!(tells_everything(&mut events, false).await, "{wrong}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("ended").join("notes.txt")).unwrap(), "mine");
}

#[tokio::test(start_paused = true)]
async fn that_a_session_has_ended_is_written_although_the_directory_is_gone() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let one = start(&stub, settings(dir.path()));
    let (session, other) = (Session::open(&one, "2025-11-25").await, Session::open(&one, "2025-11-25").await);
    assert_eq!(status(other.delete()).await, 204);
    std::fs::remove_dir_all(dir.path()).unwrap();
    assert_eq!(status(session.delete()).await, 204);
    assert!(!at(&session, &start(&stub, settings(dir.path()))).works().await);

    // Where it cannot be written at once, it is written as soon as it can.
    let third = Session::open(&one, "2025-11-25").await;
    let ended = dir.path().join("ended");
    std::fs::remove_dir_all(&ended).unwrap();
    std::fs::write(&ended, "in the way").unwrap();
    assert_eq!(status(third.delete()).await, 204);
    std::fs::remove_file(&ended).unwrap();
    assert_eq!(status(Session::open(&one, "2025-11-25").await.delete()).await, 204);
    assert!(!at(&third, &start(&stub, settings(dir.path()))).works().await);
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_among_the_files_keeps_nobody_waiting() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let one = start(&stub, settings(dir.path()));
    let (session, other) = (Session::open(&one, "2025-11-25").await, Session::open(&one, "2025-11-25").await);
    assert_eq!(status(other.delete()).await, 204);
    let hour = std::fs::read_dir(dir.path().join("ended")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&hour).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&hour).status().unwrap().success());
    let after = at(&session, &start(&stub, settings(dir.path())));
    let works = tokio::time::timeout(Duration::from_secs(30), after.works()).await;
    assert_eq!(works, Ok(false), "nobody can tell whether it has ended");
}

#[tokio::test(start_paused = true)]
async fn files_of_others_stay() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let foreign = ["state/000000000000important", "state/000000000001-notes", "ended/2024", "ended/5"];
    for name in ["state", "ended"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    for name in foreign {
        std::fs::write(dir.path().join(name), "mine").unwrap();
    }
    let old = format!("state/{:012x}-{}", 1, "0".repeat(32));
    std::fs::write(dir.path().join(&old), "{}").unwrap();
    std::fs::write(dir.path().join("ended/100000"), "").unwrap();
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    assert!(at(&session, &start(&stub, settings(dir.path()))).works().await);
    for name in foreign {
        assert!(dir.path().join(name).exists(), "{name}");
    }
    assert!(!dir.path().join(old).exists() && !dir.path().join("ended/100000").exists(), "what is over goes");
}

#[tokio::test(start_paused = true)]
async fn an_event_id_of_an_earlier_life_gets_a_fresh_stream() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    let mut events = session.get().send().await.events();
    settle().await;
    stub.tell(&Notice::ToolsChanged);
    events.message().await;
    let standalone = events.last_id().to_owned();
    let mut call =
        session.call_with_token(2, "progress", json!({"wait": true}), json!(1)).send().await.events();
    call.message().await;
    let of_call = call.last_id().to_owned();
    written().await;
    for old in [standalone, of_call] {
        let after = at(&session, &start(&stub, settings(dir.path())));
        let mut fresh = after.get_from(&old).send().await.events();
        assert!(tells_everything(&mut fresh, true).await, "{old}");
        // From here on it is a stream of this life.
        stub.tell(&Notice::PromptsChanged);
        fresh.message().await;
        let new = fresh.last_id().to_owned();
        drop(fresh);
        settle().await;
        stub.tell(&Notice::ToolsChanged);
        let mut resumed = after.get_from(&new).send().await.events();
        assert_eq!(resumed.message().await["method"], "notifications/tools/list_changed");
        assert!(resumed.is_quiet().await, "and nothing else");
        // One of this life that nothing is kept for is refused as ever.
        let (life, _) = new.split_once('-').unwrap();
        for wrong in [format!("{life}-77-0"), "nonsense".to_owned(), "1-1".to_owned()] {
            assert_eq!(status(after.get_from(&wrong)).await, 400, "{wrong}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_stays_dead() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let idle = Duration::from_secs(20);
    let settings = || Settings { session_idle: idle, ..settings(dir.path()) };
    let before = start(&stub, settings());
    let [deleted, unused, lives] = [(); 3].map(|()| Session::open(&before, "2025-11-25"));
    let (deleted, unused, lives) = tokio::join!(deleted, unused, lives);
    deleted.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    written().await;
    assert_eq!(files(&dir, "state").len(), 1);
    assert_eq!(status(deleted.delete()).await, 204);
    // It was written before it was confirmed.
    assert_eq!((files(&dir, "state").len(), files(&dir, "ended").concat().lines().count()), (0, 2));
    for _ in 0..4 {
        tokio::time::sleep(idle / 2).await;
        assert!(lives.works().await);
    }
    written().await;
    let is_dead = async |session: &Session| {
        for ask in [
            session.request(1, "ping", json!({})),
            session.get(),
            session.get_from("0-0-0"),
            session.delete(),
        ] {
            assert_eq!(status(ask).await, 404);
        }
    };
    for process in [before, start(&stub, settings()), start(&stub, settings())] {
        for dead in [&deleted, &unused] {
            is_dead(&at(dead, &process)).await;
        }
        assert!(at(&lives, &process).works().await);
    }
    // One of an earlier process is ended without being opened, also where there is no room for it.
    let full = start(&stub, Settings { max_sessions: 0, ..settings() });
    assert_eq!(status(at(&lives, &full).delete()).await, 204);
    is_dead(&at(&lives, &full)).await;
    is_dead(&at(&lives, &start(&stub, settings()))).await;
}

#[tokio::test(start_paused = true)]
async fn processes_that_share_a_directory_hear_of_the_end() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let (one, two) = (start(&stub, settings(dir.path())), start(&stub, settings(dir.path())));
    let (first, second) = (Session::open(&one, "2025-11-25").await, Session::open(&one, "2025-11-25").await);
    assert!(at(&first, &two).works().await, "the same keys");
    assert_eq!(status(second.delete()).await, 204);
    assert!(!at(&second, &two).works().await);
    let third = Session::open(&one, "2025-11-25").await;
    assert_eq!(status(third.delete()).await, 204);
    assert!(!at(&third, &two).works().await);
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_which_not_everything_is_remembered_is_over() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    let other = Session::open(&session.client, "2025-11-25").await;
    assert_eq!(status(other.delete()).await, 204);
    let hour = std::fs::read_dir(dir.path().join("ended")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(hour, "all").unwrap();
    assert!(session.works().await, "what is open stays open");
    let after = start(&stub, settings(dir.path()));
    assert!(!at(&session, &after).works().await && !at(&other, &after).works().await);
}

#[tokio::test]
async fn an_id_expires_unless_it_is_in_use() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let settings = || Settings { session_lifetime: Duration::from_millis(1), ..settings(dir.path()) };
    let session = Session::open(&start(&stub, settings()), "2025-11-25").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(session.works().await);
    assert!(!at(&session, &start(&stub, settings())).works().await);
}

#[tokio::test(start_paused = true)]
async fn an_id_of_another_key_principal_or_endpoint_is_unknown() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let before = start(&stub, settings(dir.path()));
    let hello = before.post(initialize("2025-11-25", json!({})).to_string()).signed_in("ann").send().await;
    let id = hello.header("mcp-session-id").to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let asked = async |settings: Settings, who: Option<&str>| {
        let path = settings.path.clone();
        let client = start(&stub, settings);
        let mut seen = Vec::new();
        for method in ["POST", "GET", "DELETE"] {
            let ask = client.request(method, &path).header("mcp-session-id", &id).body(ping.clone());
            let ask = if let Some(who) = who { ask.signed_in(who) } else { ask };
            seen.push(status(ask).await);
        }
        seen
    };
    let other_key = settings(dir.path()).keep_sessions(Sealer::new(Key::derive("other")), dir.path());
    assert_eq!(asked(other_key, Some("ann")).await, [404; 3]);
    assert_eq!(asked(Settings::default(), Some("ann")).await, [404; 3], "without any key");
    assert_eq!(asked(settings(dir.path()), Some("bob")).await, [404; 3]);
    assert_eq!(asked(settings(dir.path()), None).await, [404; 3]);
    assert_eq!(asked(settings(dir.path()).path("/other"), Some("ann")).await, [404; 3]);
    let rotated = Sealer::new(Key::derive("new")).accepting(Key::derive("key"));
    let rotated = settings(dir.path()).keep_sessions(rotated, dir.path());
    assert_eq!(asked(rotated, Some("ann")).await, [200, 200, 204]);
}

#[tokio::test(start_paused = true)]
async fn garbage_is_unknown_and_opens_nothing() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let client = start(&stub, settings(dir.path()));
    let session = Session::open(&client, "2025-11-25").await;
    let other = start(&stub, settings(dir.path()));
    let calls = stub.calls().len();
    let flipped = format!("{}{}", if session.id.starts_with('B') { "A" } else { "B" }, &session.id[1..]);
    let mut last = session.id.clone();
    last.pop();
    for garbage in [
        "x".to_owned(),
        "A".repeat(1024),
        "A".repeat(16 * 1024),
        flipped,
        last,
        format!("{}A", session.id),
        session.id.to_lowercase(),
    ] {
        let garbage = Session { id: garbage, ..at(&session, &other) };
        for ask in [garbage.request(1, "ping", json!({})), garbage.get(), garbage.delete()] {
            assert_eq!(status(ask).await, 404, "{}", garbage.id);
        }
    }
    let unreadable = at(&session, &other).request(1, "ping", json!({})).header("mcp-session-id", b"\xff\xfe");
    assert_eq!(status(unreadable).await, 404);
    assert_eq!(stub.calls().len(), calls, "nobody behind the endpoint has heard of it");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_opened_anew_counts() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let before = start(&stub, settings(dir.path()));
    let (one, two) = (Session::open(&before, "2025-11-25").await, Session::open(&before, "2025-11-25").await);
    let after = start(&stub, Settings { max_sessions: 1, ..settings(dir.path()) });
    assert!(at(&one, &after).works().await);
    let refused = at(&two, &after).request(1, "ping", json!({})).send().await;
    assert_eq!(refused.header("retry-after"), "30");
    insta::assert_snapshot!(refused.line().await, @r#"503 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Too many sessions: the limit of 1 is reached. Try again later"}}"#);
    assert_eq!(status(at(&two, &after).get()).await, 503);
    assert!(at(&one, &after).works().await, "nobody is pushed out");
    assert_eq!(status(at(&one, &after).delete()).await, 204);
    assert!(at(&two, &after).works().await);
}

#[tokio::test(start_paused = true)]
async fn many_requests_open_it_once() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    let after = start(&stub, Settings { max_sessions: 1, ..settings(dir.path()) });
    stub.hold_discovery(true);
    let session = at(&session, &after);
    let asks: Vec<_> = (0..8).map(|n| tokio::spawn(session.request(n, "ping", json!({})).send())).collect();
    settle().await;
    let delete = tokio::spawn(session.delete().send());
    let deleted = delete.await.unwrap().status;
    stub.hold_discovery(false);
    let mut seen = Vec::new();
    for ask in asks {
        seen.push(ask.await.unwrap().status);
    }
    // It was ended before it was open, and what was about to open it does not.
    assert_eq!((deleted, seen), (204, vec![404; 8]));
    // Without anybody who ends it, all have the same one: there is room for one only.
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    let session = at(&session, &after);
    let asks: Vec<_> = (0..8).map(|n| tokio::spawn(session.request(n, "ping", json!({})).send())).collect();
    for ask in asks {
        assert_eq!(ask.await.unwrap().status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_starts_again_with_its_old_id_is_told_to_leave_it_out() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let session = Session::open(&start(&stub, settings(dir.path())), "2025-11-25").await;
    let after = at(&session, &start(&stub, settings(dir.path())));
    assert_eq!(status(after.post(&initialize("2025-11-25", json!({})))).await, 404);
}

#[tokio::test(start_paused = true)]
async fn keys_without_a_directory() {
    let stub = Stub::new();
    let settings =
        || Settings { session_sealer: Some(Sealer::new(Key::derive("key")).into()), ..Settings::default() };
    let before = start(&stub, settings());
    let (kept, deleted) =
        (Session::open(&before, "2025-11-25").await, Session::open(&before, "2025-11-25").await);
    kept.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    let after = start(&stub, settings());
    let mut events = at(&kept, &after).get().send().await.events();
    assert!(tells_everything(&mut events, false).await, "subscribed to nothing");
    assert_eq!(status(at(&deleted, &after).delete()).await, 204);
    assert!(!at(&deleted, &after).works().await, "the process itself remembers");
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_cannot_be_made_keeps_nobody_from_working() {
    let (dir, stub) = (TempDir::new().unwrap(), Stub::new());
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let session = Session::open(&start(&stub, settings(&file)), "2025-11-25").await;
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    written().await;
    assert_eq!(status(session.delete()).await, 204);
    assert!(!session.works().await);
}
