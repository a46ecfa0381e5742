//! Completions of prompts' arguments: names and types of entities.

use tidegate_server::{Argument, Completing, Cx};

use crate::graph::entities;
use crate::server::resources::OFFERED;
use crate::server::state::ServerState;

/// What an argument can be completed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// The name of an entity.
    Entity,
    /// Names of entities, with commas between.
    Entities,
    /// Types of entities, with commas between.
    Types,
}

/// The argument, completed with what the memory of whoever types knows.
pub(crate) fn offered(argument: Argument, state: &ServerState, what: Offered) -> Argument {
    let state = state.clone();
    argument.complete(move |typed: Completing, cx: Cx| {
        let memory = state.admitted_memory(&cx);
        async move {
            let Ok(memory) = memory else { return Vec::new() };
            let found = memory.view(move |view| {
                let (before, value) = match what {
                    Offered::Entity => ("", typed.value.as_str()),
                    Offered::Entities | Offered::Types => last_entry(&typed.value),
                };
                let found = match what {
                    Offered::Types => entities::types(view, value, OFFERED),
                    _ => entities::starting(view, value, OFFERED),
                };
                Ok(found?.into_iter().map(|one| format!("{before}{one}")).collect::<Vec<String>>())
            });
            found.await.unwrap_or_default()
        }
    })
}

/// The last entry of a list with commas between, which is being typed, and what stands before it.
pub(crate) fn last_entry(typed: &str) -> (&str, &str) {
    let last = typed.rfind(',').map_or(0, |comma| comma + 1);
    let spaces = typed[last..].len() - typed[last..].trim_start().len();
    typed.split_at(last + spaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_a_list_is_typed() {
        for (typed, parts) in [
            ("", ("", "")),
            ("an", ("", "an")),
            ("Ann,", ("Ann,", "")),
            ("Ann, B", ("Ann, ", "B")),
            ("Ann,  Bo b", ("Ann,  ", "Bo b")),
            ("ü, ß", ("ü, ", "ß")),
        ] {
            assert_eq!(last_entry(typed), parts);
        }
    }
}
