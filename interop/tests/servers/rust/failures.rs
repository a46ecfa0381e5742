//! What does not go well: servers that are not there, that end, that speak another era; questions that nobody answers.

use std::time::Instant;

use serde_json::{Value, json};
use tidegate_client::{AppError, Change, Client, EraChoice, Filter, Target};
use tidegate_protocol::Revision;

use super::program;
use crate::lifecycle;
use crate::meeting::{Meeting, Over, eventually, held, soon};
use crate::server::{Program, Serving, kill, processes_with};

/// Connects where that must fail.
async fn refused(target: Target, era: EraChoice) -> AppError {
    let what = format!("connecting to {target}");
    let builder = Client::builder(target).expect("a target").configure(|options| options.era = era);
    match soon(&what, builder.connect()).await {
        Ok(_) => panic!("{what}: nobody should be there"),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there() {
    let error = refused(Target::command("tidegate-no-such-program", ["x"]), EraChoice::Auto).await;
    assert_eq!(error.code, "E201", "{error}");
    assert!(error.message.contains("tidegate-no-such-program"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_at_once() {
    let script = "echo 'I need a key' >&2; exit 3";
    let error = refused(Target::command("sh", ["-c", script]), EraChoice::Auto).await;
    assert_eq!(error.code, "E201", "{error}");
    assert!(error.message.contains("I need a key"), "it says what the program said: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("an address")
    };
    let target = Target::url(&format!("http://{address}/mcp")).expect("an address");
    let error = refused(target, EraChoice::Auto).await;
    assert_eq!(error.code, "E201", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_path() {
    let serving = Serving::start(&program(Over::Http));
    let mut elsewhere = serving.target("");
    elsewhere.url.set_path("/nowhere");
    let error = refused(elsewhere.into(), EraChoice::Auto).await;
    assert!(matches!(error.code, "E201" | "E203"), "{error}");
    assert!(error.message.contains("404"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_era_that_the_server_does_not_speak() {
    for over in [Over::Stdio, Over::Http] {
        let legacy = program(over).arg("legacy");
        let serving = (over == Over::Http).then(|| Serving::start(&legacy));
        let (legacy, mark) = legacy.marked();
        let target = serving.as_ref().map_or_else(|| legacy.target(), |serving| serving.target("").into());
        let error = refused(target, EraChoice::Modern).await;
        assert_eq!(error.code, "E203", "{over:?}: {error:?}");
        let gone = async || processes_with(&mark) == 0;
        eventually("a client that could not connect leaves nothing behind", gone).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_revisions_are_spoken_when_they_are_offered() {
    for over in [Over::Stdio, Over::Http] {
        let serving = (over == Over::Http).then(|| Serving::start(&program(over)));
        for offer in [Revision::V2025_06_18, Revision::V2025_03_26, Revision::V2024_11_05] {
            let target =
                serving.as_ref().map_or_else(|| program(over).target(), |serving| serving.target("").into());
            let builder = Client::builder(target).expect("a target");
            let client = builder.configure(|options| options.offer_revision(offer)).connect().await;
            let client = client.unwrap_or_else(|e| panic!("{over:?} {offer}: {e}"));
            assert_eq!(client.server().await.expect("facts").revision, offer, "{over:?}");
            let said = client.call("echo", json!({"message": "hi"})).await.expect("an echo");
            assert_eq!(said.text(), "hi", "{over:?} {offer}");
            client.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_nobody_answers() {
    for over in [Over::Stdio, Over::Http] {
        let serving = (over == Over::Http).then(|| Serving::start(&program(over)));
        for era in [EraChoice::Auto, EraChoice::Legacy] {
            let target =
                serving.as_ref().map_or_else(|| program(over).target(), |serving| serving.target("").into());
            let builder = Client::builder(target).expect("a target").configure(|options| options.era = era);
            let client = builder.connect().await.expect("connected");
            match soon("a call that asks", client.call("greet", Value::Null).into_future()).await {
                Err(error) => assert!(matches!(error.code, "E205" | "E201"), "{over:?} {era:?}: {error:?}"),
                Ok(result) => panic!("{over:?} {era:?}: {}", result.json()),
            }
            let said = client.call("echo", json!({"message": "hi"})).await.expect("an echo after that");
            assert_eq!(said.text(), "hi");
            client.close().await;
        }
    }
}

/// Over stdio nothing says which call a question is about.
#[tokio::test(flavor = "multi_thread")]
async fn several_questions_at_once() {
    for (over, era, door) in [
        (Over::Stdio, EraChoice::Auto, false),
        (Over::Stdio, EraChoice::Legacy, false),
        (Over::Stdio, EraChoice::Legacy, true),
        (Over::Http, EraChoice::Auto, false),
        (Over::Http, EraChoice::Legacy, false),
        (Over::Http, EraChoice::Legacy, true),
    ] {
        let what = format!("{over:?} {era:?} behind a door: {door}");
        let meeting = match door {
            false => Meeting::open(&program(over), over, "", era).await,
            true => Meeting::behind_a_door(&program(over), over, "", era).await,
        };
        for _ in 0..10 {
            let greet = || meeting.text("greet", Value::Null);
            let (echo, think) =
                (meeting.text("echo", json!({"message": "hi"})), meeting.text("think", Value::Null));
            let (a, b, c, d, e) = tokio::join!(greet(), greet(), think, greet(), echo);
            let said = [&*a, &*b, &*c, &*d, &*e];
            assert_eq!(said, ["Hello, Ada!", "Hello, Ada!", "It is 42", "Hello, Ada!", "hi"], "{what}");
        }
        assert_eq!(held(&meeting.seen.questions).len(), 30, "{what}");
        meeting.close().await;
    }
}

/// Silence is no answer: the server may be legacy, or may not have started yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_slowly() {
    for words in ["stdio", "stdio legacy"] {
        lifecycle::starts_slowly(&format!("'{}' {words}", program(Over::Stdio).program), &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_outlives_the_server() {
    for era in [EraChoice::Auto, EraChoice::Legacy] {
        let meeting = Meeting::open(&program(Over::Stdio), Over::Stdio, "", era).await;
        let filter = Filter { tools: true, ..Filter::default() };
        let changes = meeting.client.subscribe(filter).await.expect("a subscription");
        kill(&meeting.text("pid", Value::Null).await);
        // A call that is already under way when the process ends may have been executed, and is not made again.
        let wake_up = async || meeting.client.call("echo", json!({"message": "wake up"})).await.is_ok();
        eventually("the server is back", wake_up).await;
        // Whatever happened while nobody listened is told as a change.
        assert_eq!(soon("the gap", changes.next()).await, Some(Change::Tools), "{era:?}");
        meeting.text("grow", Value::Null).await;
        assert_eq!(soon("a change at the new process", changes.next()).await, Some(Change::Tools), "{era:?}");
        meeting.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_outlives_a_server_that_listens() {
    for era in [EraChoice::Auto, EraChoice::Legacy] {
        let meeting = Meeting::open(&program(Over::Http), Over::Http, "", era).await;
        let filter = Filter { tools: true, ..Filter::default() };
        let changes = meeting.client.subscribe(filter).await.expect("a subscription");
        let _again = lifecycle::restarted(&meeting, &program(Over::Http));
        assert_eq!(soon("the gap", changes.next()).await, Some(Change::Tools), "{era:?}");
        meeting.text("grow", Value::Null).await;
        assert_eq!(soon("a change at the new server", changes.next()).await, Some(Change::Tools), "{era:?}");
        meeting.close().await;
    }
}

/// A program that takes no notice of its input's end has to be ended by force.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_end_by_itself() {
    let inner = program(Over::Stdio);
    let script = format!("trap '' TERM; '{}' stdio; while :; do sleep 1; done", inner.program);
    let (stubborn, mark) = Program::new("sh", &["-c", &script]).marked();
    let client = soon("connecting", Client::connect(stubborn.target())).await.expect("connected");
    client.call("echo", json!({"message": "hi"})).await.expect("an echo");
    assert!(processes_with(&mark) > 0);
    let start = Instant::now();
    soon("closing", client.close()).await;
    assert_eq!(processes_with(&mark), 0, "gone when `close` returns, after {:?}", start.elapsed());
}

/// A client that is dropped without `close` leaves nothing behind either.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_dropped() {
    let (program, mark) = program(Over::Stdio).marked();
    let client = soon("connecting", Client::connect(program.target())).await.expect("connected");
    client.call("echo", json!({"message": "hi"})).await.expect("an echo");
    drop(client);
    eventually("the process is gone", async || processes_with(&mark) == 0).await;
}
