//! [`BuiltinSettings`]: what a server of the program is told, without its type.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a server of the program is told. Clones are handles on the same.
#[derive(Clone)]
pub struct BuiltinSettings {
    value: Arc<dyn Value>,
    /// A digest of what it was made from.
    identity: String,
}

trait Value: Any + fmt::Debug + Send + Sync {}
impl<T: Any + fmt::Debug + Send + Sync> Value for T {}

impl BuiltinSettings {
    pub(crate) fn new(value: impl Any + fmt::Debug + Send + Sync) -> BuiltinSettings {
        BuiltinSettings { value: Arc::new(value), identity: String::new() }
    }

    /// The same, made from what has this digest. Equal ones mean equal settings.
    pub fn made_from(mut self, identity: String) -> BuiltinSettings {
        self.identity = identity;
        self
    }

    /// The digest of what it was made from, secrets included: a guessed secret could be checked against it, so it is for
    /// comparing, and for nobody to see.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The settings themselves, if they are those of this kind.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        let value: &dyn Any = &*self.value;
        value.downcast_ref()
    }
}

impl fmt::Debug for BuiltinSettings {
    /// Without the digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
