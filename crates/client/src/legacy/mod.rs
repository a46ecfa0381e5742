//! Legacy servers: sessions, and calls that stop in the middle to ask something.

mod bridge;
mod call;
mod handshake;
mod keep;
mod lane;
mod lanes;
mod line;
mod notify;
mod old_sse;
mod parked;
mod probe;
mod raise;
mod run;
mod seal;
mod session;
mod tasks;
mod turns;
mod whose;

pub(crate) use bridge::Bridge;
pub(crate) use call::Legacy;
pub(crate) use keep::Listening;
pub(crate) use lane::Lane;
pub(crate) use lanes::Lanes;
pub(crate) use line::Line;
pub(crate) use old_sse::OldSse;
pub(crate) use parked::Parked;
pub(crate) use raise::result;
pub(crate) use seal::own_sealer;
pub(crate) use session::{Session, cut_off, garbled};
pub(crate) use tasks::Tasks;
pub(crate) use whose::{ClientIdentity, LaneKey, Terms};
