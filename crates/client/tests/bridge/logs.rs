//! Log messages that a legacy server sends outside of the stream of a call.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Router, http::header};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tidegate_client::{Client, ClientSettings, Instances};
use tidegate_protocol::Level;
use tidegate_service::{Call, Door, Notice, Outbox, Reply};
use tokio::sync::mpsc;

use crate::pipe;
use crate::rig::{Who, call, person, session};

/// Who may hear a log message, and what it says.
type Heard = Arc<Mutex<Vec<(bool, String)>>>;

/// A call of somebody who wants to hear what is logged at this level.
fn listening(who: &Who, level: Option<Level>) -> (Call, Outbox) {
    let (mut call, outbox) = (call(who, "log", json!({})), Outbox::default());
    call.context.log_level = level;
    call.context.outbox = Some(outbox.clone());
    (call, outbox)
}

fn logs(outbox: &Outbox) -> Vec<String> {
    let told = std::iter::from_fn(|| outbox.try_next());
    told.map(|notice| match notice {
        Notice::Log(params) => params.to::<Value>().unwrap()["data"].as_str().unwrap().to_owned(),
        other => panic!("{other:?}"),
    })
    .collect()
}

fn message(level: &str, data: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": data}})
}

/// A legacy server over HTTP that logs on the stream of the session, and answers calls after that.
async fn logs_on_the_stream_of_the_session() -> String {
    let (log, logged) = mpsc::unbounded_channel::<Value>();
    let logged = Arc::new(Mutex::new(Some(logged)));
    let stream = move || async move {
        let logged = logged.lock().unwrap().take().expect("one stream");
        let logged = futures_util::stream::unfold(logged, |mut logged| async move {
            let message = logged.recv().await?;
            Some((Ok::<_, Infallible>(Event::default().data(message.to_string())), logged))
        });
        Sse::new(logged.boxed())
    };
    let answer = move |body: String| async move {
        let request: Value = serde_json::from_str(&body).unwrap();
        let result = match request["method"].as_str().unwrap() {
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"logging": {}, "tools": {}},
                "serverInfo": {"name": "logs", "version": "1"}})
            }
            "tools/call" => {
                for n in 0..20 {
                    log.send(message("info", &n.to_string())).unwrap();
                }
                // Long enough to be sent before the answer.
                tokio::time::sleep(Duration::from_millis(5)).await;
                json!({"content": []})
            }
            _ if request["id"].is_null() => return axum::http::StatusCode::ACCEPTED.into_response(),
            _ => json!({}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        let headers = [("mcp-session-id", "one"), (header::CONTENT_TYPE.as_str(), "application/json")];
        (headers, answer).into_response() as Response
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/mcp", get(stream).post(answer));
    // What is written goes out at once.
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

#[tokio::test]
async fn what_the_stream_of_the_session_holds_is_told_before_the_reply() {
    let url = logs_on_the_stream_of_the_session().await;
    let options = |options: &mut ClientSettings| {
        options.era = tidegate_client::EraChoice::Legacy;
        options.sessions.instances = Instances::PerUser;
    };
    let client =
        Client::builder(url.as_str()).unwrap().settings(ClientSettings::default()).configure(options);
    let door = client.lazy().unwrap().door();
    for _ in 0..20 {
        let (call, outbox) = listening(&Who::default(), Some(Level::Debug));
        assert!(matches!(door.answer(call).await, Ok(Reply::Complete(_))));
        assert_eq!(logs(&outbox), (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_log_message_is_for_the_only_call_in_flight_else_for_those_whose_session_it_is() {
    let heard = Heard::default();
    let (ann, bob, eve) = (session(), session(), person("eve"));
    let (context, other) = (call(&bob, "b", json!({})).context, call(&eve, "e", json!({})).context);
    let (client, mut pipes) = pipe::client_with(Instances::PerUser, |builder| {
        let heard = heard.clone();
        builder.on_session_log(move |audience, params| {
            let is_theirs = audience.includes(&context) && !audience.includes(&other);
            heard.lock().unwrap().push((is_theirs, params.str("data").unwrap().into_owned()));
            true
        })
    });
    let door = client.door();
    let (first, outbox) = listening(&ann, Some(Level::Info));
    let calling = tokio::spawn({
        let door = door.clone();
        async move { door.answer(first).await.unwrap() }
    });
    let mut pipe = pipes.next().await;
    let set = pipe.read().await;
    assert_eq!((&set["method"], &set["params"]["level"]), (&json!("logging/setLevel"), &json!("info")));
    pipe.answer(&set, json!({})).await;
    let request = pipe.called().await;
    for (level, data) in [("debug", "quiet"), ("error", "loud")] {
        pipe.say(message(level, data)).await;
    }
    // A second call: now nothing says whose it is.
    let (second, silent) = listening(&bob, None);
    let calling_too = tokio::spawn({
        let door = door.clone();
        async move { door.answer(second).await.unwrap() }
    });
    let request_too = pipe.called().await;
    pipe.say(message("error", "whose")).await;
    for request in [request, request_too] {
        pipe.answer(&request, json!({"content": []})).await;
    }
    assert!(matches!(calling.await.unwrap(), Reply::Complete(_)));
    assert!(matches!(calling_too.await.unwrap(), Reply::Complete(_)));
    assert_eq!(logs(&outbox), ["loud"], "at its level");
    assert_eq!(logs(&silent), [""; 0]);
    assert_eq!(*heard.lock().unwrap(), [(true, "whose".to_owned())], "for the user, and no other");

    // The most that anybody wants is asked for, and no less after that.
    let (third, _outbox) = listening(&ann, Some(Level::Debug));
    let calling = tokio::spawn(async move { door.answer(third).await.unwrap() });
    let set = pipe.read().await;
    assert_eq!(set["params"]["level"], "debug");
    pipe.answer(&set, json!({})).await;
    let request = pipe.called().await;
    pipe.answer(&request, json!({"content": []})).await;
    assert!(matches!(calling.await.unwrap(), Reply::Complete(_)));
}
