//! Modern callers in front of a legacy server: calls that stop in the middle to ask, and whose session is whose.

mod lanes;
mod parked;
mod rig;
