//! `search_tools`: what it says about the tools that it finds, to models and to programs.

use std::fmt::Write as _;
use std::sync::Arc;

use tidegate_protocol::json::{ObjectWriter, write_str};
use tidegate_protocol::{Error, Json, Object};
use tidegate_service::{Call, Reply};

use super::definitions::{CALL, DEFAULT_LIMIT, MAX_LIMIT};
use super::index::{SearchHits, Seen};
use super::{arguments, indexed, wrong};
use crate::build::State;
use crate::kind::Kind;
use crate::mount::Mount;
use crate::router::Router;

/// What is asked for.
struct SearchQuery {
    text: String,
    limit: usize,
    server: Option<String>,
}

/// Where is searched: what the caller sees.
struct Scope<'a> {
    tools: Seen<'a>,
    /// Which servers it knows of, by their places; `None` for all.
    servers: Option<&'a [bool]>,
}

impl Scope<'_> {
    fn has_server(&self, place: usize) -> bool {
        self.servers.is_none_or(|known| known.get(place) == Some(&true))
    }
}

/// What is answered: a text for models, and the same for programs.
struct Answer {
    text: String,
    structured: Json,
}

pub(super) async fn search_tools(router: &Arc<Router>, call: &Call) -> Result<Reply, Error> {
    let query = SearchQuery::read(&arguments(&call.params)?)?;
    router.look_again(Kind::Tools).await;
    let state = indexed(router).await?;
    let view = router.views.view(&state, &call.context);
    let seen = Scope {
        tools: Seen(view.as_ref().map(|view| &view.callable[..])),
        servers: view.as_ref().map(|view| &view.servers[..]),
    };
    let answer = state.find(&query, &seen)?;
    Ok(answer.into_reply(call, &router.info))
}

impl SearchQuery {
    fn read(arguments: &Object) -> Result<SearchQuery, Error> {
        let text = |name: &str| match arguments.get(name) {
            None | Some("null") => Ok(None),
            Some(_) => match arguments.str(name) {
                Some(text) => Ok(Some(text.trim().to_owned())),
                None => Err(wrong(format_args!("{name:?} must be a string"))),
            },
        };
        let limit = match arguments.get("limit") {
            None | Some("null") => DEFAULT_LIMIT,
            Some(limit) => match limit.parse::<f64>() {
                Ok(limit) if limit.fract() == 0.0 && (1.0..=MAX_LIMIT as f64).contains(&limit) => {
                    limit as usize
                }
                _ => return Err(wrong(format_args!("\"limit\" must be an integer from 1 to {MAX_LIMIT}"))),
            },
        };
        let server = text("server")?.filter(|server| !server.is_empty());
        Ok(SearchQuery { text: text("query")?.unwrap_or_default(), limit, server })
    }
}

impl State {
    fn find(&self, query: &SearchQuery, seen: &Scope<'_>) -> Result<Answer, Error> {
        let server = match &query.server {
            None => None,
            Some(name) => match self.server(name, seen) {
                None => return Err(self.no_server(name, seen)),
                found => found,
            },
        };
        Ok(match (query.text.is_empty(), server) {
            (false, server) => {
                let found = self.index().search(&query.text, server, query.limit, seen.tools);
                let fits = format!("that match {:?}", query.text);
                self.tools_found(found, &fits)
            }
            (true, Some(server)) => {
                let found = self.index().of_server(server, query.limit, seen.tools);
                let fits = format!("of the server {:?}", self.mounts[server].name());
                self.tools_found(found, &fits)
            }
            (true, None) => self.servers(seen),
        })
    }

    /// The place of the server of this name.
    fn server(&self, name: &str, seen: &Scope<'_>) -> Option<usize> {
        self.mounts.iter().position(|mount| mount.name() == name).filter(|place| seen.has_server(*place))
    }

    /// The servers, with how many tools of each are seen. To somebody who does not see everything, one of whose tools none is seen
    /// is not there, either, whether it has any or not.
    fn counted(&self, seen: &Scope<'_>) -> Vec<(&Mount, usize)> {
        let known = self.mounts.iter().enumerate().filter(|(place, _)| seen.has_server(*place));
        let counted = known.map(|(place, mount)| (&**mount, self.index().count(place, seen.tools)));
        counted.filter(|(_, count)| *count > 0 || seen.servers.is_none()).collect()
    }

