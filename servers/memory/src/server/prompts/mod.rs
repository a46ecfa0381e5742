//! Prompts: what to ask an assistant that has this memory.
//!
//! Arguments of prompts are texts. A list is written `a, b` or as a JSON array; yes and no as `true` and `false`.

mod complete;
mod documents;

use tidegate_server::{Argument, Completing, Cx, Prompt, PromptArgs, PromptMessage, Server, ToolError};

use super::state::ServerState;
use crate::error::Fault;
use crate::graph::model::{Entity, Graph, Relation};
use crate::graph::{history, properties, read, search};

pub(crate) use complete::{Offered, last_entry, offered};

/// The kinds of work that are remembered, and the type of entity that each becomes.
const WORK: [(&str, &str); 5] = [
    ("feature", "feature"),
    ("task", "task"),
    ("decision", "decision"),
    ("component", "component"),
    ("test", "test"),
];
/// How many entities are shown at most.
const SHOWN: usize = 20;
/// How many versions of each.
const REMEMBERED: usize = 10;

pub(crate) fn add(server: Server, state: &ServerState) -> Server {
    let server = documents::add(server, state);
    let (context, review) = (state.clone(), state.clone());
    let offered = |argument: Argument, what: Offered| complete::offered(argument, state, what);
    server
        .prompt(
            Prompt::new("init-project")
                .title("Begin a project")
                .description("Start the memory of a project: what it is and what it is for")
                .argument(Argument::new("projectName").required().description("The name of the project"))
                .argument(
                    Argument::new("description").required().description("What it is, in a sentence or two"),
                )
                .argument(Argument::new("goals").description("What it is for: a, b or a JSON array"))
                .handler(|args: PromptArgs, _cx: Cx| async move { init_project(&args) }),
        )
        .prompt(
            Prompt::new("get-context")
                .title("ServerState")
                .description("Bring what the memory knows about something into the conversation")
                .argument(Argument::new("query").required().description("What it is about"))
                .argument(offered(
                    Argument::new("entityTypes")
                        .description("Only entities of these types: a, b or a JSON array"),
                    Offered::Types,
                ))
                .argument(
                    Argument::new("includeHistory")
                        .description("true: also what used to be known")
                        .complete(yes_or_no),
                )
                .handler(move |args: PromptArgs, cx: Cx| get_context(context.clone(), args, cx)),
        )
        .prompt(
            Prompt::new("remember-work")
                .title("Remember work")
                .description("Keep what was done, and how it belongs to the rest")
                .argument(
                    Argument::new("workType")
                        .required()
                        .description("feature, task, decision, component or test")
                        .complete(|typed: Completing, _cx: Cx| async move {
                            typed.filter(WORK.map(|(name, _)| name))
                        }),
                )
                .argument(Argument::new("name").required().description("A name for it"))
                .argument(Argument::new("description").required().description("What was done"))
                .argument(offered(
                    Argument::new("implementsTask").description("The task that it implements"),
                    Offered::Entity,
                ))
                .argument(offered(
                    Argument::new("partOfFeature").description("The feature that it is part of"),
                    Offered::Entity,
                ))
                .argument(offered(
                    Argument::new("dependsOn").description("What it depends on: a, b or a JSON array"),
                    Offered::Entities,
                ))
                .argument(Argument::new("keyDecisions").description("What was decided: a, b or a JSON array"))
                .handler(|args: PromptArgs, _cx: Cx| async move { remember_work(&args) }),
        )
        .prompt(
            Prompt::new("review-context")
                .title("Review")
                .description("Look at everything that is known of an entity before working on it")
                .argument(offered(
                    Argument::new("entityName").required().description("The name of the entity"),
                    Offered::Entity,
                ))
                .argument(
                    Argument::new("includeRelated")
                        .description("false: without its relations")
                        .complete(yes_or_no),
                )
                .argument(
                    Argument::new("includeDecisions")
                        .description("false: without decisions about it")
                        .complete(yes_or_no),
                )
                .handler(move |args: PromptArgs, cx: Cx| review_context(review.clone(), args, cx)),
        )
}

async fn yes_or_no(typed: Completing, _cx: Cx) -> Vec<String> {
    typed.filter(["true", "false"])
}

fn init_project(args: &PromptArgs) -> Result<Vec<PromptMessage>, ToolError> {
    let (name, about) = (text(args, "projectName")?, text(args, "description")?);
    let mut said = format!(
        "We begin the project {name:?}: {about}\n\nKeep it in the memory: create_entities with an entity {name:?} of type \
         \"feature\" whose observations say what it is"
    );
    let goals = list(args, "goals")?;
    if !goals.is_empty() {
        said.push_str(&format!(", and these goals as observations of their own:\n{}", bullets(&goals)));
    }
    said.push_str("\nThen ask me what else is worth knowing from the start.");
    Ok(vec![PromptMessage::user(said)])
}

