//! [`Filter`]: which log lines are wanted.

use std::fmt;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// Which log lines are wanted: a level, or a list of levels for parts of the program, such as `info,tidegate::wire=debug`.
///
/// ```
/// use tidegate::logging::Filter;
///
/// assert!("info,tidegate::wire=debug".parse::<Filter>().is_ok());
/// assert!("infoo".parse::<Filter>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(String);

/// How long a filter may be, in bytes.
const LONGEST: usize = 4096;

impl Filter {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        let is_understood = text.len() <= LONGEST && EnvFilter::try_new(text).is_ok();
        // `EnvFilter` takes a misspelt level for the name of a part, of which everything would be shown.
        let says_level = |directive: &str| match directive.rsplit_once('=') {
            Some((part, level)) => !part.is_empty() && is_level(level),
            None => is_level(directive),
        };
        match is_understood && text.split(',').all(says_level) {
            true => Ok(Filter(text.to_owned())),
            false => Err(FilterError::Unclear),
        }
    }
}

fn is_level(text: &str) -> bool {
    !text.is_empty() && text.parse::<LevelFilter>().is_ok()
}

/// Why a filter cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// It is no [`Filter`].
    Unclear,
    /// [`init`](super::init) was not called, or somebody else writes the log lines of this program.
    NotOurs,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FilterError::Unclear => {
                "use error, warn, info, debug, trace or off, or a list with levels for parts of the program, such as \
                 info,tidegate::wire=debug"
            }
            FilterError::NotOurs => "the log lines of this program are not written by Tidegate",
        })
    }
}

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_lists_of_them() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,tidegate::wire=debug",
            "warn,tidegate_server=error",
            "tidegate::access=off",
            "info,[call{tool=echo}]=debug",
        ] {
            assert_eq!(text.parse::<Filter>().as_ref().map(Filter::as_str), Ok(text));
        }
        for text in [
            "",
            "infoo",
            "info,",
            "info;debug",
            "debug=tidegate",
            "=info",
            "tidegate=",
            "tidegate::wire",
            "in fo",
            "warn, tidegate=info",
            &format!("info{}", ",a=info".repeat(LONGEST)),
        ] {
            assert_eq!(text.parse::<Filter>(), Err(FilterError::Unclear), "{text:?}");
        }
    }
}
