//! Where operators come in: [`AdminSettings`], what `[admin]` means.

/// Where operators come in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdminSettings {
    /// Host and port of a listener for the admin API and the figures; `None` if they are where clients come in.
    pub listen: Option<String>,
}
