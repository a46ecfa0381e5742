//! Tools that run as tasks for clients that know tasks, and one that never does.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::{Cx, Elicit, Error, Symbol, TaskSupport, Tool, ToolError};
use tokio::time::sleep;

/// How long a job works before it fails: long enough to be seen working.
const WORK: Duration = Duration::from_millis(300);

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// A name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Compute {
    /// How long to compute.
    #[schemars(range(min = 0, max = 3600))]
    seconds: f64,
    /// What to call the computation.
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct File {
    /// The file to delete.
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// Really?
    confirm: bool,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("greet")
            .description("Greets at once, never as a task")
            .handler(|args: Name, _cx: Cx| async move { format!("Hello, {}!", args.name) }),
        Tool::new("slow_compute")
            .description("Computes for some seconds; as a task where the client knows tasks")
            .task(TaskSupport::Optional)
            .handler(|args: Compute, _cx: Cx| async move {
                sleep(Duration::from_secs_f64(args.seconds)).await;
                format!("Computed {} for {} s", args.label.as_deref().unwrap_or("something"), args.seconds)
            }),
        Tool::new("failing_job")
            .description("Only runs as a task, and fails as a tool")
            .task(TaskSupport::Required)
            .handler(|(), _cx: Cx| async {
                sleep(WORK).await;
                Err::<(), _>(ToolError::from("The job failed, as it always does"))
            }),
        Tool::new("protocol_error_job")
            .description("Fails with a protocol error; as a task where the client knows tasks")
            .task(TaskSupport::Optional)
            .handler(|(), _cx: Cx| async {
                sleep(WORK).await;
                let error = Error::new(Symbol::Internal, "The job broke, as it always does");
                Err::<(), _>(ToolError::protocol(error))
            }),
        Tool::new("confirm_delete")
            .description("Becomes a task at once, and asks from inside the task")
            .task(TaskSupport::Optional)
            .handler(|args: File, cx: Cx| async move {
                let question = Elicit::<Confirm>::form(format!("Delete {}?", args.filename)).key("confirm");
                let answer = cx.elicit(question).await.accepted()?;
                let done = if answer.confirm { "Deleted" } else { "Kept" };
                Ok::<_, ToolError>(format!("{done} {}", args.filename))
            }),
        Tool::new("multi_input")
            .description("Asks two things at the same time from inside a task")
            .task(TaskSupport::Optional)
            .handler(|(), cx: Cx| async move {
                let (name, confirm) = tokio::join!(
                    cx.elicit(Elicit::<Name>::form("What is its name?").key("name")),
                    cx.elicit(Elicit::<Confirm>::form("Is that right?").key("confirm")),
                );
                let (name, confirm) = (name.accepted()?.name, confirm.accepted()?.confirm);
                Ok::<_, ToolError>(format!("name={name}, confirmed={confirm}"))
            }),
        Tool::new("test_tool_with_task")
            .description("Asks first and becomes a task then")
            .task(TaskSupport::Required)
            .asks_first()
            .handler(|(), cx: Cx| async move {
                let user = cx
                    .elicit(Elicit::<Name>::form("What is your name?").key("user_name"))
                    .await
                    .accepted()?;
                cx.detach().await;
                sleep(WORK).await;
                Ok::<_, ToolError>(format!("Hello, {}!", user.name))
            }),
    ]
}
