//! Sessions: what was asked and answered, so that the next question can go on from there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Code, Fault, Result};
use crate::models::{Turn, Usage};
use crate::store::{Change, Value, View};

/// The tables of sessions.
pub(crate) const TABLES: [&str; 4] = [
    // `owner` is who talks: people of one tenant do not see what the others say.
    "CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, agent TEXT NOT NULL,
        since INTEGER NOT NULL, latest INTEGER NOT NULL, made INTEGER NOT NULL)",
    "CREATE UNIQUE INDEX sessions_named ON sessions (tenant, owner, name)",
    "CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, session INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, calls TEXT,
        model TEXT, trace TEXT, input INTEGER, output INTEGER, since INTEGER NOT NULL, made INTEGER NOT NULL)",
    "CREATE INDEX messages_of ON messages (tenant, session, id)",
];

/// How many messages the next question goes on from, and how many bytes of them.
const EARLIER: i64 = 20;
const EARLIER_BYTES: usize = 32 * 1024;
/// Longest name of a session.
const MAX_NAME: usize = 200;

/// A name that a session may have.
pub(crate) fn check(field: &str, name: &str) -> Result<()> {
    match name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        true => Err(Fault::input(field, format!("must have 1 to {MAX_NAME} characters on one line"))),
        false => Ok(()),
    }
}

/// A session, as it is listed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Session {
    session_id: String,
    /// The agent that was asked last.
    agent_uri: String,
    /// How many messages it has.
    messages: i64,
    /// When it began, in milliseconds.
    started: i64,
    /// When something was last said, in milliseconds.
    latest: i64,
}

/// One message of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Message {
    /// `user` or `assistant`.
    role: String,
    content: String,
    /// The tools that were called for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Map<String, Json>>>")]
    tool_calls: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<i64>,
    /// When, in milliseconds.
    at: i64,
}

/// A question and its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) agent_uri: String,
    pub(crate) prompt: String,
    pub(crate) answer: String,
    pub(crate) calls: Option<Json>,
    pub(crate) model: String,
    pub(crate) trace: String,
    /// What the question is known by, however often it came back.
    pub(crate) run: String,
    pub(crate) usage: Usage,
}

fn number(view: &mut View<'_>, owner: &str, name: &str) -> Result<Option<i64>> {
    view.one(
        "SELECT id FROM sessions WHERE tenant = ?1 AND owner = ?2 AND name = ?3",
        &[Value::Text(owner.into()), Value::Text(name.into())],
        |row| row.int(0),
    )
}

/// What was said before: the latest of it, and from a question on.
pub(crate) fn transcript(view: &mut View<'_>, owner: &str, name: &str) -> Result<Vec<Turn>> {
    let Some(session) = number(view, owner, name)? else { return Ok(Vec::new()) };
    let mut bytes = 0;
    let latest = view.all(
        "SELECT role, content FROM messages WHERE tenant = ?1 AND session = ?2 ORDER BY id DESC LIMIT ?3",
        &[Value::Int(session), Value::Int(EARLIER)],
        |row| Ok((row.text(0)?, row.text(1)?)),
    )?;
    let mut turns: Vec<Turn> = latest
        .into_iter()
        .take_while(|(_, text)| {
            bytes += text.len();
            bytes <= EARLIER_BYTES
        })
        .map(|(role, text)| match role.as_str() {
            "user" => Turn::User(text),
            _ => Turn::Model { text, calls: Vec::new() },
        })
        .collect();
    turns.reverse();
    if matches!(turns.first(), Some(Turn::Model { .. })) {
        turns.remove(0);
    }
    Ok(turns)
}

/// Keeps a question and its answer, once: the last round of a call may come twice.
pub(crate) fn record(change: &mut Change<'_>, owner: &str, name: &str, said: Exchange) -> Result<()> {
    let (now, id) = (change.now, change.id);
    let session = change.one(
        "INSERT INTO sessions (tenant, owner, name, agent, since, latest, made) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)
         ON CONFLICT (tenant, owner, name) DO UPDATE SET agent = excluded.agent, latest = excluded.latest RETURNING id",
        &[
            Value::Text(owner.into()),
            Value::Text(name.into()),
            Value::Text((&*said.agent_uri).into()),
            Value::Int(now),
            Value::Int(id),
        ],
        |row| row.int(0),
    )?;
    let session = session.ok_or_else(|| Fault::new(Code::Database, "The session was not stored"))?;
    let known = change.one(
        "SELECT id FROM messages WHERE tenant = ?1 AND session = ?2 AND run = ?3 LIMIT 1",
        &[Value::Int(session), Value::Text((&*said.run).into())],
        |row| row.int(0),
    )?;
    if known.is_some() {
        return Ok(());
    }
    change.run(
        "INSERT INTO messages (tenant, session, role, content, trace, since, made, run)
         VALUES (?1, ?2, 'user', ?3, ?4, ?5, ?6, ?7)",
        &[
            Value::Int(session),
            Value::Text(said.prompt.into()),
            Value::Text((&*said.trace).into()),
            Value::Int(now),
            Value::Int(id),
            Value::Text(said.run.into()),
        ],
    )?;
    change.run(
        "INSERT INTO messages (tenant, session, role, content, calls, model, trace, input, output, since, made)
         VALUES (?1, ?2, 'assistant', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            Value::Int(session),
            Value::Text(said.answer.into()),
            said.calls.map_or(Value::Null, |calls| Value::Text(calls.to_string().into())),
            Value::Text(said.model.into()),
            Value::Text(said.trace.into()),
            Value::Int(said.usage.input_tokens as i64),
            Value::Int(said.usage.output_tokens as i64),
            Value::Int(now),
            Value::Int(id),
        ],
    )?;
    Ok(())
}

/// The sessions of somebody, the latest first.
pub(crate) fn all(view: &mut View<'_>, owner: &str, limit: i64) -> Result<Vec<Session>> {
    view.all(
        "SELECT s.name, s.agent, s.since, s.latest,
                (SELECT COUNT(*) FROM messages m WHERE m.tenant = ?1 AND m.session = s.id)
         FROM sessions s WHERE s.tenant = ?1 AND s.owner = ?2 ORDER BY s.latest DESC, s.id DESC LIMIT ?3",
        &[Value::Text(owner.into()), Value::Int(limit)],
        |row| {
            Ok(Session {
                session_id: row.text(0)?,
                agent_uri: row.text(1)?,
                started: row.int(2)?,
                latest: row.int(3)?,
                messages: row.int(4)?,
            })
        },
    )
}

/// The latest messages of a session, oldest first.
pub(crate) fn messages(view: &mut View<'_>, owner: &str, name: &str, limit: i64) -> Result<Vec<Message>> {
    let session = number(view, owner, name)?
        .ok_or_else(|| Fault::new(Code::NotFound, format!("session_id: there is no session {name:?}")))?;
    let mut messages = view.all(
        "SELECT role, content, calls, model, trace, input, output, since FROM messages
         WHERE tenant = ?1 AND session = ?2 ORDER BY id DESC LIMIT ?3",
        &[Value::Int(session), Value::Int(limit)],
        |row| {
            Ok(Message {
                role: row.text(0)?,
                content: row.text(1)?,
                tool_calls: row.maybe_text(2)?.and_then(|text| serde_json::from_str(&text).ok()),
                model: row.maybe_text(3)?,
                trace_id: row.maybe_text(4)?,
                input_tokens: row.maybe_int(5)?,
                output_tokens: row.maybe_int(6)?,
                at: row.int(7)?,
            })
        },
    )?;
    messages.reverse();
    Ok(messages)
}
