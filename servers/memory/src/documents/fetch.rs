//! Pages from the web, and never from the network that the server itself stands in.
//!
//! The name in an address is looked up here, every address that it stands for must be public, and the connection goes to
//! one of these and to nothing else: a name that means something else the next time is not asked a second time. Each
//! redirect is checked in the same way.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Response, StatusCode};
use url::{Host, Url};

use super::ingest::Taken;
use super::kind::{Kind, READABLE};
use super::model::shown;
use super::{address, decode, file};
use crate::circuits::{self, Circuits};
use crate::store::{Code, Fault, Result};
use crate::web;

/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(30);
/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// Longest address, in bytes.
const MAX_URL: usize = 2_000;
/// What is asked for.
const WANTED: &str =
    "text/html, text/markdown, text/plain, application/json, text/csv, text/*;q=0.8, */*;q=0.1";

/// What a name stands for.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> + Send + Sync>;

/// What pages are fetched with.
pub(super) struct Fetcher {
    lookup: Lookup,
    /// Whether an address may be connected to.
    allowed: fn(IpAddr) -> bool,
    /// How large a page may be, in bytes.
    max: usize,
    /// Which hosts keep failing.
    hosts: Arc<Circuits>,
}

impl Fetcher {
    /// Fetches from public addresses; if `private`, also from others, but never from where a cloud keeps keys.
    pub(super) fn new(private: bool, max: usize, hosts: Arc<Circuits>) -> Fetcher {
        let allowed: fn(IpAddr) -> bool =
            if private { |address| !address::never(address) } else { address::public };
        Fetcher { lookup: Arc::new(|name| Box::pin(system(name))), allowed, max, hosts }
    }

    /// The text of a page.
    pub(super) async fn fetch(&self, given: &str) -> Result<Taken> {
        let url = parse(given)?;
        let until = tokio::time::Instant::now() + WITHIN;
        tokio::time::timeout_at(until, self.follow(url, until.into_std())).await.unwrap_or_else(|_| {
            let seconds = WITHIN.as_secs();
            Err(Fault::new(Code::Outside, format!("url: the page did not arrive within {seconds} seconds")))
        })
    }

    async fn follow(&self, asked: Url, until: Instant) -> Result<Taken> {
        let mut url = asked.clone();
        for _ in 0..=REDIRECTS {
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
            if !redirects(status) {
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
            }
            pass.success();
            let to = header(&response, LOCATION);
            if to.is_empty() {
                let what = format!(
                    "url: the server answered {} without a Location header",
                    response.status().as_u16()
                );
                return Err(Fault::new(Code::Outside, what));
            }
            let next = url.join(&to).map_err(|_| wrong("it redirects to something that is not a URL"))?;
            check(&next).map_err(|fault| {
                Fault::input("url", format!("it redirects to another URL: {}", fault.message))
            })?;
            url = next;
        }
        Err(wrong(format!("it redirects more than {REDIRECTS} times")))
    }

    /// Asks once, at an address that was checked.
    async fn get(&self, url: &Url) -> Result<Response> {
        let host = url.host().ok_or_else(|| wrong("it has no host"))?;
        let mut client = web::client(WITHIN)?.no_proxy().dns_resolver(Nothing);
        let addresses = match host {
            Host::Ipv4(address) => vec![IpAddr::V4(address)],
            Host::Ipv6(address) => vec![IpAddr::V6(address)],
            Host::Domain(name) => {
                let found = (self.lookup)(name.to_owned()).await.unwrap_or_default();
                let all: Vec<SocketAddr> = found.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
                client = client.resolve_to_addrs(name, &all);
                found
            }
        };
        if addresses.is_empty() {
            return Err(Fault::new(
                Code::Outside,
                format!("url: there is no host {:?}", shown(&host.to_string())),
            ));
        }
        // One that is not public is enough: which of them is connected to is not known beforehand.
        if !addresses.iter().all(|address| (self.allowed)(*address)) {
            if addresses.iter().any(|address| address::never(*address)) {
                return Err(wrong(format!(
                    "{:?} is not on the public internet, but the metadata address of a cloud or a network; nothing is ever \
                     fetched from there",
                    shown(&host.to_string())
                )));
            }
            return Err(wrong(format!(
                "{:?} is not on the public internet, so it is not fetched; pass the contents as \"text\"",
                shown(&host.to_string())
            )));
        }
        let client = client.build().map_err(outside)?;
        let asked = client.get(url.clone()).header(ACCEPT, WANTED).header(ACCEPT_ENCODING, "identity");
        asked.send().await.map_err(outside)
    }

    async fn take(&self, asked: &Url, url: &Url, response: Response) -> Result<Taken> {
        let status = response.status();
        if status != StatusCode::OK {
            let what = format!("url: the server answered {} instead of the page", status.as_u16());
            return Err(Fault::new(Code::Outside, what));
        }
        let packed = header(&response, CONTENT_ENCODING);
        if !packed.is_empty() && !packed.eq_ignore_ascii_case("identity") {
            return Err(wrong(format!(
                "the server sends the page compressed ({:?}) although it was asked not to, which is not supported; pass the \
                 contents as \"text\"",
                shown(&packed)
            )));
        }
        let content_type = header(&response, CONTENT_TYPE);
        let said = Kind::of_type(&content_type).map_err(|()| {
            let what = content_type.split(';').next().unwrap_or_default().trim();
            if what.eq_ignore_ascii_case("application/pdf") {
                return decode::pdf("url");
            }
            wrong(format!("the page is {:?}; {READABLE} can be read", shown(what)))
        })?;
        let bytes = self.body(response).await?;
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
        Ok(Taken {
            text,
            kind,
            source: origin.to_string(),
            origin: Some(format!("url:{origin}")),
            name: Some(name.to_owned()),
            base: Some(url.clone()),
        })
    }

    /// The bytes of a page, as long as they are not too many.
    async fn body(&self, response: Response) -> Result<Vec<u8>> {
        if response.content_length().is_some_and(|length| length > self.max as u64) {
            return Err(file::too_large("url", self.max));
        }
        let mut bytes = Vec::new();
        let mut parts = response.bytes_stream();
        while let Some(part) = parts.next().await {
            bytes.extend_from_slice(&part.map_err(outside)?);
            if bytes.len() > self.max {
                return Err(file::too_large("url", self.max));
            }
        }
        Ok(bytes)
    }
}

/// The addresses that a name stands for, as the system says.
async fn system(name: String) -> std::io::Result<Vec<IpAddr>> {
    let looked = tokio::task::spawn_blocking(move || {
        Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    });
    looked.await.unwrap_or_else(|_| Err(std::io::Error::other("the lookup ended")))
}

/// A resolver that knows nothing: what was not looked up and checked is not connected to.
struct Nothing;

impl Resolve for Nothing {
    fn resolve(&self, name: Name) -> Resolving {
        let why = format!("{} was not checked", name.as_str());
        Box::pin(std::future::ready(Err(why.into())))
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
            shown(given)
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

fn redirects(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn header(response: &Response, name: HeaderName) -> String {
    let value = response.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_owned()
}

fn wrong(reason: impl std::fmt::Display) -> Fault {
    Fault::input("url", reason)
}

fn outside(error: reqwest::Error) -> Fault {
    tracing::debug!(%error, "a page did not come");
    let what = match (error.is_timeout(), error.is_connect()) {
        (true, _) => "url: the server took too long",
        (_, true) => "url: the server cannot be reached",
        _ => "url: the page did not arrive completely",
    };
    Fault::new(Code::Outside, what)
}

#[cfg(test)]
mod tests;