fn remember_work(args: &PromptArgs) -> Result<Vec<PromptMessage>, ToolError> {
    let (kind, name, about) = (text(args, "workType")?, text(args, "name")?, text(args, "description")?);
    let Some((_, entity_type)) = WORK.iter().find(|(known, _)| *known == kind) else {
        let known = WORK.map(|(name, _)| name).join(", ");
        return Err(Fault::input("workType", format!("must be one of {known}, not {kind:?}")).into());
    };
    let mut said = format!(
        "Keep this in the memory: create_entities with an entity {name:?} of type {entity_type:?} and the observation \
         {about:?}."
    );
    let mut relations = Vec::new();
    for (argument, relation) in [("implementsTask", "implements"), ("partOfFeature", "part_of")] {
        if let Some(other) = args.get(argument).filter(|other| !other.is_empty()) {
            relations.push(format!("{name:?} {relation} {other:?}"));
        }
    }
    relations.extend(list(args, "dependsOn")?.iter().map(|other| format!("{name:?} depends_on {other:?}")));
    if !relations.is_empty() {
        said.push_str(&format!("\n\nThen create_relations:\n{}", bullets(&relations)));
    }
    let decisions = list(args, "keyDecisions")?;
    if !decisions.is_empty() {
        said.push_str(&format!(
            "\n\nKeep each of these decisions as an entity of type \"decision\" that relates_to {name:?}:\n{}",
            bullets(&decisions)
        ));
    }
    Ok(vec![PromptMessage::user(said)])
}

async fn get_context(state: ServerState, args: PromptArgs, cx: Cx) -> Result<Vec<PromptMessage>, ToolError> {
    let (query, types) = (text(&args, "query")?.to_owned(), list(&args, "entityTypes")?);
    let with_history = yes(&args, "includeHistory", false)?;
    let memory = state.admitted_memory(&cx)?;
    let mut graph = search::find(&state.search, &memory, &query).await?.graph;
    let (graph, past) = memory
        .view(move |view| {
            graph.entities.retain(|entity| types.is_empty() || types.contains(&entity.entity_type));
            graph.entities.truncate(SHOWN);
            let mut past = Vec::new();
            for entity in graph.entities.iter().filter(|_| with_history) {
                let past_of = history::of_entity(view, &entity.name, REMEMBERED, None)?;
                past.push((entity.name.clone(), past_of.versions));
            }
            Ok((graph, past))
        })
        .await?;
    if graph.entities.is_empty() {
        let said =
            format!("The memory knows nothing about {query:?} yet. Ask me, and keep what is worth knowing.");
        return Ok(vec![PromptMessage::user(said)]);
    }
    let mut said = format!("This is what the memory knows about {query:?}:\n\n{}", shown(&graph));
    for (name, versions) in past {
        said.push_str(&format!("\n{name} before:\n"));
        for version in versions.iter().filter(|version| version.valid_to.is_some()) {
            said.push_str(&format!("- version {}: {}\n", version.version, version.observations.join("; ")));
        }
    }
    Ok(vec![PromptMessage::user(said)])
}

async fn review_context(
    state: ServerState,
    args: PromptArgs,
    cx: Cx,
) -> Result<Vec<PromptMessage>, ToolError> {
    let name = text(&args, "entityName")?.to_owned();
    let (related, decisions) = (yes(&args, "includeRelated", true)?, yes(&args, "includeDecisions", true)?);
    let graph = state
        .admitted_memory(&cx)?
        .view(move |view| {
            let mut graph = read::open(view, std::slice::from_ref(&name))?;
            if graph.entities.is_empty() {
                return Err(Fault::no_entity(&name));
            }
            let others: Vec<String> = graph
                .relations
                .iter()
                .map(|r| if r.from == name { r.to.clone() } else { r.from.clone() })
                .collect();
            let mut near = read::open(view, &others)?.entities;
            near.retain(|entity| entity.name != name && decisions && entity.entity_type == "decision");
            if !related {
                graph.relations.clear();
            }
            graph.entities.extend(near);
            Ok(graph)
        })
        .await?;
    let said = format!(
        "Before we go on, this is what is known:\n\n{}\nSay what is missing or no longer true.",
        shown(&graph)
    );
    Ok(vec![PromptMessage::user(said)])
}

/// A graph for people and models to read.
fn shown(graph: &Graph) -> String {
    let entity = |entity: &Entity| {
        let described = entity.properties.iter().map(|(key, value)| properties::line(key, value));
        let lines: Vec<String> = described.chain(entity.observations.iter().cloned()).collect();
        format!("{} ({})\n{}\n", entity.name, entity.entity_type, bullets(&lines))
    };
    let relation = |r: &Relation| format!("{} {} {}", r.from, r.relation_type, r.to);
    let mut text: String = graph.entities.iter().map(entity).collect::<Vec<_>>().join("\n");
    if !graph.relations.is_empty() {
        let relations: Vec<_> = graph.relations.iter().map(relation).collect();
        text.push_str(&format!("\nConnections:\n{}\n", bullets(&relations)));
    }
    text
}

fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

/// An argument that must say something.
pub(crate) fn text<'a>(args: &'a PromptArgs, name: &str) -> Result<&'a str, ToolError> {
    let given = args.get(name).map(str::trim).filter(|text| !text.is_empty());
    given.ok_or_else(|| Fault::input(name, "must not be empty").into())
}

/// An argument that is a list: `a, b` or a JSON array of texts.
pub(crate) fn list(args: &PromptArgs, name: &str) -> Result<Vec<String>, ToolError> {
    let given = args.get(name).unwrap_or_default().trim();
    if given.starts_with('[') {
        return serde_json::from_str(given).map_err(|_| {
            Fault::input(name, "must be a JSON array of texts, or texts with commas between").into()
        });
    }
    Ok(given.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect())
}

/// An argument that is yes or no.
fn yes(args: &PromptArgs, name: &str, usual: bool) -> Result<bool, ToolError> {
    match args.get(name).unwrap_or_default().trim() {
        "" => Ok(usual),
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(Fault::input(name, format!("must be true or false, not {other:?}")).into()),
    }
}
