//! Several endpoints: what each of them has, and that nothing of one is there at another.

mod changing;
mod kept;
mod modes;
mod selection;
mod side_doors;

use tidegate_config::Patterns;

/// Patterns of a selection.
fn patterns<const N: usize>(texts: [&str; N]) -> Option<Patterns> {
    Some(Patterns::new(texts).unwrap())
}
