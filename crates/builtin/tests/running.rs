//! A server of the program is opened when somebody calls, tried again when that fails, and closed at the end.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_builtin::{Builtin, BuiltinServer, Builtins, Host, Opened, Reading};
use tidegate_protocol::{Error, Json, Method, Params, Symbol};
use tidegate_service::{Call, Context, Door, Reply};

struct Sluice;

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Written {}

static IS_STUCK: AtomicBool = AtomicBool::new(true);
static OPENED: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);

impl BuiltinServer for Sluice {
    const NAME: &'static str = "sluice";
    const DESCRIPTION: &'static str = "A sluice.";
    type Written = Written;
    type Settings = ();

    fn settings(_: &Written, _: &mut Reading<'_>) {}

    fn open((): &(), _: Host) -> Result<Opened, Error> {
        if IS_STUCK.load(Ordering::SeqCst) {
            return Err(Error::new(Symbol::Unavailable, "it is stuck at /srv/sluice"));
        }
        OPENED.fetch_add(1, Ordering::SeqCst);
        let door =
            tower::service_fn(|_: Call| async { Ok::<_, Infallible>(Reply::Complete(Json::empty_object())) });
        Ok(Opened::new(door).on_close(|| async {
            CLOSED.fetch_add(1, Ordering::SeqCst);
        }))
    }
}

async fn call(door: &impl Door) -> Result<(), String> {
    let params = Params::parse(&Json::empty_object(), &Default::default()).unwrap();
    match door.answer(Call::new(Method::ToolsList, params, Context::local())).await {
        Ok(Reply::Complete(_)) => Ok(()),
        Ok(Reply::Error(error)) => Err(error.message().to_owned()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_is_opened_by_the_first_call_and_closed_once() {
    let running = Builtin::of::<Sluice>().start("west", None, Host::default());
    assert_eq!(
        call(&running).await.unwrap_err(),
        "The sluice cannot be opened; the log of the gateway says why",
        "where things are is none of the caller's business"
    );
    let told = running.open().await.unwrap_err();
    assert_eq!(told.message(), "server \"west\": it is stuck at /srv/sluice", "but the operator's");
    IS_STUCK.store(false, Ordering::SeqCst);
    // It was tried just now: the next attempt comes after a pause.
    tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while call(&running).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
    call(&running).await.unwrap();
    assert_eq!(OPENED.load(Ordering::SeqCst), 1);
    running.close().await;
    assert_eq!(CLOSED.load(Ordering::SeqCst), 1);
}

#[test]
#[should_panic(expected = "two built-in servers are called \"sluice\"")]
fn names_are_taken_once() {
    let _ = Builtins::new([Builtin::of::<Sluice>(), Builtin::of::<Sluice>()]);
}
