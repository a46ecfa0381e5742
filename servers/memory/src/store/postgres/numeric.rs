//! [`Numeric`]: the exact numbers that PostgreSQL adds whole numbers up to.

use std::error::Error;

use ::postgres::types::{FromSql, Type};

/// The sign of a number below zero; other signs but 0 are no numbers.
const NEGATIVE: u16 = 0x4000;

/// A number as the server sends it: digits of base 10,000, the first of which counts `10,000 ^ weight`.
pub(super) struct Numeric {
    weight: i16,
    negative: bool,
    digits: Vec<u16>,
}

impl<'a> FromSql<'a> for Numeric {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Numeric, Box<dyn Error + Sync + Send>> {
        let words: Vec<u16> = raw.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
        match words.as_slice() {
            // How many digits, weight, sign, how many digits to show after the point.
            [count, weight, sign @ (0 | NEGATIVE), _, digits @ ..] if digits.len() == usize::from(*count) => {
                Ok(Numeric { weight: *weight as i16, negative: *sign == NEGATIVE, digits: digits.to_vec() })
            }
            _ => Err("not a number".into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::NUMERIC
    }
}

impl Numeric {
    /// The number, if it is a whole one and not too large.
    pub(super) fn whole(&self) -> Option<i64> {
        let places = usize::try_from(i32::from(self.weight) + 1).unwrap_or(0);
        if self.digits.iter().skip(places).any(|digit| *digit != 0) {
            return None;
        }
        let mut sum = 0_i64;
        for place in 0..places {
            let digit = i64::from(self.digits.get(place).copied().unwrap_or(0));
            let digit = if self.negative { -digit } else { digit };
            sum = sum.checked_mul(10_000)?.checked_add(digit)?;
        }
        Some(sum)
    }

    /// The nearest number.
    pub(super) fn real(&self) -> f64 {
        let mut sum = 0.0;
        for (place, digit) in self.digits.iter().enumerate() {
            sum += f64::from(*digit) * 10_000_f64.powi(i32::from(self.weight) - place as i32);
        }
        if self.negative { -sum } else { sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_become_numbers() {
        let number = |weight: i16, sign: u16, digits: &[u16]| {
            let head = [digits.len() as u16, weight as u16, sign, 0];
            let raw: Vec<u8> = head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect();
            Numeric::from_sql(&Type::NUMERIC, &raw)
        };
        for (weight, sign, digits, whole, real) in [
            (0, 0, &[][..], Some(0), 0.0),
            (0, 0, &[42], Some(42), 42.0),
            (1, 0, &[3], Some(30_000), 30_000.0),
            (1, NEGATIVE, &[1, 2], Some(-10_002), -10_002.0),
            (0, 0, &[3, 5_000], None, 3.5),
            (-1, NEGATIVE, &[2_500], None, -0.25),
            (4, 0, &[922, 3372, 368, 5477, 5807], Some(i64::MAX), i64::MAX as f64),
            (5, 0, &[1], None, 1e20),
        ] {
            let number = number(weight, sign, digits).unwrap();
            assert_eq!(number.whole(), whole, "{digits:?}");
            assert!((number.real() - real).abs() <= real.abs() * 1e-12, "{digits:?}: {}", number.real());
        }
        assert!(number(0, 0xC000, &[]).is_err(), "not a number");
        assert!(Numeric::from_sql(&Type::NUMERIC, &[0, 9, 0, 0, 0, 0, 0, 0]).is_err(), "cut short");
    }
}
