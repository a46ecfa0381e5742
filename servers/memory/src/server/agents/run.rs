//! [`Run`]: one question to an agent, from the first word to an answer that fits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_server::Cx;

use super::streaming::AnswerStream;
use super::tool_output::ToolOutput;
use super::toolbox::{AgentTool, ToolCaller, Toolbox};
use crate::agents::agentlet::Agent;
use crate::error::{Code, Fault, Result};
use crate::models::answer::AnswerSchema;
use crate::models::{
    self, ANSWER, Delta, ModelChoice, ModelReply, Models, Request, RequestStyle, ToolCall, ToolOffer,
    ToolReply, Turn, Usage,
};
use crate::server::runs::BudgetShare;
use crate::server::settings::Bounds;

/// How often an answer that does not fit is asked for again.
const AGAIN: usize = 2;
/// Most tools that are called in one step, and how many of them at a time.
const CALLS: usize = 16;
const AT_ONCE: usize = 4;
/// How much of a tool's result is kept with the session.
const KEPT: usize = 500;

/// What a run starts from. Where the client's model is asked it is the same in each round of the call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunInput {
    pub(crate) uri: String,
    pub(crate) agent: Agent,
    pub(crate) session: String,
    pub(crate) trace: String,
    /// What this question is known by, however often it comes back.
    pub(crate) run: String,
    /// Who asks.
    pub(crate) owner: String,
    /// What was said before.
    pub(crate) earlier: Vec<Turn>,
    pub(crate) tools: Vec<AgentTool>,
    /// Tools that the agent names and that are not there.
    pub(crate) missing: Vec<String>,
}

/// Whose model is asked.
pub(crate) enum ModelSource<'a> {
    Provider { models: &'a Models, chosen: ModelChoice<'a>, model: String, manner: RequestStyle },
    Client { hint: Option<String> },
}

/// What came of it.
pub(crate) struct RunOutcome {
    pub(crate) response: Value,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    /// Whether the usage is a guess, because the model's owner does not tell.
    pub(crate) estimated: bool,
    pub(crate) steps: usize,
    /// The tools that were called.
    pub(crate) calls: Vec<Value>,
}

/// One question on its way to an answer.
pub(crate) struct Run<'a> {
    pub(crate) cx: &'a Cx,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) start: &'a RunInput,
    pub(crate) voice: ModelSource<'a>,
    pub(crate) bounds: &'a Bounds,
    /// What it has left, with whoever asked for it.
    pub(super) share: &'a BudgetShare,
    pub(crate) until: Instant,
    /// How often progress was told.
    pub(crate) told: AtomicU32,
}

