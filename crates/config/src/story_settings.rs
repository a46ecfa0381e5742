//! What is remembered of calls: [`StorySettings`].

use std::path::PathBuf;

/// What is remembered of the latest calls, for `tidegate explain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorySettings {
    /// How many bytes of stories are kept; 0 for none.
    pub room: usize,
    /// The file that has them, too.
    pub file: Option<PathBuf>,
    /// How many bytes of the arguments and of the result of a call are part of its story; `None` for nothing of them.
    pub bodies: Option<usize>,
}

impl Default for StorySettings {
    fn default() -> StorySettings {
        StorySettings { room: 4 << 20, file: None, bodies: None }
    }
}
