//! Pages from the web, and never from the network that the server itself stands in.
//!
//! The name in an address is looked up here, every address that it stands for must be public, and the connection goes to
//! one of these and to nothing else: a name that means something else the next time is not asked a second time. Each
//! redirect is checked in the same way.

use std::time::{Duration, Instant};

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use tidegate_web::{
    Answer, Circuits, Error, Follow, Guard, Proxies, Rate, RedirectRefused, Redirects, Request, Settings,
    Web, Zone,
};
use url::Url;

use super::kind::{Kind, READABLE};
use super::{SourceText, abbreviated, decode, file};
use crate::circuits;
use crate::error::{Code, Fault, Result};

/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(30);
/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// Longest address, in bytes.
const MAX_URL: usize = 2_000;
/// What is asked for.
const WANTED: &str =
    "text/html, text/markdown, text/plain, application/json, text/csv, text/*;q=0.8, */*;q=0.1";

/// How many pages are asked for at one host: what a person reads is far less, what would be a nuisance far more.
const RATE: Rate = Rate { burst: 50, per_second: 10.0 };

/// How many hosts are remembered for having failed.
const HOSTS: usize = 256;

/// What pages are fetched with.
pub(crate) struct Fetcher {
    web: Web,
    /// How large a page may be, in bytes.
    max: usize,
    /// Which hosts keep failing.
    hosts: Circuits,
}

impl Fetcher {
    /// Fetches from public addresses; if private ones are allowed, also from others, but never from where a cloud keeps
    /// keys.
    pub(crate) fn new(private_addresses: bool, max: usize) -> Fetcher {
        let guard = if private_addresses { Guard::private() } else { Guard::public() };
        Fetcher::within(guard, max)
    }

    fn within(guard: Guard, max: usize) -> Fetcher {
        // No proxy: what a name stands for must be checked here. No connection is kept, as the next page is elsewhere.
        let settings =
            Settings { guard, proxies: Proxies::none(), idle: 0, rate: Some(RATE), ..Settings::default() };
        Fetcher { web: Web::new(settings), max, hosts: Circuits::new(HOSTS) }
    }

    /// The text of a page.
    pub(crate) async fn fetch(&self, given: &str) -> Result<SourceText> {
        let url = parse(given)?;
        let until = tokio::time::Instant::now() + WITHIN;
        tokio::time::timeout_at(until, self.follow(url, until.into_std())).await.unwrap_or_else(|_| {
            let seconds = WITHIN.as_secs();
            Err(Fault::new(Code::Outside, format!("url: the page did not arrive within {seconds} seconds")))
        })
    }

    async fn follow(&self, asked: Url, until: Instant) -> Result<SourceText> {
        let mut url = asked.clone();
        let mut redirects = Redirects::new(Follow::Anywhere, REDIRECTS);
        loop {
            let pass = circuits::begin(&self.hosts.of(&place(&url)), Some(until))?;
            let response = match self.get(&url).await {
                Ok(response) => response,
                Err(fault) => {
                    // What is not fetched at all says nothing about the host.
                    if fault.code == Code::Outside {
                        pass.unreachable(reason(&fault));
                    }
                    return Err(fault);
                }
            };
            let status = response.status();
            let next = redirects.next(&url, status, response.headers());
            let Some(next) = next.transpose() else {
                let taken = self.take(&asked, &url, response).await;
                match &taken {
                    // Of a page that is there, only the way can fail.
                    Err(fault)
                        if status.is_server_error()
                            || status == StatusCode::OK && fault.code == Code::Outside =>
                    {
                        pass.failure(reason(fault));
                    }
                    _ => pass.success(),
                }
                return taken;
            };
            pass.success();
            let next = next.map_err(|stray| match stray {
                RedirectRefused::NoLocation => {
                    let what =
                        format!("url: the server answered {} without a Location header", status.as_u16());
                    Fault::new(Code::Outside, what)
                }
                RedirectRefused::TooMany => wrong(format!("it redirects more than {REDIRECTS} times")),
                RedirectRefused::NotAUrl | RedirectRefused::Unsafe(_) => {
                    wrong("it redirects to something that is not a URL")
                }
            })?;
            check(&next).map_err(|fault| {
                Fault::input("url", format!("it redirects to another URL: {}", fault.message))
            })?;
            url = next;
        }
    }

    /// Asks once, at an address that the guard allows.
    async fn get(&self, url: &Url) -> Result<Answer> {
        let asked = Request::get(url.clone())
            .within(WITHIN)
            .header(ACCEPT, HeaderValue::from_static(WANTED))
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        self.web.send(asked).await.map_err(outside)
    }

