//! rmcp as the client of a Tidegate server: the same operations in both eras and over both transports must mean the
//! same.
//!
//! `fixture` is the server, `client` is rmcp with what it observed, `ways` connects the two in all four ways and
//! compares what they say. The rest is cases.

mod client;
mod fixture;
mod ways;

mod cancellation;
mod changes;
mod conversation;
mod failures;
mod lists;
mod tools;
