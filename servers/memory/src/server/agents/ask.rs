//! `ask_agent`: a question to an agent.

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Capability, Cx, Server, Tool, ToolError, ToolResult};
use tidegate_service::{CorrelationId, trace};
use tracing::Instrument as _;

use super::caller::Caller;
use super::find;
use super::run::{ModelSource, Run, RunInput, RunOutcome};
use super::toolbox::Toolbox;
use crate::agents::sessions::{self, Exchange};
use crate::error::{Code, Fault, Result};
use crate::models;
use crate::server::runs::{MAX_DEPTH, depth};
use crate::server::state::ServerState;
use crate::server::tenant;
use crate::server::tools::arguments::closed;
use crate::server::tools::json_result;

/// Longest question, in characters.
const MAX_PROMPT: usize = 100_000;
/// What is left of the caller's patience to say that there was not enough of it.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[derive(Deserialize, JsonSchema)]
struct AskAgent {
    /// The agent: researcher, system/researcher or user/<you>/<name>, with or without agentlet:// in front.
    agent_uri: String,
    /// The question.
    prompt: String,
    /// The tenant. Optional: your own, or the default one.
    #[expect(dead_code, reason = "whose memory it is, is read where all tools are told")]
    tenant_id: Option<String>,
    /// Your user id. Optional.
    user_id: Option<String>,
    /// A session to continue, or a name for a new one: the agent knows what was said in it before.
    session_id: Option<String>,
    /// The model to use instead of the default one.
    model: Option<String>,
}

pub(super) fn add(server: Server, state: &ServerState) -> Server {
    let toolbox = Toolbox::new(state);
    let output = json!({
        "type": "object",
        "properties": {
            "status": {"const": "success"},
            "agent_uri": {"type": "string"},
            "response": {"type": "object", "description": "The answer, in the form of the agent's schema"},
            "trace_id": {"type": "string"},
            "model": {"type": "string"},
            "usage": {
                "type": "object",
                "properties": {
                    "input_tokens": {"type": "integer"},
                    "output_tokens": {"type": "integer"},
                    "estimated": {"type": "boolean", "description": "Whether this is an estimate"},
                },
                "required": ["input_tokens", "output_tokens"],
            },
            "session_id": {"type": "string", "description": "Pass it with the next question to continue from here"},
            "steps": {"type": "integer", "description": "How often the model was asked"},
            "tools_called": {"type": "array", "items": {"type": "string"}},
            "unavailable_tools": {
                "type": "array", "items": {"type": "string"},
                "description": "Tools that the agent names but that do not exist",
            },
        },
        "required": ["status", "agent_uri", "response", "trace_id", "model", "usage", "session_id", "steps"],
    });
    let tool = Tool::new("ask_agent")
            .alias("ask_agent_stream")
            .title("Ask Agent")
            .description(
                "Ask an agent. It answers in the form that its schema defines and may use tools to find the answer. A caller \
                 that asks for progress gets the text while it is written. Use list_agents to see the agents",
            )
            .destructive(false)
            .open_world(true)
            .any_case()
            .output_schema(output);
    let is_authenticated = state.settings.is_authenticated;
    server.tool(closed(tool, is_authenticated, move |args: AskAgent, cx: Cx| {
        ask_agent(toolbox.clone(), args, cx)
    }))
}

async fn ask_agent(toolbox: Toolbox, args: AskAgent, cx: Cx) -> Result<ToolResult, ToolError> {
    // Boxed, because it holds a whole conversation.
    let (start, outcome) = Box::pin(asked(&toolbox, &args, &cx)).await?;
    let usage = outcome.usage;
    let mut answer = json!({
        "status": "success",
        "agent_uri": start.uri,
        "response": outcome.response,
        "trace_id": start.trace,
        "model": outcome.model,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "session_id": start.session,
        "steps": outcome.steps,
    });
    if outcome.estimated {
        answer["usage"]["estimated"] = true.into();
    }
    if !outcome.calls.is_empty() {
        answer["tools_called"] = outcome.calls.iter().map(|call| call["name"].clone()).collect();
    }
    if !start.missing.is_empty() {
        answer["unavailable_tools"] = start.missing.into();
    }
    json_result(answer)
}

