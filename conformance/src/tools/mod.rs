//! The tools that the suite calls by name, a room for each thing they show.

mod content;
mod elicitation;
mod input_required;
mod notifying;
mod schemas;
mod tasks;

use tidegate::Server;

/// All tools. `test_simple_text` is the first, because the suite calls the first tool of the list without arguments.
pub(crate) fn add(server: Server) -> Server {
    let rooms = [
        content::tools(),
        notifying::tools(),
        elicitation::tools(),
        input_required::tools(),
        schemas::tools(),
        tasks::tools(),
    ];
    rooms.into_iter().flatten().fold(server, Server::tool)
}
