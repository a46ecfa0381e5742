//! Resources that each caller has of their own.

/// Under which name a server says, among its experimental capabilities, that its list of resources is not the same for
/// everybody: some are each caller's own, and may be many. A gateway then keeps those that everybody has, and asks for the
/// others in the name of whoever lists them.
///
/// In the `_meta` of `resources/list`, the same name says which of them are wanted: with `true` only the caller's own,
/// with `false` only those that everybody has. Who does not say gets all of them.
pub const OWN_RESOURCES: &str = "dev.tidegate/own-resources";
