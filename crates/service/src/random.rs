//! Random bytes for whatever others must not guess: keys, nonces, names of sessions and tasks.

/// Random bytes of the operating system.
///
/// # Panics
///
/// When the operating system has none, because nothing that is made of others could be trusted.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    bytes
}
