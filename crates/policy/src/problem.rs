//! [`Problem`]: what is wrong with a policy, and where.

use std::fmt;

/// A field of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named like the fields
pub enum RuleField {
    Name,
    Allow,
    Deny,
    Roles,
    Tenants,
    Subjects,
    Issuers,
    Clients,
    Endpoints,
    Servers,
    When,
}

impl RuleField {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            RuleField::Name => "name",
            RuleField::Allow => "allow",
            RuleField::Deny => "deny",
            RuleField::Roles => "roles",
            RuleField::Tenants => "tenants",
            RuleField::Subjects => "subjects",
            RuleField::Issuers => "issuers",
            RuleField::Clients => "clients",
            RuleField::Endpoints => "endpoints",
            RuleField::Servers => "servers",
            RuleField::When => "when",
        }
    }
}

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which rule, counted from 0; `None` if it is about all of them.
    pub rule: Option<usize>,
    /// Which field of the rule; `None` if it is about all of it.
    pub field: Option<RuleField>,
    /// What is wrong, and what to do, as the rest of a sentence that begins with the field.
    pub sentence: String,
}

impl Problem {
    pub(crate) fn of(rule: usize, sentence: impl Into<String>) -> Problem {
        Problem { rule: Some(rule), field: None, sentence: sentence.into() }
    }

    pub(crate) fn with(rule: usize, field: RuleField, sentence: impl Into<String>) -> Problem {
        Problem { rule: Some(rule), field: Some(field), sentence: sentence.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rule) = self.rule {
            write!(f, "rule {}: ", rule + 1)?;
        }
        if let Some(field) = self.field {
            write!(f, "{} ", field.as_str())?;
        }
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Problem {}
