//! [`Priority`]: who is let in first where calls wait.

/// Who is let in first where calls wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Before all others.
    High,
    /// What everybody has.
    #[default]
    Normal,
    /// After all others.
    Low,
}

impl Priority {
    /// All of them, the first one first.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

    /// The word for it, as in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Priority::High => "high",
            Priority::Normal => "normal",
            Priority::Low => "low",
        }
    }

    pub(super) const fn class(self) -> usize {
        self as usize
    }
}