    async fn take(&self, asked: &Url, url: &Url, response: Answer) -> Result<SourceText> {
        let status = response.status();
        if status != StatusCode::OK {
            let what = format!("url: the server answered {} instead of the page", status.as_u16());
            return Err(Fault::new(Code::Outside, what));
        }
        let packed = response.header(CONTENT_ENCODING);
        if !packed.is_empty() && !packed.eq_ignore_ascii_case("identity") {
            return Err(wrong(format!(
                "the server sends the page compressed ({:?}) although it was asked not to, which is not supported; pass the \
                 contents as \"text\"",
                abbreviated(packed)
            )));
        }
        let content_type = response.header(CONTENT_TYPE).to_owned();
        let said = Kind::of_type(&content_type).map_err(|()| {
            let what = content_type.split(';').next().unwrap_or_default().trim();
            if what.eq_ignore_ascii_case("application/pdf") {
                return decode::pdf("url");
            }
            wrong(format!("the page is {:?}; {READABLE} can be read", abbreviated(what)))
        })?;
        let bytes = response.whole(self.max).await.map_err(|error| match error {
            Error::TooLarge(most) => file::too_large("url", most),
            other => outside(other),
        })?;
        let charset = content_type.split(';').skip(1).find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim())
        });
        let text = decode::decode("url", &bytes, charset, said == Some(Kind::Html))?;
        let name = url
            .path_segments()
            .and_then(|mut parts| parts.rfind(|part| !part.is_empty()))
            .unwrap_or_default();
        let kind = said.or_else(|| Kind::of_name(name)).unwrap_or_else(|| Kind::of_text(&text));
        let mut origin = asked.clone();
        origin.set_fragment(None);
        let name = if name.is_empty() { url.host_str().unwrap_or_default() } else { name };
        Ok(SourceText {
            text,
            kind,
            source: origin.to_string(),
            origin: Some(format!("url:{origin}")),
            name: Some(name.to_owned()),
            base: Some(url.clone()),
        })
    }
}

/// The host of a page and its port, if that is not the usual one.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// What is wrong, without the field.
fn reason(fault: &Fault) -> &str {
    fault.field().map_or(&fault.message, |(_, reason)| reason)
}

/// An address of a page.
fn parse(given: &str) -> Result<Url> {
    if given.len() > MAX_URL {
        return Err(wrong(format!("must have at most {MAX_URL} bytes, and has {}", given.len())));
    }
    let url = Url::parse(given).map_err(|error| {
        wrong(format!(
            "{:?} is not a valid URL ({error}); it must start with https:// or http://",
            abbreviated(given)
        ))
    })?;
    check(&url).map_err(|fault| Fault::input("url", fault.message))?;
    Ok(url)
}

/// Whether it is the address of a page. The sentence has no field.
fn check(url: &Url) -> Result<()> {
    let refused = |reason: &str| Err(Fault::new(Code::InvalidInput, reason));
    if !matches!(url.scheme(), "http" | "https") {
        return refused("only http:// and https:// URLs can be fetched");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("a user name or password in the URL is not allowed");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return refused("the URL has no host");
    }
    Ok(())
}

fn wrong(reason: impl std::fmt::Display) -> Fault {
    Fault::input("url", reason)
}

/// Why a page did not come. What is refused here is the caller's mistake, everything else is outside.
fn outside(error: Error) -> Fault {
    tracing::debug!(%error, "a page did not come");
    let what = match &error {
        Error::Forbidden { host, zone: Zone::Metadata } => {
            return wrong(format!(
                "{:?} is not on the public internet, but the metadata address of a cloud or a network; nothing is ever \
                 fetched from there",
                abbreviated(host)
            ));
        }
        Error::Forbidden { host, .. } => {
            return wrong(format!(
                "{:?} is not on the public internet, so it is not fetched; pass the contents as \"text\"",
                abbreviated(host)
            ));
        }
        Error::NoHost(host) => format!("url: there is no host {:?}", abbreviated(host)),
        // That we hold back says nothing about the host.
        Error::Busy(_) => return Fault::new(Code::Unavailable, format!("url: {error}")),
        _ if error.is_timeout() => "url: the server took too long".to_owned(),
        _ if error.is_connect() => "url: the server cannot be reached".to_owned(),
        _ => "url: the page did not arrive completely".to_owned(),
    };
    Fault::new(Code::Outside, what)
}

#[cfg(test)]
mod tests;
