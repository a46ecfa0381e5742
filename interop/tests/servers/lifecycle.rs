//! What happens when a server dies, and when we leave.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::meeting::{self, Meeting, eventually, soon};
use crate::server::{Program, Serving, kill, processes_with};
use crate::vocabulary::Talk;

/// A process that is killed is started again by the next call.
pub(crate) async fn comes_back_after_a_kill(meeting: &Meeting, pid: &str) {
    let call = meeting.client.call("wait", Value::Null);
    let waiting = tokio::spawn(call.into_future());
    tokio::time::sleep(Duration::from_millis(300)).await;
    kill(pid);
    let outcome = soon("a call whose server is killed", waiting).await.expect("no panic");
    match outcome {
        Err(error) => {
            assert_eq!(error.code, "E201", "what becomes of a call whose server is killed: {error}")
        }
        // Behind a door it is a result for the model.
        Ok(result) => assert!(result.is_error() && meeting.between.is_some(), "{}", result.json()),
    }
    let now = meeting.text("pid", Value::Null).await;
    assert_ne!(now, pid, "another process");
}

/// A server that listens may go and come back; sessions that it has forgotten are opened again.
pub(crate) async fn comes_back_after_a_restart(talk: &Talk, pid: &str) {
    let _again = restarted(&talk.meeting, &talk.way.program);
    let now = talk.meeting.text("pid", Value::Null).await;
    assert_ne!(now, pid, "another process");
    soon("closing", talk.meeting.close()).await;
}

/// Kills the server that listens and starts it again where it was.
pub(crate) fn restarted(meeting: &Meeting, program: &Program) -> Serving {
    let serving = meeting.serving.as_ref().expect("a server that listens");
    tokio::task::block_in_place(|| serving.replace(program))
}

/// After `close` there is no process left.
pub(crate) async fn leaves_nothing_behind(meeting: Meeting) {
    if let Some(mark) = &meeting.mark {
        assert!(processes_with(mark) > 0, "the process can be found while it is there");
    }
    soon("closing", meeting.close()).await;
    if let Some(mark) = &meeting.mark {
        eventually("the processes are gone", async || processes_with(mark) == 0).await;
    }
}

/// A server that has not started yet when our client stops waiting for a sign of its era can be spoken to all the same.
pub(crate) async fn starts_slowly(command: &str, env: &[(&str, String)]) {
    let mut program = Program::new("sh", &["-c", &format!("sleep 1; exec {command}")]);
    for (name, value) in env {
        program = program.env(name, value);
    }
    let seen = Arc::default();
    let builder = meeting::builder(program.target(), &seen);
    let client = builder.configure(|options| options.probe_timeout = Duration::from_millis(300)).connect();
    let client = soon(command, client).await.unwrap_or_else(|e| panic!("{command}: {e}"));
    for (tool, arguments, text) in
        [("echo", json!({"message": "hi"}), "hi"), ("greet", Value::Null, "Hello, Ada!")]
    {
        let result = soon(command, client.call(tool, arguments).into_future()).await;
        let result = result.unwrap_or_else(|e| panic!("{command}: {tool}: {e}"));
        assert_eq!(result.text(), text, "{command}: {tool}");
    }
    client.close().await;
}
