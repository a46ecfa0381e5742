//! [`Builtins`]: the servers of one program.

use crate::erased::Builtin;

/// The servers that are part of a program, in the order in which it names them. The default is none.
#[derive(Debug, Clone, Default)]
pub struct Builtins(Vec<Builtin>);

impl Builtins {
    /// These.
    ///
    /// # Panics
    ///
    /// If two have the same name: one of them could never be meant.
    pub fn new(all: impl IntoIterator<Item = Builtin>) -> Builtins {
        let all: Vec<Builtin> = all.into_iter().collect();
        for (at, one) in all.iter().enumerate() {
            let is_taken = all[..at].iter().any(|other| other.name() == one.name());
            assert!(!is_taken, "two built-in servers are called {:?}", one.name());
        }
        Builtins(all)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Builtin> {
        self.0.iter()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(Builtin::name)
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Builtin> {
        self.0.iter().find(|one| one.name() == name)
    }
}
