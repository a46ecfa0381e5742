//! Agents in the index of words: each has one page that says its names, what it is told to do, its tags and its tools.

use super::agentlet::Agent;
use super::repository::{self, AgentRow};
use super::system;
use crate::error::Result;
use crate::pages::{self, PageText};
use crate::search::SearchEngine;
use crate::store::{Change, Memory, Value, View};

/// How many agents a search finds at most.
const MOST: usize = 100;
/// How many words of a query the agents that come with the server are looked through for.
const WORDS: usize = 32;

/// What came to the tables of agents later: what a change did to them can be undone, and they can be found.
pub(crate) const TABLES: [&str; 6] = [
    // A row that brings back another one says which: the first of its kind.
    "ALTER TABLE agents ADD COLUMN root INTEGER",
    "CREATE INDEX agents_made ON agents (tenant, made)",
    "CREATE INDEX agents_gone ON agents (tenant, gone) WHERE gone IS NOT NULL",
    "CREATE INDEX agents_keyed ON agents (tenant, key)",
    // Those that are there get a page each (2 is the kind of their pages), which is indexed at once.
    "INSERT INTO pages (tenant, kind, owner, entries) SELECT tenant, 2, key, 1 FROM agents WHERE gone IS NULL",
    "INSERT INTO touched (tenant, page) SELECT tenant, id FROM pages WHERE kind = 2",
];

/// Remembers that an agent is to be indexed anew: it is new, another, or gone.
pub(crate) fn touch(change: &mut Change<'_>, key: i64) -> Result<()> {
    let known = change.one(
        "SELECT id FROM pages WHERE tenant = ?1 AND kind = ?2 AND owner = ?3",
        &[Value::Int(pages::AGENT), Value::Int(key)],
        |row| row.int(0),
    )?;
    let page = match known {
        Some(page) => page,
        None => pages::create(change, pages::AGENT, key, 1)?,
    };
    pages::touch(change, page)
}

/// What the page of an agent says: its name, its other names, and the rest. Nothing, if the agent is gone.
pub(crate) fn page_text(view: &mut View<'_>, page: i64) -> Result<Option<PageText>> {
    let key = view.one(
        "SELECT owner FROM pages WHERE tenant = ?1 AND id = ?2 AND kind = ?3",
        &[Value::Int(page), Value::Int(pages::AGENT)],
        |row| row.int(0),
    )?;
    let Some(key) = key else { return Ok(None) };
    Ok(repository::keyed(view, key)?.map(|AgentRow { agent, .. }| {
        let about = format!("{} {}", agent.title.as_deref().unwrap_or_default(), agent.tags.join(" "));
        let mut body = agent.description;
        for tool in agent.tools {
            body.extend(["\n", &tool.tool_name, " ", tool.usage.as_deref().unwrap_or_default()]);
        }
        PageText { name: agent.name, about, body }
    }))
}

/// The agents of a tenant that fit a query, the best first.
pub(crate) async fn find(search: &SearchEngine, memory: &Memory, query: &str) -> Result<Vec<AgentRow>> {
    let found = search.find(memory, query, &[pages::AGENT], MOST).await?;
    memory
        .view(move |view| {
            let kept = found.hits.iter().map(|hit| repository::keyed(view, hit.owner));
            Ok(kept.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        })
        .await
}

/// The agents that come with the server and have words of a query, those with most of them first.
pub(crate) fn find_system(query: &str) -> Vec<&'static Agent> {
    let wanted = words(query);
    let fits = |agent: &Agent| {
        let said = words(&format!("{} {}", agent.name, agent.description));
        // A long word may be the beginning of another.
        let has =
            |word: &String| said.iter().any(|said| said == word || word.len() > 3 && said.starts_with(word));
        wanted.iter().take(WORDS).filter(|word| has(word)).count()
    };
    let mut found: Vec<(usize, &Agent)> = system::all().iter().map(|agent| (fits(agent), agent)).collect();
    found.retain(|(fits, _)| *fits > 0);
    found.sort_by_key(|(fits, _)| std::cmp::Reverse(*fits));
    found.into_iter().map(|(_, agent)| agent).collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_of_the_server_are_found_by_their_words() {
        let names = |query: &str| -> Vec<&str> {
            find_system(query).into_iter().map(|agent| agent.name.as_str()).collect()
        };
        assert_eq!(names("LIBRARIAN")[0], "librarian");
        assert_eq!(names("research"), ["researcher"]);
        assert_eq!(names("zebra % sea"), [""; 0]);
    }
}