    /// Tools, each with all that is needed to call it.
    fn tools_found(&self, found: SearchHits, fits: &str) -> Answer {
        let SearchHits { names, total } = found;
        let mut text = match (names.len(), total) {
            (0, _) => format!(
                "No tools {fits}. Try other words, or an empty query, which lists the servers and how many \
                 tools each has."
            ),
            (shown, total) if shown < total => format!("The best {shown} of {total} tools {fits}. "),
            (shown, _) => format!("{} {fits}. ", tools(shown)),
        };
        if !names.is_empty() {
            let _ = write!(text, "Call one with {CALL}: {{\"name\": …, \"arguments\": …}}.");
        }
        let rows: Vec<_> =
            names.iter().filter_map(|name| Some((name, self.snapshot.tools.get(name)?))).collect();
        for (name, row) in &rows {
            let definition = Object::of(&row.definition).unwrap_or_else(Object::empty);
            let _ = write!(text, "\n\n## {name}\n");
            if let Some(title) = definition.str("title") {
                let _ = writeln!(text, "{title}");
            }
            if let Some(description) = definition.str("description") {
                let _ = writeln!(text, "{}", description.trim());
            }
            let schema = definition.json("inputSchema").unwrap_or_else(Json::empty_object).compact();
            let _ = write!(text, "Server: {}\nInput schema: {schema}", self.mounts[row.server].name());
        }
        let definitions: Vec<Json> = rows.iter().map(|(_, row)| row.definition.clone()).collect();
        let mut structured = ObjectWriter::new();
        structured.json("tools", &Json::array(&definitions)).value("total", &total);
        Answer { text, structured: structured.finish() }
    }

    /// The servers, for whoever wants to look around.
    fn servers(&self, seen: &Scope<'_>) -> Answer {
        let counted = self.counted(seen);
        let total = counted.iter().map(|(_, count)| count).sum();
        let mut text = format!(
            "{} of {} servers. Search for some with what they should do, or name a server to see its tools; call one \
             with {CALL}.\n",
            tools(total),
            counted.len()
        );
        let servers: Vec<Json> = counted
            .iter()
            .map(|(mount, count)| {
                let count = *count;
                let _ = write!(text, "\n- {}: {}", mount.name(), tools(count));
                let mut server = ObjectWriter::new();
                server.str("name", mount.name()).value("tools", &count);
                server.finish()
            })
            .collect();
        let mut structured = ObjectWriter::new();
        structured
            .json("tools", &Json::array(&[]))
            .value("total", &total)
            .json("servers", &Json::array(&servers));
        Answer { text, structured: structured.finish() }
    }

    fn no_server(&self, name: &str, seen: &Scope<'_>) -> Error {
        let names: Vec<&str> = self.counted(seen).into_iter().map(|(mount, _)| mount.name()).collect();
        wrong(format_args!("no server is named {name:?}; the servers are {}", names.join(", ")))
    }
}

impl Answer {
    fn into_reply(self, call: &Call, info: &str) -> Reply {
        let mut members = b"\"content\":[{\"type\":\"text\",\"text\":".to_vec();
        write_str(&mut members, &self.text);
        members.extend_from_slice(b"}],\"structuredContent\":");
        members.extend_from_slice(self.structured.as_str().as_bytes());
        if call.context.revision.is_modern() {
            members.extend_from_slice(b",\"_meta\":{");
            members.extend_from_slice(info.as_bytes());
            members.push(b'}');
        }
        Reply::complete(call.context.revision, &String::from_utf8_lossy(&members))
    }
}

/// So many tools, in words.
fn tools(count: usize) -> String {
    match count {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let read = |text: &'static str| SearchQuery::read(&Object::of(&Json::trusted(text)).unwrap());
        let query = read(r#"{"query":" x ","limit":3.0,"server":""}"#).ok().unwrap();
        assert_eq!((&*query.text, query.limit, query.server), ("x", 3, None));
        assert_eq!(read("{}").ok().unwrap().limit, DEFAULT_LIMIT);
        for text in
            [r#"{"query":1}"#, r#"{"limit":0}"#, r#"{"limit":51}"#, r#"{"limit":1.5}"#, r#"{"limit":"3"}"#]
        {
            let error = read(text).err().expect(text);
            assert!(error.in_tool() && error.message().starts_with("Invalid arguments: "), "{error}");
        }
    }
}
