//! [`Held`]: places that a call holds while it makes other calls.

/// The places that a call holds, by number, in the extensions of its context. Whoever makes calls as part of another one hands it on, so that they
/// wait for nothing that the outer one has: it waits for them, and neither would ever get on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held(pub Box<[u64]>);

impl Held {
    /// Whether a place is among them.
    pub fn has(&self, place: u64) -> bool {
        self.0.contains(&place)
    }
}