impl Run<'_> {
    /// Goes on until there is an answer that fits, or one of the bounds is met.
    pub(crate) async fn answer(mut self, prompt: &str) -> Result<RunOutcome> {
        let agent = &self.start.agent;
        let shape = AnswerSchema::new(&agent.schema).map_err(|why| Fault::input("output_schema", why))?;
        let offers: Vec<ToolOffer> = self.start.tools.iter().map(|tool| tool.offer.clone()).collect();
        let mut turns = self.start.earlier.clone();
        turns.push(Turn::User(prompt.to_owned()));
        let mut outcome = RunOutcome {
            response: Value::Null,
            model: String::new(),
            usage: Usage::default(),
            estimated: false,
            steps: 0,
            calls: Vec::new(),
        };
        let (mut acted, mut misfits) = (0, 0);
        // Whether it may go on after what it says next. An answer that did not fit may be given again.
        let mut goes_on = None;
        loop {
            let may_act = *goes_on.get_or_insert_with(|| self.share.step());
            let answer_now = offers.is_empty() || !may_act;
            let mut request = Request {
                system: &agent.description,
                turns: &turns,
                tools: &offers,
                schema: &agent.schema,
                answer_now,
                max_tokens: self.bounds.answer_tokens.max(1),
            };
            request.max_tokens = self.share.room(request.about())?.min(request.max_tokens);
            outcome.steps += 1;
            self.tell(&format!("Step {}: asking the model", outcome.steps));
            let said = self.say(&request, outcome.steps).await?;
            let guess = Usage { input_tokens: request.about(), output_tokens: said.about() };
            outcome.estimated |= said.usage.is_none();
            let usage = said.usage.unwrap_or(guess);
            outcome.usage.add(usage);
            self.share.used(usage);
            outcome.model.clone_from(&said.model);
            if said.refused {
                return Err(outside(format!("The model {} refused to answer", said.model)));
            }
            let problems = match reading(&said, &shape).await {
                ReplyKind::Fits(answer) => {
                    outcome.response = answer;
                    return Ok(outcome);
                }
                ReplyKind::Acts if !may_act => return Err(self.endless(acted)),
                ReplyKind::Acts => {
                    acted += 1;
                    goes_on = None;
                    let results = self.act(&said.calls, outcome.steps, &mut outcome.calls).await;
                    turns.push(Turn::Model { text: said.text, calls: said.calls });
                    turns.push(Turn::Results(results));
                    continue;
                }
                ReplyKind::Misfits(problems) => problems.join("; "),
            };
            misfits += 1;
            if misfits > AGAIN {
                let cut =
                    if said.cut { ", and the last one was cut off because it was too long" } else { "" };
                return Err(outside(format!(
                    "The model gave no answer that fits the agent's schema in {misfits} attempts{cut}: {problems}"
                )));
            }
            self.tell("The answer does not fit the agent's schema");
            correct(&mut turns, said, &problems);
        }
    }

    fn endless(&self, acted: usize) -> Fault {
        let times = if acted == 1 { "once".to_owned() } else { format!("{acted} times") };
        outside(format!("The agent called tools {times} without reaching an answer and was stopped"))
    }

    async fn say(&mut self, request: &Request<'_>, step: usize) -> Result<ModelReply> {
        let (told, cx, until) = (&self.told, self.cx, self.until);
        match &mut self.voice {
            ModelSource::Client { hint } => {
                models::sample(cx, &format!("step-{step}"), hint.as_deref(), request).await
            }
            ModelSource::Provider { models, chosen, model, manner } => {
                let mut writing = AnswerStream::new(request.schema);
                let mut heard = |piece: Delta<'_>| {
                    if matches!(piece, Delta::Again) {
                        tell(cx, told, &format!("Step {step}: asking the model again"));
                    }
                    if let Some(text) = writing.take(piece, Instant::now()) {
                        tell_text(cx, told, &text);
                    }
                };
                let said = models::say(models, *chosen, model, request, manner, until, &mut heard).await;
                if let Some(text) = writing.rest() {
                    tell_text(cx, told, &text);
                }
                said
            }
        }
    }

    /// Calls the tools that the model asks for.
    async fn act(&self, calls: &[ToolCall], step: usize, log: &mut Vec<Value>) -> Vec<ToolReply> {
        let work = calls.iter().enumerate().map(|(at, asked)| async move {
            let given = match at < CALLS {
                true => self.call(asked, &format!("step-{step}-call-{at}")).await,
                false => {
                    ToolOutput::failed(format!("Not called: at most {CALLS} tools can be called at once"))
                }
            };
            (asked, given)
        });
        // Boxed, because each holds a whole call.
        let work: Vec<_> = work.map(Box::pin).collect();
        let done: Vec<_> = futures_util::stream::iter(work).buffered(AT_ONCE).collect().await;
        let mut results = Vec::new();
        for (asked, given) in done {
            let shown: String = given.text.chars().take(KEPT).collect();
            log.push(json!({
                "name": asked.name, "arguments": asked.arguments.as_ref().ok(), "result": shown, "failed": given.failed,
            }));
            results.push(ToolReply {
                id: asked.id.clone(),
                name: asked.name.clone(),
                text: given.text,
                failed: given.failed,
            });
        }
        results
    }

    async fn call(&self, asked: &ToolCall, key: &str) -> ToolOutput {
        let Some(tool) = self.start.tools.iter().find(|tool| tool.offer.name == asked.name) else {
            let known: Vec<_> = self.start.tools.iter().map(|tool| tool.offer.name.as_str()).collect();
            let there_are = match known.is_empty() {
                true => "There are none: give the answer".to_owned(),
                false => format!("There are: {}", known.join(", ")),
            };
            return ToolOutput::failed(format!("There is no tool {:?}. {there_are}", asked.name));
        };
        let arguments = match &asked.arguments {
            Ok(arguments) => arguments.clone(),
            Err(text) => {
                let text: String = text.chars().take(200).collect();
                return ToolOutput::failed(format!(
                    "The arguments must be a JSON object, and are not: {text}"
                ));
            }
        };
        self.tell(&doing(&tool.offer.name));
        let by =
            ToolCaller { cx: self.cx, until: self.until, run: &self.share.run, owner: &self.start.owner };
        let work = self.toolbox.call(by, tool, arguments);
        match self.voice {
            // The call comes back with each answer of the client's model; the tool is called once all the same.
            ModelSource::Client { .. } => self.cx.run_once(key, work).await,
            ModelSource::Provider { .. } => work.await,
        }
    }

    fn tell(&self, message: &str) {
        tell(self.cx, &self.told, message);
    }
}

