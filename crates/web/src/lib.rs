//! The one way out: all HTTP that is not MCP goes through this crate.
//!
//! [`Web`] sends a [`Request`] and gives an [`Answer`], whole or piece by piece. On the way:
//!
//! ```text
//!  Request ─ rate ─────── guard ──────── proxy ─ tls ─ size, deadline ─ redirect ─ Answer
//!            so many per   where it may   as the   one    of the whole     each hop is
//!            second and    go, after the  environ- config and of each      a request of
//!            host          name was       ment     for    piece            its own
//!                          looked up      says     all
//! ```
//!
//! ```no_run
//! use tidegate_web::{Guard, Request, Settings, Web};
//!
//! # async fn page() -> Result<(), Box<dyn std::error::Error>> {
//! let web = Web::new(Settings { guard: Guard::public(), ..Settings::default() });
//! let answer = web.send(Request::get("https://example.com/".parse()?)).await?;
//! let page = answer.whole(1024 * 1024).await?;
//! # Ok(()) }
//! ```
//!
//! Around it, for callers to use as it suits them: [`Circuits`] leave hosts alone that keep failing, [`Attempts`] says
//! whether and when to try again, and [`Web::document`] keeps what may be kept.
//!
//! What decides is a plain struct that takes the time as an argument ([`Zone`], [`Redirects`], [`Attempts`],
//! [`Governor`], [`Cache`]); what waits is in `web`, `dial` and `answer`.

mod address;
mod answer;
mod cache;
mod circuits;
mod dial;
mod error;
mod governor;
mod guard;
mod proxy;
mod redirect;
mod request;
mod retry;
mod tls;
mod web;

pub use address::Zone;
pub use answer::Answer;
pub use cache::{Cache, CacheLookup, Document};
pub use circuits::{Circuits, begin};
pub use error::Error;
pub use governor::{Governor, Rate};
pub use guard::{Guard, Lookup};
pub use proxy::{Proxies, ProxyRoute, is_local};
pub use redirect::{Follow, RedirectRefused, Redirects};
pub use request::Request;
pub use retry::{Attempts, Backoff, retry_after};
pub use tls::tls;
pub use web::{Settings, Web};
