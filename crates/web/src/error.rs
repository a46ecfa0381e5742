//! [`Error`]: why there is no answer.

use std::fmt;
use std::time::Duration;

use crate::Zone;

/// Why there is no answer, or not all of it. Nothing in it is secret: of an address it holds the host at most.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No request can be made of this.
    Request(&'static str),
    /// The name of the host stands for nothing.
    NoHost(String),
    /// The [`Guard`](crate::Guard) lets nothing go there.
    Forbidden {
        /// The host.
        host: String,
        /// Where it is.
        zone: Zone,
    },
    /// The environment names a proxy of a kind that cannot be used.
    Proxy {
        /// The proxy.
        proxy: String,
        /// The host that it would have been used for.
        host: String,
    },
    /// The certificates of the system cannot be read.
    Certificates(String),
    /// There was no connection, so nothing was sent.
    Connect(String),
    /// It took too long to connect, so nothing was sent.
    ConnectTimeout(Duration),
    /// It took too long to answer.
    Timeout,
    /// The connection broke off.
    Broken(String),
    /// The answer is larger than this many bytes.
    TooLarge(usize),
    /// So many requests go to this host already that the wait would be longer than the time there is.
    Busy(String),
}

impl Error {
    /// Whether somebody took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Timeout | Error::ConnectTimeout(_))
    }

    /// Whether no connection came about, so that nothing was sent.
    pub fn is_connect(&self) -> bool {
        !matches!(self, Error::Timeout | Error::Broken(_) | Error::TooLarge(_))
    }

    /// What went wrong in a library, in its words.
    pub(crate) fn connect(error: &(dyn std::error::Error + 'static)) -> Error {
        Error::Connect(causes(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Request(why) => f.write_str(why),
            Error::NoHost(host) => write!(f, "there is no host {host}"),
            Error::Forbidden { host, zone } => {
                let what = match zone {
                    Zone::Metadata => "the metadata address of a cloud or a network",
                    Zone::Loopback => "on this machine",
                    Zone::Private => "on a private network",
                    Zone::Public | Zone::Reserved => "not on the public internet",
                };
                write!(f, "{host} is {what}, and requests may not go there")
            }
            Error::Proxy { proxy, host } => write!(
                f,
                "the proxy {proxy} cannot be used, only those that start with http:// or https:// can; change the \
                 environment variable that names it, or add {host} to NO_PROXY"
            ),
            Error::Certificates(why) => write!(f, "cannot check the certificates of servers: {why}"),
            Error::Connect(why) | Error::Broken(why) => f.write_str(why),
            Error::ConnectTimeout(limit) => write!(f, "no connection within {} s", limit.as_secs_f32()),
            Error::Timeout => f.write_str("no answer in time"),
            Error::TooLarge(most) => {
                write!(f, "length limit exceeded: the answer has more than {most} bytes")
            }
            Error::Busy(host) => write!(f, "too many requests go to {host} at the moment; try again later"),
        }
    }
}

impl std::error::Error for Error {}

/// An error with its causes, the last of which is often the only telling one.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}