/// Tells progress: each time is one more than the time before.
fn tell(cx: &Cx, told: &AtomicU32, message: &str) {
    let count = told.fetch_add(1, Ordering::Relaxed) + 1;
    cx.progress(f64::from(count), None, message);
}

/// Tells a piece of the answer.
fn tell_text(cx: &Cx, told: &AtomicU32, text: &str) {
    let count = told.fetch_add(1, Ordering::Relaxed) + 1;
    cx.progress_text(f64::from(count), text);
}

/// What an agent does when it calls a tool.
fn doing(tool: &str) -> String {
    match tool {
        "search_knowledge_base" => "Searching the knowledge base".to_owned(),
        "search_nodes" | "semantic_search" => "Searching the knowledge graph".to_owned(),
        "lookup_entity" | "open_nodes" => "Looking up an entity".to_owned(),
        "get_document" => "Reading a document".to_owned(),
        "read_resource" => "Reading a resource".to_owned(),
        "ask_agent" => "Asking another agent".to_owned(),
        other => format!("Calling {other}"),
    }
}

/// What a model's words come to.
enum ReplyKind {
    Fits(Value),
    /// It wants tools.
    Acts,
    Misfits(Vec<String>),
}

async fn reading(said: &ModelReply, shape: &AnswerSchema) -> ReplyKind {
    if let Some(given) = said.calls.iter().find(|call| call.name == ANSWER) {
        let answer = match &given.arguments {
            Ok(answer) => answer,
            Err(_) => return ReplyKind::Misfits(vec!["the answer is no JSON object".to_owned()]),
        };
        return shape.check(answer.clone()).await.map_or_else(ReplyKind::Misfits, ReplyKind::Fits);
    }
    if !said.calls.is_empty() {
        return ReplyKind::Acts;
    }
    shape.in_text(&said.text).await.map_or_else(ReplyKind::Misfits, ReplyKind::Fits)
}

/// Says what is wrong with an answer, and asks for another.
fn correct(turns: &mut Vec<Turn>, said: ModelReply, problems: &str) {
    let cut = if said.cut { " It was cut off: be brief." } else { "" };
    let what =
        format!("This answer does not fit: {problems}.{cut} Give the whole answer again so that it fits.");
    let results: Vec<ToolReply> = said
        .calls
        .iter()
        .map(|call| {
            let text = if call.name == ANSWER { what.clone() } else { "Not called.".to_owned() };
            ToolReply { id: call.id.clone(), name: call.name.clone(), text, failed: true }
        })
        .collect();
    turns.push(Turn::Model { text: said.text, calls: said.calls });
    turns.push(if results.is_empty() { Turn::User(what) } else { Turn::Results(results) });
}

fn outside(message: String) -> Fault {
    Fault::new(Code::Outside, message)
}
