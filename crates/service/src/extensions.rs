//! [`Extensions`]: what layers know about a call and pass on, by type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

type Value = Arc<dyn Any + Send + Sync>;

/// Values of a call by their type, one of each: its claims, the decision about it, its place in a trace. There are few, so
/// they are looked for one after the other; an empty one takes no memory.
#[derive(Clone, Default)]
pub struct Extensions(Vec<(TypeId, Value)>);

impl Extensions {
    /// The value of a type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.0.iter().find(|(kind, _)| *kind == TypeId::of::<T>())?;
        value.clone().downcast().ok()
    }

    /// Puts a value in the place of the one before.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.0.retain(|(kind, _)| *kind != TypeId::of::<T>());
        self.0.push((TypeId::of::<T>(), value));
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_of_each_type() {
        let mut extensions = Extensions::default();
        assert_eq!(extensions.get::<u8>(), None);
        extensions.insert(Arc::new(1u8));
        extensions.insert(Arc::new("text"));
        extensions.insert(Arc::new(2u8));
        let copy = extensions.clone();
        assert_eq!((copy.get::<u8>().as_deref(), copy.get::<&str>().as_deref()), (Some(&2), Some(&"text")));
        assert_eq!(copy.0.len(), 2);
    }
}
