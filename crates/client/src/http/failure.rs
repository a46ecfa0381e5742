//! What can go wrong on the way, in one sentence each.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use rustls::CertificateError;
use tidegate_protocol::{Error, Symbol};

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// No connection could be made, so that nothing was sent.
pub(super) fn connect(host: &str, proxy: Option<&str>, e: &(dyn StdError + 'static)) -> Error {
    let through = proxy.map(|p| format!(" through the proxy {p}")).unwrap_or_default();
    let what = if let Some(tls) = find::<rustls::Error>(e) {
        match tls {
            rustls::Error::InvalidCertificate(why) => {
                format!("the certificate of {host} is not valid{through}: {}", certificate(why))
            }
            rustls::Error::InvalidMessage(_) => format!(
                "cannot set up TLS with {host}{through}: it does not speak TLS; its address may have to start with \
                 http://"
            ),
            other => format!("cannot set up TLS with {host}{through}: {other}"),
        }
    } else if is_resolving(e) {
        format!("cannot resolve {}: {}", proxy.unwrap_or(host), reason(e))
    } else {
        format!("cannot connect to {host}{through}: {}", reason(e))
    };
    unreachable().with_detail(what).unexecuted()
}

/// What a caller is told of it: where servers are is nobody else's business.
fn unreachable() -> Error {
    Error::new(Symbol::Unavailable, "The server cannot be reached")
}

/// No connection could be made in time.
pub(super) fn connect_timeout(host: &str, proxy: Option<&str>, after: Duration) -> Error {
    let through = proxy.map(|p| format!(" through the proxy {p}")).unwrap_or_default();
    let what = format!("cannot connect to {host}{through}: no answer for {} s", after.as_secs_f32());
    unreachable().with_detail(what).unexecuted()
}

/// The connection failed before there was an answer. The request may have been executed.
pub(super) fn lost(host: &str, e: &hyper::Error) -> Error {
    let what = if e.is_parse() {
        format!("what {host} answers is not HTTP/1.1: {}", innermost(e))
    } else if e.is_incomplete_message() {
        format!("{host} closed the connection before it answered")
    } else {
        format!("the connection to {host} broke before it answered: {}", reason(e))
    };
    Error::new(Symbol::Unavailable, "The connection to the server broke before it answered").with_detail(what)
}

/// The connection failed in the middle of an answer.
pub(super) fn broken(host: &str, e: &hyper::Error) -> Error {
    let what = format!("the connection to {host} broke in the middle of its answer: {}", reason(e));
    Error::new(Symbol::Unavailable, "The connection to the server broke in the middle of its answer")
        .with_detail(what)
}

/// The answer is larger than it may be.
pub(super) fn too_large(host: &str, limit: usize) -> Error {
    let told = format!("The answer of the server is larger than the limit of {limit} bytes");
    Error::new(Symbol::TooLarge, told)
        .with_detail(format!("the answer of {host} is larger than the limit of {limit} bytes"))
}

/// The first error of type `E` in a chain of causes. I/O errors hide what they wrap from `source`.
fn find<'e, E: StdError + 'static>(e: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut next = Some(e);
    while let Some(e) = next {
        if let Some(found) = e.downcast_ref() {
            return Some(found);
        }
        next = cause(e);
    }
    None
}

fn cause<'e>(e: &'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
    match e.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => e.source(),
    }
}

/// What says most: the operating system's reason where there is one, else the innermost cause.
fn reason(e: &(dyn StdError + 'static)) -> String {
    let mut next = Some(e);
    while let Some(e) = next {
        if let Some(io) = e.downcast_ref::<io::Error>()
            && (io.raw_os_error().is_some() || io.kind() == io::ErrorKind::TimedOut)
        {
            return match io.kind() {
                // The kind's name is plain words, without the error number.
                kind @ (io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::TimedOut) => kind.to_string(),
                _ => io.to_string(),
            };
        }
        next = cause(e);
    }
    innermost(e)
}

fn innermost(e: &(dyn StdError + 'static)) -> String {
    let mut last = e;
    while let Some(inner) = cause(last) {
        last = inner;
    }
    let text = last.to_string();
    text.strip_prefix("failed to lookup address information: ").map_or(text.clone(), str::to_owned)
}

/// hyper-util does not name the type of this error, only its words.
fn is_resolving(e: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(e);
    while let Some(e) = next {
        if e.to_string() == "dns error" {
            return true;
        }
        next = cause(e);
    }
    false
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "nobody that this system trusts has signed it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidForName => "it is for another name".to_owned(),
        other => other.to_string(),
    }
}
