//! The file format of `server-memory`: one JSON object a line, `{"type": "entity", …}` or `{"type": "relation", …}`.

pub(crate) mod numbers;
pub(crate) mod whole;

use serde::{Deserialize, Serialize};

use crate::graph::model::{Entity, Graph, Relation};
use crate::store::{Fault, Result};

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Entity(Entity),
    Relation(Relation),
}

/// The graph as the lines of a file.
pub(crate) fn write(graph: Graph) -> Result<String> {
    let entities = graph.entities.into_iter().map(Line::Entity);
    let relations = graph.relations.into_iter().map(Line::Relation);
    let lines: std::result::Result<Vec<String>, _> =
        entities.chain(relations).map(|line| serde_json::to_string(&line)).collect();
    lines
        .map(|lines| lines.join("\n"))
        .map_err(|error| Fault::input("graph", format!("cannot be written as JSON: {error}")))
}

/// Reads the lines of a file. Empty ones are passed over; any other that cannot be read is named.
pub(crate) fn read(text: &str) -> Result<Graph> {
    let mut graph = Graph::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |reason: String| Fault::input(&format!("jsonl, line {}", at + 1), reason);
        match serde_json::from_str(line) {
            Ok(Line::Entity(entity)) => {
                entity.check(graph.entities.len()).map_err(|fault| wrong(fault.message))?;
                graph.entities.push(entity);
            }
            Ok(Line::Relation(relation)) => {
                relation.check("relation").map_err(|fault| wrong(fault.message))?;
                graph.relations.push(relation);
            }
            Err(error) => {
                return Err(wrong(format!("is neither an entity nor a relation ({error})")));
            }
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_server_memory_writes_is_read_and_written_back() {
        let text = concat!(
            r#"{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea","line\nbreak"]}"#,
            "\n",
            r#"{"type":"relation","from":"Ann","to":"Acme","relationType":"works_at"}"#
        );
        let graph = read(&format!("{text}\n\n")).unwrap();
        assert_eq!((graph.entities.len(), graph.relations.len()), (1, 1));
        assert_eq!(write(graph).unwrap(), text);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for (text, line) in [
            ("{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\"}\nnonsense", "line 2"),
            ("\n\n{\"type\":\"other\"}", "line 3"),
            ("{\"type\":\"entity\",\"name\":\"\",\"entityType\":\"t\",\"observations\":[]}", "line 1"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.message.contains(line), "{fault}");
        }
    }
}
