//! Legacy servers: sessions, and calls that stop in the middle to ask something.

mod call;
mod handshake;
mod listening;
mod notify;
mod owner;
mod parked;
mod pool;
mod probe;
mod raise;
mod round;
mod seal;
mod session;
mod tasks;
mod turns;

pub(crate) use call::Legacy;
pub(crate) use listening::Listening;
pub(crate) use owner::{ClientIdentity, SessionOwner, SessionSpec};
pub(crate) use parked::ParkedCalls;
pub(crate) use pool::SessionPool;
pub(crate) use raise::result;
pub(crate) use seal::own_sealer;
pub(crate) use session::UpstreamSession;
pub(crate) use tasks::Tasks;
