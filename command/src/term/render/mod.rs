//! What a server sent, as text for people.

mod content;
mod json;
mod lists;
mod size;

pub(crate) use content::{prompt_result, read_result, tool_result};
pub(crate) use json::indented as indented_json;
pub(crate) use lists::{prompts, resource_templates, resources, tool, tools};
