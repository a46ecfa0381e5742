//! Legacy servers: sessions, and calls that stop in the middle to ask something.

mod call;
mod handshake;
mod keep;
mod lane;
mod lanes;
mod line;
mod old_sse;
mod parked;
mod raise;
mod run;
mod session;

pub(crate) use call::Legacy;
pub(crate) use lane::{Lane, LaneKey, Terms};
pub(crate) use lanes::Lanes;
pub(crate) use line::Line;
pub(crate) use old_sse::OldSse;
pub(crate) use parked::Parked;
pub(crate) use raise::result;
pub(crate) use session::{Session, cut_off, garbled};