async fn asked(toolbox: &Toolbox, args: &AskAgent, cx: &Cx) -> Result<(RunInput, RunOutcome)> {
    if depth(cx) >= MAX_DEPTH {
        let what = format!("Agents may ask agents at most {} levels deep: this one was not asked", MAX_DEPTH);
        return Err(Fault::new(Code::Outside, what));
    }
    tenant::admit(cx)?;
    let options = &toolbox.state.settings;
    let (models, bounds) = (&options.models, &options.agents);
    let caller = Caller::new(&toolbox.state, cx);
    let owner = check(&caller, args)?;
    let share = toolbox.state.runs.share(cx, bounds)?;
    // What can be said in time is said, rather than that time is over.
    let began = Instant::now();
    let patience = began + bounds.time;
    let until =
        cx.deadline().and_then(|end| end.checked_sub(LAST_WORDS)).map_or(patience, |end| end.min(patience));
    let begin = begin(toolbox, &caller, &owner, args, cx, until);
    let start = match models.providers.is_empty() {
        false => begin.await?,
        true => {
            // The call comes back with each answer of the client's model, and finds what it began with.
            let mut fault = None;
            let begun = async { begin.await.map_err(|why| fault = Some(why)).ok() };
            let start: Option<RunInput> = cx.run_once("start", begun).await;
            let nothing = || Fault::new(Code::Outside, "The agent could not be started");
            start.ok_or_else(|| fault.unwrap_or_else(nothing))?
        }
    };
    let voice = voice(models, cx, args.model.as_deref().or(start.agent.model.as_deref())).await?;
    let span = tracing::info_span!("agent.run", agent = %start.uri, session = %start.session);
    let told = AtomicU32::new(0);
    let run = Run { cx, toolbox, start: &start, voice, bounds, share: &share, until, told };
    let attributes = || {
        let [name, operation] = ["gen_ai.agent.name", "gen_ai.operation.name"];
        vec![(operation, "invoke_agent".to_owned()), (name, start.agent.name.clone())]
    };
    let run = trace::span("agent.run", attributes, run.answer(&args.prompt)).instrument(span);
    let outcome = match tokio::time::timeout_at(until.into(), run).await {
        Ok(outcome) => outcome?,
        Err(_) => {
            let seconds = until.saturating_duration_since(began).as_secs_f32();
            let seconds = (seconds * 10.0).round() / 10.0;
            let what = format!("The agent had no answer within {seconds} s and was stopped");
            return Err(Fault::new(Code::Outside, what));
        }
    };
    let exchange = Exchange {
        agent_uri: start.uri.clone(),
        prompt: args.prompt.clone(),
        answer: outcome.response.to_string(),
        calls: (!outcome.calls.is_empty()).then(|| outcome.calls.clone().into()),
        model: outcome.model.clone(),
        trace: start.trace.clone(),
        run: start.run.clone(),
        usage: outcome.usage,
    };
    let session = start.session.clone();
    let kept =
        caller.memory.change("ask_agent", move |change| sessions::record(change, &owner, &session, exchange));
    if let Err(fault) = kept.await {
        // The answer is there, and was not for nothing.
        tracing::warn!(%fault, "an answer was not kept with its session");
    }
    Ok((start, outcome))
}

/// Checks the arguments. Returns who the session is held with.
fn check(caller: &Caller, args: &AskAgent) -> Result<String> {
    let owner = caller.user(args.user_id.as_deref())?;
    let length = args.prompt.chars().count();
    if args.prompt.trim().is_empty() {
        return Err(Fault::input("prompt", "must not be empty"));
    }
    if length > MAX_PROMPT {
        return Err(Fault::input(
            "prompt",
            format!("must have at most {MAX_PROMPT} characters, but has {length}"),
        ));
    }
    if args.prompt.contains('\0') {
        return Err(Fault::nul("prompt"));
    }
    if let Some(session) = &args.session_id {
        sessions::check("session_id", session)?;
    }
    models::check("model", args.model.as_deref())?;
    Ok(owner)
}

/// Everything that a run starts from.
async fn begin(
    toolbox: &Toolbox,
    caller: &Caller,
    owner: &str,
    args: &AskAgent,
    cx: &Cx,
    until: Instant,
) -> Result<RunInput> {
    let found = find::agent(caller, "agent_uri", &args.agent_uri).await?;
    let trace = cx.correlation_id().to_string();
    let earlier = match &args.session_id {
        None => Vec::new(),
        Some(name) => {
            let (owner, name) = (owner.to_owned(), name.clone());
            caller.memory.view(move |view| sessions::transcript(view, &owner, &name)).await?
        }
    };
    let (tools, missing) = toolbox.tools(cx, until, &found.agent).await;
    if !missing.is_empty() {
        cx.warning(&format!("{} names tools that do not exist: {}", found.uri, missing.join(", ")));
    }
    let session = args.session_id.clone().unwrap_or_else(|| trace.clone());
    let (run, owner) = (CorrelationId::new().to_string(), owner.to_owned());
    Ok(RunInput { uri: found.uri, agent: found.agent, session, trace, run, owner, earlier, tools, missing })
}

/// Whose model answers: that of a provider, or the client's own if there is no provider.
async fn voice<'a>(models: &'a models::Models, cx: &Cx, wanted: Option<&'a str>) -> Result<ModelSource<'a>> {
    if let Some(chosen) = models.choose(wanted)? {
        let model = models::name_of(models, chosen).await?;
        return Ok(ModelSource::Provider { models, chosen, model, manner: models::RequestStyle::default() });
    }
    if !cx.can(Capability::Sampling) {
        let what = match depth(cx) {
            0 => {
                "No model is configured to run agents: add one under [memory.models] in tidegate.toml; or set \
                 ANTHROPIC_API_KEY or OPENAI_API_KEY; or set OPENAI_BASE_URL or OLLAMA_HOST for a local model (and \
                 TIDEGATE_MODEL to choose one); or use a client that supports sampling"
            }
            _ => "An agent that the client's own model runs cannot ask other agents",
        };
        return Err(Fault::new(Code::Outside, what));
    }
    Ok(ModelSource::Client { hint: wanted.map(str::to_owned) })
}
