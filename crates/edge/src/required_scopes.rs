//! Which scopes a refusal for want of them names.

use tidegate_protocol::{Error, Object, Symbol};

/// The scopes that a request would have needed, if that is why it was refused: `requiredScopes` in the data of the error.
pub(crate) fn required_scopes(error: &Error) -> Option<Vec<String>> {
    if error.symbol() != Symbol::InsufficientScope {
        return None;
    }
    let listed = error.data().and_then(Object::of).and_then(|data| data.json("requiredScopes"));
    Some(listed.and_then(|scopes| scopes.to().ok()).unwrap_or_default())
}
