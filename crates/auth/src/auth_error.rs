//! [`AuthError`]: why callers cannot be authenticated as configured.

use std::fmt;

use crate::jwt::SetupError;
use crate::keys::KeyFileError;

/// Why [`Authenticator::start`](crate::Authenticator::start) or a reload fails. `Display` says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum AuthError {
    /// The file of API keys cannot be used.
    Keys(KeyFileError),
    /// An issuer cannot be used.
    Issuer {
        /// Its name.
        issuer: String,
        /// What is wrong.
        error: SetupError,
    },
    /// Nobody could ever log in.
    NoCredentials,
    /// There is nothing to protect: the default endpoint is missing.
    NoDefaultEndpoint,
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::Keys(error) => error.fmt(f),
            AuthError::Issuer { issuer, error } => {
                write!(f, "Tokens of {issuer} cannot be verified: {error}")
            }
            AuthError::NoCredentials => f.write_str(
                "[auth] accepts no credentials: set keys, or add [[auth.jwt]] or [[auth.introspection]]",
            ),
            AuthError::NoDefaultEndpoint => {
                f.write_str("The default endpoint is missing among the protected resources")
            }
        }
    }
}

impl std::error::Error for AuthError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AuthError::Keys(error) => Some(error),
            AuthError::Issuer { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<KeyFileError> for AuthError {
    fn from(error: KeyFileError) -> AuthError {
        AuthError::Keys(error)
    }
}
