//! The memory server, as clients see it.

mod graph;
mod kill;
mod rig;
mod surface;
