//! [`Cost`]: how many steps a condition takes at most, known before it is evaluated.
//!
//! CEL has no loops but those over lists and maps. With *n* as the length of the longest of these and *s* for the bytes that
//! there are to look at, the steps of an expression are a polynomial in *n* and *s*, which is found once; what callers send only
//! has to be put into it.

/// How many steps a decision may take, all its conditions together. A step is about as much as reading a variable, or comparing 256 bytes.
pub const MAX_STEPS: u64 = 200_000;
/// How deep loops may be in one another.
const MAX_LOOPS: usize = 3;
/// How many bytes are looked at in a step.
const BYTES_A_STEP: usize = 256;

/// The steps of an expression: for each power of *n*, those that there are anyway and those for each *s*.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    flat: [u64; MAX_LOOPS + 1],
    bytes: [u64; MAX_LOOPS + 1],
    /// The longest list or map that is written in the expression.
    longest: u64,
    /// How many `+` it has, each of which can make a list longer.
    sums: u64,
}

impl Cost {
    /// So many steps, whatever the arguments are.
    pub(super) fn steps(steps: u64) -> Cost {
        Cost { flat: [steps, 0, 0, 0], ..Cost::default() }
    }

    /// The same, with a list of so many elements written in it.
    pub(super) fn and_list(mut self, elements: usize) -> Cost {
        self.longest = self.longest.max(elements as u64);
        self
    }

    /// The same, with a `+` in it.
    pub(super) fn and_sum(mut self) -> Cost {
        self.sums += 1;
        self
    }

    /// The same, and all bytes so many times.
    pub(super) fn and_bytes(mut self, times: u64) -> Cost {
        self.bytes[0] = self.bytes[0].saturating_add(times);
        self
    }

    /// The same, and one step for each element.
    pub(super) fn and_elements(mut self) -> Cost {
        self.flat[1] = self.flat[1].saturating_add(1);
        self.bytes[1] = self.bytes[1].saturating_add(1);
        self
    }

    pub(super) fn and(mut self, other: Cost) -> Cost {
        for (own, other) in [(&mut self.flat, other.flat), (&mut self.bytes, other.bytes)] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own = own.saturating_add(other));
        }
        self.longest = self.longest.max(other.longest);
        self.sums = self.sums.saturating_add(other.sums);
        self
    }

    /// The same for each element of a list. `None` if loops are too deep in one another.
    pub(super) fn for_each(self) -> Option<Cost> {
        let shifted = |powers: [u64; MAX_LOOPS + 1]| match powers {
            [a, b, c, 0] => Some([0, a, b, c]),
            _ => None,
        };
        Some(Cost { flat: shifted(self.flat)?, bytes: shifted(self.bytes)?, ..self })
    }

    /// How many steps an evaluation over so many elements and bytes takes at most.
    pub(super) fn steps_for(&self, elements: usize, bytes: usize) -> u64 {
        let n = (elements as u128).max(self.longest.into()) * (u128::from(self.sums) + 1);
        let s = bytes.div_ceil(BYTES_A_STEP) as u128;
        let mut steps: u128 = 0;
        let mut power: u128 = 1;
        for (flat, bytes) in self.flat.iter().zip(self.bytes) {
            let each = u128::from(*flat).saturating_add(u128::from(bytes).saturating_mul(s));
            steps = steps.saturating_add(each.saturating_mul(power));
            power = power.saturating_mul(n);
        }
        u64::try_from(steps).unwrap_or(u64::MAX)
    }
}
