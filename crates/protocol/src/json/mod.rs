//! Shallow JSON: text that is known to be well formed, split only as deep as somebody has to look.
//!
//! A [`Json`] is a piece of JSON text that shares the buffer it came in. An [`Object`] is such a text with its
//! members indexed: order kept, values raw, duplicate keys refused. Nothing here builds a tree, so what nobody
//! reads is neither parsed nor rebuilt, and number spelling, key order and unknown members survive.

mod array;
mod canonical;
mod edit;
mod lookup;
mod members;
mod object;
mod scan;
mod special;
mod text;
mod write;

pub use object::{Member, Object};
pub use scan::{Fault, FaultKind, Limits};
pub use text::Json;
pub use write::{ObjectWriter, write_str};

pub use edit::Edit;
pub(crate) use lookup::places;
pub(crate) use members::{Key, Members, Seen, empty_members, scan_members, split_object, start_value};
pub(crate) use scan::{Scan, Scanner};
