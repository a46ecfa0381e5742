//! What agent frameworks cannot read in the schema of a tool's arguments.
//!
//! Each framework makes types of all tools of a server at once, so one schema that it cannot read costs it all of them.
//! Who stumbles over what was seen with AutoGen 0.7, CrewAI 1.15, DSPy 3.4, Semantic Kernel 1.45 and smolagents 1.26.

use serde_json::Value;
use tidegate_service::schema::{Construct, obstacles};

use super::report::{Level, Report};

/// Says for each construct where it stands and who cannot read it.
pub(super) fn check(report: &mut Report, about: &str, input: &Value) {
    for obstacle in obstacles(input) {
        let (what, who, fix) = explain(obstacle.construct);
        let places = match obstacle.places.is_empty() {
            true => String::new(),
            false => format!(" ({})", obstacle.places.join(", ")),
        };
        let portable = match obstacle.construct {
            // What contains itself cannot be written out, so a portable schema still does.
            Construct::Recursion => "",
            _ => ", or put the server behind the gateway with tools.schemas = \"portable\"",
        };
        report.add(
            Level::Warning,
            about,
            format!("{what}{places}: {who} cannot load any tool of this server"),
            format!("{fix}{portable}"),
        );
    }
}

/// What it is, who cannot read it, and how to write it instead.
fn explain(construct: Construct) -> (&'static str, &'static str, &'static str) {
    match construct {
        Construct::NoProperties => {
            ("the input schema has no properties", "smolagents", r#"add "properties": {}"#)
        }
        Construct::BooleanMember => (
            "the schema of a parameter is true or false",
            "AutoGen, CrewAI, DSPy, Semantic Kernel and smolagents",
            "describe the parameter",
        ),
        Construct::BooleanSchema => {
            ("a schema inside a parameter is true or false", "AutoGen and CrewAI", "describe what goes there")
        }
        Construct::ArgumentTypes => (
            "a parameter has a list of types",
            "AutoGen, DSPy and Semantic Kernel",
            "give it one type, or use anyOf",
        ),
        Construct::InnerTypes => {
            ("a parameter has a list of types inside", "AutoGen", "give one type, or use anyOf")
        }
        Construct::NoType => ("a parameter has no type", "AutoGen", "give it a type"),
        Construct::Format => ("a parameter has an uncommon format", "AutoGen", "leave out the format"),
        Construct::Recursion => (
            "the input schema contains itself",
            "AutoGen, CrewAI, DSPy and smolagents",
            r#"replace the reference to itself with {"type": "object"} and describe the nested value in its description; or hide the tool from these clients with deny in tidegate.toml"#,
        ),
    }
}
