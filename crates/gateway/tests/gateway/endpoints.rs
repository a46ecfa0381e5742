//! Several endpoints: what each of them has, and that nothing of one is there at another.

mod kept;
