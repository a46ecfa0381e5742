//! The time of log lines. There is one for each call, and most lines share their second with the one before.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    /// A second, and its text: `2026-07-28T12:00:00`.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// Appends the time as RFC 3339 in UTC, with microseconds: `2026-07-28T12:00:00.000000Z`.
pub(super) fn write_now(out: &mut String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (second, micros) = (now.as_secs(), now.subsec_micros());
    let mut rest = [b'.', b'0', b'0', b'0', b'0', b'0', b'0', b'Z'];
    let mut left = micros;
    for digit in rest[1..7].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    SECOND.with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.0 != second || kept.1.is_empty() {
            let whole = tidegate_service::rfc3339_ms(second * 1000);
            *kept = (second, whole[..whole.len() - ".000Z".len()].to_owned());
        }
        out.push_str(&kept.1);
    });
    out.push_str(std::str::from_utf8(&rest).unwrap_or("Z"));
}

/// The time to the second, as lines in JSON have it: `2026-07-28 12:00:00`.
pub(super) fn second_now() -> String {
    second_of(tidegate_service::epoch_ms())
}

/// The same of another time.
pub(super) fn second_of(epoch_ms: u64) -> String {
    let time = tidegate_service::rfc3339_ms(epoch_ms);
    time[..19].replace('T', " ")
}

/// Appends a number that has at most three digits behind its point as `Debug` does, but for less; others as `Debug` does.
pub(super) fn write_number(out: &mut String, value: f64) {
    let thousandths = (value * 1000.0).round();
    match (0.0..1e15).contains(&thousandths) && (thousandths / 1000.0).to_bits() == value.to_bits() {
        true => write_thousandths(out, thousandths as u64),
        // Writing to a string does not fail.
        false => _ = write!(out, "{value:?}"),
    }
}

/// Appends a number of thousandths: `1.0`, `0.25`, `12.345`.
pub(super) fn write_thousandths(out: &mut String, thousandths: u64) {
    let mut digits = [0; 24];
    let mut at = digits.len() - 3;
    let (mut left, mut rest) = (thousandths / 1000, thousandths % 1000);
    for digit in digits[at..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // At least one digit, as `Debug` has it.
    let zeros = digits[at + 1..].iter().rev().take_while(|digit| **digit == b'0').count();
    let end = digits.len() - zeros;
    at -= 1;
    digits[at] = b'.';
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..end]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_always() {
        for value in [0.0, 1.0, 0.5, 0.25, 1.234, 12.3, 123456.789, 1e14, -1.0, 0.0001, 1e300, f64::NAN] {
            let mut out = String::new();
            write_number(&mut out, value);
            assert_eq!(out, format!("{value:?}"));
        }
    }

    #[test]
    fn the_largest_number_has_room() {
        let mut out = String::new();
        write_thousandths(&mut out, u64::MAX);
        assert_eq!(out, "18446744073709551.615");
    }

    #[test]
    fn times_are_of_one_form() {
        let mut text = String::new();
        for _ in 0..3 {
            text.clear();
            write_now(&mut text);
            assert_eq!(
                (text.len(), &text[10..11], &text[19..20], &text[26..]),
                (27, "T", ".", "Z"),
                "{text}"
            );
        }
    }
}
