//! Running gateways, as commands find and ask them: `presence` is what a gateway says of itself in the state directory, `target`
//! has the options of all commands that ask one and finds it, `client` asks it over its socket or its URL, and `files` is what
//! is known when none runs.

pub(crate) mod client;
pub(crate) mod files;
pub(crate) mod presence;
pub(crate) mod target;
