//! [`Script`]: what the model does, and what must come of it.

use serde_json::{Value, json};

use super::model::{Answer, Asked, Offered};

/// What the user says.
pub(crate) const PROMPT: &str = "Remember Ada, look for her, and think twice.";
/// What the model says when it has done all that.
pub(crate) const DONE: &str = "Ada is remembered and was thought of twice.";

/// Calls of tools, one after the other, and then the end.
pub(crate) struct Script(Vec<Step>);

struct Step {
    /// The tool, by the name that it has at the gateway.
    tool: &'static str,
    arguments: Value,
    /// What is in its result, without quotes and white space.
    returns: &'static str,
}

impl Script {
    /// The memory keeps something and finds it again, and a server that counts thoughts counts two.
    pub(crate) fn new() -> Script {
        let ada = json!({"name": "Ada", "entityType": "person", "observations": ["she knows the tides"]});
        // All arguments there are: some frameworks send null for one that is left out, which this server refuses.
        let thought = |number: usize| {
            json!({
                "thought": format!("Thought {number}"), "thoughtNumber": number, "totalThoughts": 2,
                "nextThoughtNeeded": number < 2, "needsMoreThoughts": false, "isRevision": false,
                "revisesThought": 1, "branchFromThought": 1, "branchId": "ebb",
            })
        };
        let step = |tool, arguments, returns| Step { tool, arguments, returns };
        Script(vec![
            step("memory_create_entities", json!({"entities": [ada]}), "name:Ada"),
            step("memory_search_nodes", json!({"query": "tides"}), "sheknowsthetides"),
            // The server is a legacy one that keeps its state in its process: one process, so 1 and then 2.
            step("thinking_sequentialthinking", thought(1), "thoughtHistoryLength:1"),
            step("thinking_sequentialthinking", thought(2), "thoughtHistoryLength:2"),
        ])
    }

    /// What the model answers.
    pub(crate) fn answer(&self, asked: &Asked) -> Answer {
        match self.0.get(asked.results.len()) {
            // A question on the side.
            _ if asked.tools.is_empty() => Answer::Text("Tides".to_owned()),
            // With smolagents a call of this tool is the end.
            None => match asked.tools.iter().find(|offered| offered.name == "final_answer") {
                Some(tool) => Answer::Call { tool: tool.clone(), arguments: json!({"answer": DONE}) },
                None => Answer::Text(DONE.to_owned()),
            },
            Some(step) => match asked.tools.iter().find(|offered| is(offered, step.tool)) {
                Some(tool) => Answer::Call { tool: tool.clone(), arguments: step.arguments.clone() },
                None => Answer::Text(format!("I was offered no tool {}.", step.tool)),
            },
        }
    }

    /// What is wrong with this conversation: the tools of the gateway must be in each request that has any, and the results of
    /// all calls in one of them.
    pub(crate) fn faults(&self, asked: &[Asked], tools: &[String]) -> Vec<String> {
        let with_tools = || asked.iter().filter(|asked| !asked.tools.is_empty());
        let Some(last) = with_tools().max_by_key(|asked| asked.results.len()) else {
            return vec![format!("the model was offered no tools in {} requests", asked.len())];
        };
        let mut faults = Vec::new();
        for asked in with_tools() {
            let lost: Vec<_> =
                tools.iter().filter(|tool| !asked.tools.iter().any(|offered| is(offered, tool))).collect();
            if !lost.is_empty() {
                let offered: Vec<_> = asked.tools.iter().map(|offered| offered.name.as_str()).collect();
                faults.push(format!("the model was not offered {lost:?}, but {offered:?}"));
                break;
            }
        }
        for (number, step) in self.0.iter().enumerate() {
            match last.results.get(number) {
                Some(result) if bare(result).contains(step.returns) => {}
                Some(result) => faults.push(format!(
                    "call {} ({}) returned {result}, without {:?}",
                    number + 1,
                    step.tool,
                    step.returns
                )),
                None => {
                    faults.push(format!("the result of call {} ({}) did not come", number + 1, step.tool))
                }
            }
        }
        faults
    }
}

/// What is wrong with the schemas: that of a tool whose argument is a list of objects must say what these have.
pub(crate) fn flat(asked: &[Asked]) -> Option<String> {
    let schemas =
        asked.iter().flat_map(|asked| &asked.tools).filter(|offered| is(offered, "memory_create_entities"));
    let flat = schemas.map(|offered| &offered.schema).find(|schema| !schema.contains("\"observations\""))?;
    Some(format!("the schema of memory_create_entities has lost its depth: {flat}"))
}

/// Whether this is the gateway's tool of that name. Agents put their own name of the server before it, and some like
/// underscores better than dashes.
pub(crate) fn is(offered: &Offered, name: &str) -> bool {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    plain(&offered.name).ends_with(&plain(name))
}

/// A result without quotes and white space: JSON in a text, in whatever form agents pass it on.
pub(crate) fn bare(result: &str) -> String {
    result
        .replace("\\n", "")
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\'))
        .collect()
}

#[test]
fn what_goes_wrong_is_seen() {
    let offered =
        |name: &str| Offered { group: None, name: format!("mcp__tidegate__{name}"), schema: String::new() };
    let tools = ["memory_create_entities", "memory_search_nodes", "thinking_sequentialthinking"];
    let names = tools.map(str::to_owned);
    let results = |last: &str| {
        ["[{\"name\": \"Ada\"}]", "she knows the tides", "{\\\"thoughtHistoryLength\\\": 1}", last]
            .map(str::to_owned)
    };
    let asked = |names: &[&str], results: &[String]| Asked {
        tools: names.iter().map(|name| offered(name)).collect(),
        results: results.to_vec(),
    };
    let script = Script::new();
    let good = results("{\n  \"thoughtHistoryLength\": 2\n}");
    assert_eq!(script.faults(&[asked(&[], &[]), asked(&tools, &good)], &names), Vec::<String>::new());
    for (asked, names, fault) in [
        (asked(&[], &[]), &names[..], "no tools"),
        (asked(&tools[..2], &good), &names[..], "not offered [\"thinking_sequentialthinking\"]"),
        (asked(&tools, &good[..3]), &names[..], "call 4"),
        (asked(&tools, &results("thoughtHistoryLength: 1")), &names[..], "call 4"),
    ] {
        let faults = script.faults(&[asked], names);
        assert!(faults.len() == 1 && faults[0].contains(fault), "{fault}: {faults:?}");
    }
}
