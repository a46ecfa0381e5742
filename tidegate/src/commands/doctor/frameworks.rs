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
        let (what, who, mend) = trouble(obstacle.construct);
        let places = match obstacle.places.is_empty() {
            true => String::new(),
            false => format!(" ({})", obstacle.places.join(", ")),
        };
        report.add(
            Level::Warning,
            about,
            format!("{what}{places}, for which {who} all tools of the server"),
            format!("{mend}, or serve it through a gateway with tools.schemas = \"portable\""),
        );
    }
}

/// What it is, who cannot read it, and how to write it instead.
fn trouble(construct: Construct) -> (&'static str, &'static str, &'static str) {
    match construct {
        Construct::NoProperties => {
            ("its input schema has no properties", "smolagents loses", r#"add "properties": {}"#)
        }
        Construct::BooleanMember => (
            "true or false stands for the schema of a parameter",
            "AutoGen, CrewAI, DSPy, Semantic Kernel and smolagents lose",
            "describe the parameter",
        ),
        Construct::BooleanSchema => (
            "true or false stands for a schema in its parameters",
            "AutoGen and CrewAI lose",
            "describe what goes there",
        ),
        Construct::ArgumentTypes => (
            "a parameter has a list of types",
            "AutoGen, DSPy and Semantic Kernel lose",
            "give it one type, or use anyOf",
        ),
        Construct::InnerTypes => {
            ("its parameters have a list of types inside", "AutoGen loses", "give one type, or use anyOf")
        }
        Construct::NoType => ("a parameter has no type", "AutoGen loses", "give it one"),
        Construct::Format => {
            ("a parameter has a format that few clients know", "AutoGen loses", "leave the format out")
        }
        Construct::Recursion => (
            "its input schema contains itself",
            "AutoGen, CrewAI, DSPy and smolagents lose",
            "describe in words what goes deeper",
        ),
    }
}
