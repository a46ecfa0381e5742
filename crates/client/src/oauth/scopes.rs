//! [`Scopes`]: what a token allows, or what is asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A set of scopes that keeps its order, so that requests look the same each time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Reads the value of a `scope` parameter: scopes with spaces between them.
    pub fn parse(text: &str) -> Scopes {
        text.split_ascii_whitespace().collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether this one is among them.
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|own| own == scope)
    }

    /// Whether all of `others` are among them.
    pub fn covers(&self, others: &Scopes) -> bool {
        others.iter().all(|scope| self.contains(scope))
    }

    /// These and then those of `others` that are new.
    pub fn union(&self, others: &Scopes) -> Scopes {
        self.iter().chain(others.iter()).collect()
    }
}

impl<S: Into<String>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Scopes {
        let mut all = Scopes::default();
        for scope in scopes {
            let scope = scope.into();
            if !scope.is_empty() && !all.contains(&scope) {
                all.0.push(scope);
            }
        }
        all
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_keep_order_and_repeat_nothing() {
        let had = Scopes::parse("read  write read");
        assert_eq!(had.to_string(), "read write");
        assert_eq!(had.union(&Scopes::parse("admin write")).to_string(), "read write admin");
        assert!(had.covers(&Scopes::parse("write")) && !had.covers(&Scopes::parse("write admin")));
        assert!(Scopes::parse(" ").is_empty());
    }
}
