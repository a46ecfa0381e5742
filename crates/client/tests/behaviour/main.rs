//! What a client does with a server that behaves: eras, tools, time, subscriptions.

mod eras;
mod subscriptions;
mod time;
mod tools;
mod world;
