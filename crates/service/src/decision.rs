//! [`Decision`]: what a policy says to a call, and which of its rules does.

use std::sync::Arc;

/// What a policy says to a call. It is made once for each rule, and shared by all calls that the rule decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The rule that decided: its name, `line 12` if it has none, or `default` if no rule was about the call.
    pub rule: Arc<str>,
    /// The line of the configuration that has the rule, if that is known.
    pub line: Option<usize>,
    /// Whether the call may be made.
    pub is_allowed: bool,
    /// Whether that counts. In shadow mode a policy decides, and everything may be done all the same.
    pub is_enforced: bool,
}

impl Decision {
    /// Whether the call is refused because of it.
    pub fn refuses(&self) -> bool {
        self.is_enforced && !self.is_allowed
    }

    /// Whether a rule decided, and not what holds where no rule says anything. One that is called like that counts as none.
    pub fn is_of_rule(&self) -> bool {
        !matches!(&*self.rule, "default" | "no claims")
    }

    /// The word for it: `allowed`, `refused`, or `would_refuse` in shadow mode.
    pub fn as_str(&self) -> &'static str {
        match (self.is_allowed, self.is_enforced) {
            (true, _) => "allowed",
            (false, true) => "refused",
            (false, false) => "would_refuse",
        }
    }
}
