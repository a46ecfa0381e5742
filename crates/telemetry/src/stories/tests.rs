//! Stories are found, bounded, shared fairly, and outlive their process in a file.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_protocol::{Error, Method, Params, Symbol};
use tidegate_service::events::{self, CallFailed};
use tidegate_service::layers::{EventsLayer, PanicBoundaryLayer};
use tidegate_service::{Call, Context, CorrelationId, InputRequired, Principal, Question, Reply};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncGuard};
use tower::{Layer, Service};

use super::*;

/// Recorders hear of everything in their process: one test at a time.
async fn alone() -> AsyncGuard<'static, ()> {
    static ALONE: AsyncMutex<()> = AsyncMutex::const_new(());
    ALONE.lock().await
}

/// Makes calls, and tells of nothing else that happens in this process.
async fn make(
    stories: &Arc<Stories>,
    params: Value,
    who: &str,
    reply: impl Fn() -> Reply + Clone + Send + Sync + 'static,
) -> CorrelationId {
    let recorder: Arc<dyn Recorder> = stories.clone();
    let answer = move |_: Call| {
        let reply = reply.clone();
        async move { Ok::<_, Infallible>(reply()) }
    };
    let params = Params::parse(&Json::of(&params).unwrap(), &Default::default()).unwrap();
    let mut call = Call::new(Method::ToolsCall, params, Context::local());
    call.context.principal = Principal::subject(who);
    let id = call.context.correlation;
    events::add(recorder.clone());
    EventsLayer.layer(PanicBoundaryLayer.layer(tower::service_fn(answer))).call(call).await.unwrap();
    events::remove(&recorder);
    id
}

async fn call(stories: &Arc<Stories>, tool: &str, fails: bool) -> CorrelationId {
    make(stories, json!({"name": tool, "arguments": {"password": "p"}}), "ann", move || match fails {
        false => Reply::Complete(Json::empty_object()),
        true => {
            let detail = "the socket sk-stories-0001 is closed";
            events::emit(&Event::CallFailed(CallFailed { symbol: Symbol::Unavailable, detail }));
            Reply::Error(Error::new(Symbol::Unavailable, "Try again later"))
        }
    })
    .await
}

fn all(stories: &Stories, wanted: &Wanted<'_>) -> Vec<Value> {
    stories.find(wanted, 10).stories.iter().map(|story| story.to().unwrap()).collect()
}

#[tokio::test]
async fn stories_are_found_by_id_by_number_by_tool_and_by_failure_and_the_oldest_go_first() {
    let _alone = alone().await;
    tidegate_service::secrets::register("sk-stories-0001");
    let stories = Arc::new(Stories::new(100_000));
    let (first, failed) = (call(&stories, "echo", false).await, call(&stories, "break", true).await);
    let find = |wanted: Wanted<'_>| all(&stories, &wanted);
    let found = find(Wanted::default());
    assert_eq!((found.len(), &found[0]["tool"]), (2, &"break".into()), "the latest first: {found:?}");
    assert_eq!(find(Wanted { id: Some(first.as_str()), ..Wanted::default() }), found[1..]);
    assert_eq!(find(Wanted { id: Some("2"), ..Wanted::default() }), found[..1], "each has a number");
    assert_eq!(find(Wanted { tool: Some("echo"), ..Wanted::default() }), found[1..]);
    assert_eq!(find(Wanted { failed: true, ..Wanted::default() }), found[..1]);
    assert_eq!(find(Wanted { id: Some("none"), ..Wanted::default() }), [Value::Null; 0]);
    assert_eq!(stories.find(&Wanted::default(), 1).more, 1);
    let story = &found[0];
    assert_eq!((&story["id"], &story["outcome"]), (&failed.as_str().into(), &"error".into()));
    assert_eq!(
        (&story["error"], &story["message"]),
        (&"SERVICE_UNAVAILABLE".into(), &"Try again later".into())
    );
    assert_eq!(story["events"][0]["why"], "the socket *** is closed", "{story}");
    assert!(!format!("{found:?}").contains("password"), "arguments are no part of it");

    let long = "x".repeat(200);
    for _ in 0..500 {
        call(&stories, &long, false).await;
    }
    let kept = stories.find(&Wanted::default(), usize::MAX).stories.len();
    assert!((80..400).contains(&kept), "{kept}");
    let shelf = stories.lock();
    assert_eq!(shelf.stories.latest_first().map(|kept| kept.size).sum::<usize>(), shelf.bytes);
    assert!(shelf.bytes <= 100_000, "{}", shelf.bytes);
    drop(shelf);
    assert!(find(Wanted { tool: Some("echo"), ..Wanted::default() }).is_empty());
}

