//! What goes in and what comes out.

use super::*;
use crate::transport::MessageChannel;

fn request(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)
}

#[tokio::test]
async fn messages_go_there_and_back() {
    let (child, mut events) = start("cat", &settings());
    assert!(child.is_open() && child.id().is_some());
    child.send(request(1).as_bytes()).unwrap();
    assert_eq!(events.next().await, "?1 m");
    // Line ends inside a message, and a batch.
    child.send(b"{\"jsonrpc\":\"2.0\",\r\n\"method\":\"n\",\n\"params\":{}}").unwrap();
    assert_eq!(events.next().await, "!n {}");
    child.send(format!("[{},7,{}]", request(2), request(3)).as_bytes()).unwrap();
    assert_eq!(events.next().await, "?2 m");
    assert!(events.next().await.starts_with("spoiled None INTERNAL_ERROR"));
    assert_eq!(events.next().await, "?3 m");
    child.close().await;
    assert_eq!(events.rest().await, [r#"closed the connection to the server process "test" was closed"#]);
    let refused = child.send(b"{}").unwrap_err();
    assert!(refused.is_unexecuted() && !child.is_open());
    assert_eq!(refused.message(), r#"the connection to the server process "test" was closed"#);
}

async fn order() {
    let (child, mut events) = start("cat", &settings());
    let padding = "x".repeat(500);
    for id in 0..5_000 {
        // Much more than a pipe holds, in one go and then in small ones.
        child
            .send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","pad":"{padding}"}}"#).as_bytes())
            .unwrap();
        if id > 4_000 && id % 3 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for id in 0..5_000 {
        assert_eq!(events.next().await, format!("?{id} m"));
    }
    child.close().await;
}

#[tokio::test]
async fn many_messages_keep_their_order() {
    order().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_messages_keep_their_order_on_threads() {
    order().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_of_many_senders_stay_whole() {
    let (child, mut events) = start("cat", &settings());
    let child = Arc::new(child);
    for sender in 0..8 {
        let child = child.clone();
        tokio::spawn(async move {
            for n in 0..500 {
                child.send(request(sender * 1_000 + n).as_bytes()).unwrap();
                tokio::task::yield_now().await;
            }
        });
    }
    let mut next = [0; 8];
    for _ in 0..4_000 {
        let event = events.next().await;
        let id: usize = event[1..event.len() - 2].parse().unwrap();
        assert_eq!(id % 1_000, next[id / 1_000], "{event}");
        next[id / 1_000] += 1;
    }
}

#[tokio::test]
async fn garbage_between_messages_is_skipped() {
    let script = r#"
        echo 'Server running on stdio'
        echo '{"jsonrpc":"2.0","id":1,"result":{}}'
        echo '{"level":30,"id":2,"msg":"a log line"}'
        printf '\377\376\n'
        echo '{"jsonrpc":"2.0","id":3,"result":{"n":NaN}}'
        echo '{"result":{"n":NaN},"jsonrpc":"2.0","id":4}'
        echo '{"jsonrpc":"2.0","id":5,"method":"ask","params":[]}'
        echo '{"jsonrpc":"2.0","id":7,"result":'$(printf '[%.0s' $(seq 200))$(printf ']%.0s' $(seq 200))'}'
        printf '{"jsonrpc":"2.0","id":6,"result":{}}'
    "#;
    let (_child, mut events) = start(script, &settings());
    assert_eq!(events.next().await, "=1 {}");
    for id in ["Some(3)", "Some(4)"] {
        let event = events.next().await;
        let start =
            format!(r#"spoiled {id} INTERNAL_ERROR: the server process "test" sent a broken message: "#);
        assert!(event.starts_with(&start), "{event}");
    }
    assert!(events.next().await.starts_with("spoiled None INTERNAL_ERROR"));
    let deep = events.next().await;
    assert!(deep.starts_with("spoiled Some(7) INTERNAL_ERROR") && deep.contains("nested deeper"), "{deep}");
    assert_eq!(events.next().await, "=6 {}");
    assert_eq!(events.rest().await, [r#"closed the server process "test" exited with status 0"#]);
}

#[tokio::test]
async fn answers_that_are_too_large_fail_their_request() {
    let script = r#"
        big=$(printf '%010000d' 0)
        echo '{"jsonrpc":"2.0","id":"a","result":{"id":1,"text":"'$big'"}}'
        echo '{"result":{"id":1,"text":"'$big'"},"jsonrpc":"2.0","id":7}'
        echo '{"result":{"id":1,"text":"'$big'"},"id":"b","jsonrpc":"2.0","more":"'$big'"}'
        echo '{"method":"ask","params":{"id":1,"text":"'$big'"},"jsonrpc":"2.0","id":8}'
        echo '{"jsonrpc":"2.0","id":9,"result":{}}'
    "#;
    let limits = Limits { max_bytes: 5_000, ..Limits::default() };
    let (_child, mut events) = start(script, &ChildSettings { limits, ..settings() });
    for id in [r#"Some("a")"#, "Some(7)", r#"Some("b")"#, "None"] {
        let what = r#"the server process "test" sent a message that is too large: it may have 5000 bytes"#;
        assert_eq!(events.next().await, format!("spoiled {id} TOO_LARGE: {what}"));
    }
    assert_eq!(events.next().await, "=9 {}");
}

#[tokio::test]
async fn a_child_that_does_not_read_is_not_waited_for() {
    let (child, mut events) = start("exec sleep 1000", &ChildSettings { max_backlog: 1 << 20, ..settings() });
    let message =
        format!(r#"{{"jsonrpc":"2.0","method":"n","params":{{"text":"{}"}}}}"#, "x".repeat(100_000));
    let sent = (0..100).take_while(|_| child.send(message.as_bytes()).is_ok()).count();
    assert!((10..=11).contains(&sent), "{sent} messages went into 64 KiB of pipe and 1 MiB of backlog");
    let refused = child.send(message.as_bytes()).unwrap_err();
    assert!(refused.is_unexecuted());
    assert!(refused.message().contains("does not read its input"), "{refused}");
    assert!(child.is_open());
    child.close().await;
    assert_eq!(events.rest().await.len(), 1);
}

#[tokio::test]
async fn the_environment_is_explicit() {
    let mut command =
        command(r#"env | while read -r line; do echo "{\"jsonrpc\":\"2.0\",\"method\":\"$line\"}"; done"#);
    command.env.insert("KEY".to_owned(), "value".to_owned());
    command.cwd = Some("/".into());
    let (sender, receiver) = mpsc::unbounded_channel();
    let _child = Child::spawn("test", &command, &settings(), &log(), Arc::new(Record(sender))).unwrap();
    let seen = Events(receiver).rest().await;
    let has = |name: &str| seen.iter().any(|event| event.starts_with(&format!("!{name}=")));
    assert!(seen.contains(&"!KEY=value {}".to_owned()) && seen.contains(&"!PWD=/ {}".to_owned()), "{seen:?}");
    assert!(has("PATH"));
    // Cargo sets these for tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_none() || !has("CARGO_MANIFEST_DIR"));
    assert!(!seen.iter().any(|event| event.starts_with("!CARGO")), "{seen:?}");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let here = |program: &str| Command { program: program.to_owned(), ..Command::default() };
    for (command, want) in [
        (here("no-such-program"), r#"cannot start "no-such-program": no such program in PATH"#),
        (here("/no/such/file"), r#"cannot start "/no/such/file": there is no such file"#),
        (here("/etc/passwd"), r#"cannot start "/etc/passwd": it may not be executed here"#),
        (
            Command { cwd: Some("/no/such".into()), ..here("sh") },
            r#"cannot start "sh": there is no directory "/no/such" to run it in"#,
        ),
    ] {
        let (sender, _receiver) = mpsc::unbounded_channel();
        let refused =
            Child::spawn("test", &command, &settings(), &log(), Arc::new(Record(sender))).err().expect(want);
        assert_eq!(refused.detail(), want);
        assert_eq!(refused.message(), r#"The server "test" cannot be started"#);
        assert!(refused.is_unexecuted());
    }
}
