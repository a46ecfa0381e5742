//! [`Filter`]: which log lines are wanted.

use std::fmt;
use std::str::FromStr;

use tidegate_service::log_filter;
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

impl Filter {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        match log_filter::is_filter(text) && EnvFilter::try_new(text).is_ok() {
            true => Ok(Filter(text.to_owned())),
            false => Err(FilterError::Unclear),
        }
    }
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
            FilterError::Unclear => log_filter::FORM,
            FilterError::NotOurs => "the log lines of this program are not written by Tidegate",
        })
    }
}

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_what_is_written_as_one_and_understood() {
        for text in ["info", "info,tidegate::wire=debug", "info,[call{tool=echo}]=debug"] {
            assert_eq!(text.parse::<Filter>().as_ref().map(Filter::as_str), Ok(text));
        }
        for text in ["", "infoo", "[call{tool=(}]=debug"] {
            assert_eq!(text.parse::<Filter>(), Err(FilterError::Unclear), "{text:?}");
        }
    }
}
