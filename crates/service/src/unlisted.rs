//! Tools that are not listed and can be called all the same.

/// Under which name a server says that it has such tools, among its experimental capabilities: both eras have those. A
/// gateway then asks it for tools that nobody lists. In the `_meta` of `tools/list` it stands before the name of one tool,
/// whose definition is then the whole list: so what an unlisted tool takes can be found out.
pub const UNLISTED: &str = "dev.tidegate/unlisted";
