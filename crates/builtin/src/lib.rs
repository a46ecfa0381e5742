//! What a server brings to be part of the `tidegate` program.
//!
//! A [`BuiltinServer`] says what it is called, what `[its name]` in a configuration means, how it is opened, and which pages
//! it has. A [`Builtin`] is that without its type, and a program has a list of them, its [`Builtins`]: a line in that list
//! is all that it takes to add one. Whoever reads configurations and whoever serves them knows no built-in server by name.
//!
//! `docs/builtin.md` goes through one step by step.

mod data_dir;
mod erased;
mod list;
mod opened;
mod pages;
mod reading;
mod running;
mod server;
mod settings;
mod time;

pub use data_dir::data_dir;
pub use erased::{Builtin, Written};
pub use list::Builtins;
pub use opened::Opened;
pub use pages::{PageFile, Pages};
pub use reading::{Findings, Reading};
pub use running::Running;
pub use server::{Allows, BuiltinServer, Host};
pub use settings::BuiltinSettings;
pub use time::Time;