#[tokio::test]
async fn whoever_calls_most_pushes_out_nobody_else() {
    let _alone = alone().await;
    let stories = Arc::new(Stories::new(100_000));
    let done = || Reply::Complete(Json::empty_object());
    for at in 0..20 {
        make(&stories, json!({"name": format!("quiet_{at}")}), "quinn", done).await;
    }
    // Nor does one with two names.
    for name in ["lou", "louise"] {
        for _ in 0..1000 {
            make(&stories, json!({"name": "loud"}), name, done).await;
        }
    }
    for at in 0..20 {
        let tool = format!("quiet_{at}");
        let wanted = Wanted { tool: Some(&tool), ..Wanted::default() };
        assert_eq!(all(&stories, &wanted).len(), 1, "{tool}");
    }
    let loud = stories.find(&Wanted { tool: Some("loud"), ..Wanted::default() }, usize::MAX).stories.len();
    assert!((20..500).contains(&loud), "{loud}");
}

#[tokio::test]
async fn rounds_of_one_call_are_linked_and_bodies_are_there_for_those_who_want_them() {
    let _alone = alone().await;
    let stories = Arc::new(Stories::new(100_000).with_bodies(Some(1000)));
    let question = Question {
        key: "k".into(),
        method: Method::from_name("elicitation/create"),
        params: Json::empty_object(),
    };
    let asks = move || {
        let (questions, state) = (vec![question.clone()], Some("state 7".into()));
        Reply::InputRequired(InputRequired { questions, state, original: None })
    };
    let arguments = json!({"query": "fish", "api_key": "hidden"});
    let first = make(&stories, json!({"name": "t", "arguments": arguments}), "ann", asks).await;
    let retry =
        json!({"name": "t", "arguments": arguments, "requestState": "state 7", "inputResponses": {"k": {}}});
    let result = || Reply::Complete(Json::trusted(r#"{"content":[{"type":"text","text":"tokens: 3"}]}"#));
    make(&stories, retry, "ann", result).await;
    let found = all(&stories, &Wanted::default());
    assert_eq!(found[1]["asks"], json!(["elicitation/create"]));
    assert_eq!(found[1]["outcome"], "input_required");
    assert_eq!((&found[0]["continues"]["id"], &found[0]["answers"]), (&json!(first.as_str()), &json!(1)));
    assert_eq!(found[0]["arguments"]["json"], json!({"query": "fish", "api_key": "***"}));
    assert_eq!(found[0]["result"]["json"]["content"][0]["text"], "tokens: 3");
}

#[tokio::test]
async fn a_file_has_them_for_the_next_process_within_its_bound() {
    let _alone = alone().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stories.jsonl");
    let room = 20_000;
    let (stories, wrong) = Stories::new(room).with_file(path.clone(), room);
    assert!(wrong.is_none(), "{wrong:?}");
    let stories = Arc::new(stories);
    for at in 0..200 {
        call(&stories, &format!("tool_{at}"), at % 10 == 9).await;
    }
    stories.close();
    let latest = all(&stories, &Wanted::default());
    let sizes = [&path, &folder.path().join("stories.jsonl.old")].map(|path| {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::metadata(path).unwrap().len()
    });
    assert!(sizes.iter().sum::<u64>() <= room as u64, "{sizes:?}");

    // Somebody else has written there, too, and a line was cut off.
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("no story\n{\"id\":7}\n[1]\n{\"id\":\"x\",\"number\":999999,\"outc");
    std::fs::write(&path, text).unwrap();
    let (again, wrong) = Stories::new(room).with_file(path.clone(), room);
    assert!(wrong.is_none(), "{wrong:?}");
    assert_eq!(all(&again, &Wanted::default()), latest);
    let failed = all(&again, &Wanted { failed: true, ..Wanted::default() });
    assert!(failed.iter().all(|story| story["outcome"] == "error") && !failed.is_empty(), "{failed:?}");
    let again = Arc::new(again);
    call(&again, "later", false).await;
    let found = all(&again, &Wanted::default());
    assert_eq!((&found[0]["tool"], &found[0]["number"]), (&json!("later"), &json!(201)), "{found:?}");
    again.close();
    let read = Stories::read(&path, room).unwrap();
    assert_eq!(all(&read, &Wanted { tool: Some("later"), ..Wanted::default() }).len(), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_stops_nothing() {
    let _alone = alone().await;
    let folder = tempfile::tempdir().unwrap();
    let (stories, _) = Stories::new(100_000).with_file(folder.path().join("none/stories.jsonl"), 100_000);
    let stories = Arc::new(stories);
    call(&stories, "echo", false).await;
    stories.close();
    assert_eq!(all(&stories, &Wanted::default()).len(), 1);
    assert!(Stories::read(folder.path(), 1000).is_err(), "a folder is no file");
}

#[tokio::test]
async fn a_panic_is_told() {
    let _alone = alone().await;
    let stories = Arc::new(Stories::new(100_000));
    make(&stories, json!({"name": "breaks"}), "ann", || panic!("the tide is out")).await;
    let found = all(&stories, &Wanted::default());
    assert_eq!(found[0]["events"][0]["what"], "panicked", "{found:?}");
    assert_eq!(found[0]["events"][0]["why"], "the tide is out");
    assert_eq!((&found[0]["outcome"], &found[0]["error"]), (&json!("error"), &json!("INTERNAL_ERROR")));
}
