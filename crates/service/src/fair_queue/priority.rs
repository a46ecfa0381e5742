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

    pub(super) const fn class(self) -> usize {
        self as usize
    }
}
