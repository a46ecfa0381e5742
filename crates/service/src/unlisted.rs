//! Tools that are not listed and can be called all the same.

/// Under which name a server says that it has such tools, among its experimental capabilities: both eras have those. A
/// gateway then asks it for tools that nobody lists.
pub const UNLISTED: &str = "dev.tidegate/unlisted";
