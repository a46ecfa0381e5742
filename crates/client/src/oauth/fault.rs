//! [`Fault`]: what can go wrong on the way to a token, and the sentence that says so.

use std::fmt;

use tidegate_protocol::{Error, Symbol};

use super::scopes::Scopes;

/// Why there is no token. No variant holds a secret, and text from other servers goes through [`quote`].
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// Somebody has to log in, and this process may not open a browser.
    LoginNeeded { server: String, scopes: Scopes },
    /// Logging in did not help, several times.
    TooManyLogins { host: String },
    /// The server wants scopes that were asked for already.
    ScopeRefused { host: String, scopes: String },
    /// The server refuses for a reason that no token cures.
    Refused { host: String, status: u16 },
    /// A server on the way cannot be reached.
    Network { host: String, why: String },
    /// An address that a server named, where requests are not sent.
    Address { what: &'static str, address: String, why: &'static str },
    /// What a server says about itself makes no sense, or is not to be trusted.
    Metadata(String),
    /// The authorization server cannot do something that is needed.
    Unsupported(String),
    /// The authorization server said no, with an OAuth error code.
    Denied { host: String, code: String, description: String },
    /// The browser came back with something that is not the answer to our question.
    Callback(&'static str),
    /// No answer came back from the browser.
    Browser(String),
    /// The settings make no sense.
    Settings(String),
    /// Tokens cannot be read or kept.
    Store(String),
    /// A key or a signature.
    Key(String),
}

impl Fault {
    /// The OAuth error code, if the authorization server gave one.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Fault::Denied { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the same attempt may succeed a little later.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Fault::Network { .. } | Fault::Store(_))
            || matches!(self.code(), Some("temporarily_unavailable" | "server_error" | "slow_down"))
    }

    /// Whether the authorization server no longer knows our client, so that it has to be registered again.
    pub(super) fn forgets_client(&self) -> bool {
        matches!(self.code(), Some("invalid_client" | "unauthorized_client"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::LoginNeeded { server, scopes } if scopes.is_empty() => {
                write!(f, "{server} wants a login; run: tidegate login {server}")
            }
            // A login asks for what the server wants of everybody: what this call needs has to be said.
            Fault::LoginNeeded { server, scopes } => {
                let scopes = quote(&scopes.to_string());
                // Only what no shell takes for anything else: people paste this.
                let is_plain = |c: char| c.is_ascii_alphanumeric() || ":._/-".contains(c);
                let plain = scopes.split(' ').filter(|scope| scope.chars().all(is_plain));
                let options: String = plain.map(|scope| format!(" --scope {scope}")).collect();
                write!(
                    f,
                    "{server} wants a new login (for the scopes {scopes}); run: tidegate login {server}{options}"
                )
            }
            Fault::TooManyLogins { host } => write!(
                f,
                "getting a token for {host} was tried several times and did not help, so it is not tried again; \
                 restart to try again, and tell whoever runs {host}"
            ),
            Fault::ScopeRefused { host, scopes } if scopes.is_empty() => write!(
                f,
                "{host} wants more rights but does not say which; ask whoever runs it for the scopes to log in with"
            ),
            Fault::ScopeRefused { host, scopes } => write!(
                f,
                "{host} wants the scopes {scopes}, which were asked for and not granted; ask whoever runs it for them"
            ),
            Fault::Refused { host, status } => {
                write!(f, "{host} does not allow this (HTTP {status}), and no other token would change that")
            }
            Fault::Network { host, why } => {
                write!(f, "cannot reach {host} to get a token: {why}; try again later")
            }
            Fault::Address { what, address, why } => {
                write!(
                    f,
                    "the {what} {} is not used, because {why}; tell whoever runs the server",
                    quote(address)
                )
            }
            Fault::Metadata(what) => write!(f, "{what}; tell whoever runs the server"),
            Fault::Unsupported(what) | Fault::Settings(what) | Fault::Store(what) | Fault::Key(what) => {
                f.write_str(what)
            }
            Fault::Denied { host, code, description } => {
                write!(f, "{host} gives no token ({}", quote(code))?;
                if !description.is_empty() {
                    write!(f, ": {}", quote(description))?;
                }
                f.write_str(match code.as_str() {
                    "access_denied" => "); log in again and allow it",
                    "invalid_scope" => "); log in with other scopes",
                    "invalid_client" | "unauthorized_client" => {
                        "); check the client id and its secret or key"
                    }
                    "invalid_grant" => "); log in again",
                    _ => "); try again, or ask whoever runs it",
                })
            }
            Fault::Callback(what) => {
                write!(f, "the answer from the login page is not trusted, because {what}; log in again")
            }
            Fault::Browser(what) => write!(f, "the login was not finished: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let symbol = match &fault {
            fault if fault.is_passing() => Symbol::Unavailable,
            _ => Symbol::Unauthorized,
        };
        // Whoever waits for a token has not sent its request, or was refused.
        let told = match symbol {
            Symbol::Unavailable => "The gateway cannot log in to the server at the moment",
            _ => "The server wants a login that the gateway does not have",
        };
        Error::new(symbol, told).with_detail(fault.to_string()).unexecuted()
    }
}

/// Text from elsewhere, made fit for one line of a log.
pub(super) fn quote(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    if text.chars().count() > 200 {
        short.push('…');
    }
    short
}
