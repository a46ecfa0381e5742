//! When a certificate is valid. Nothing else of it is read here, and nothing is decided by it: it is for a warning.

/// From when and until when a certificate (DER, RFC 5280) is valid, in milliseconds since 1970; `None` if it is not written as it
/// should be.
pub(super) fn validity_ms(certificate: &[u8]) -> Option<(u64, u64)> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    // The version is left out in the oldest ones.
    if let Some((_, after)) = element(rest, VERSION) {
        rest = after;
    }
    // The serial number, the algorithm and the issuer come before the validity.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, rest) = element(rest, tag)?;
    }
    let (validity, _) = element(rest, SEQUENCE)?;
    let (not_before, rest) = time(validity)?;
    time(rest).map(|(not_after, _)| (not_before, not_after))
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// The content of the first element, if it has this tag, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, and what comes after it.
fn time(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (text, rest, century) = match element(bytes, UTC_TIME) {
        Some((text, rest)) => (text, rest, None),
        None => {
            let (text, rest) = element(bytes, GENERALIZED_TIME)?;
            let (century, text) = text.split_at_checked(2)?;
            (text, rest, Some(number(century)?))
        }
    };
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.len() == 12)?;
    let mut parts = digits.chunks(2).map(number);
    let mut next = || parts.next().flatten();
    let (year, month, day) = (next()?, next()?, next()?);
    let (hour, minute, second) = (next()?, next()?, next()?);
    // RFC 5280: two digits are of 1950 to 2049.
    let century = century.unwrap_or(if year < 50 { 20 } else { 19 });
    let days = days_since_1970(century * 100 + year, month, day)?;
    Some((1000 * (86_400 * days + 3600 * hour + 60 * minute + second), rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |number, digit| 10 * number + u64::from(digit - b'0')))
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap =
        |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok()?.checked_sub(1).filter(|month| *month < 12)?;
    let day = day.checked_sub(1).filter(|day| *day < months[month])?;
    let years: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    (year >= 1970).then(|| years + months[..month].iter().sum::<u64>() + day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let at = |tag: u8, text: &str| {
            let bytes = [&[tag, text.len() as u8], text.as_bytes()].concat();
            time(&bytes).map(|(ms, _)| ms / 1000)
        };
        assert_eq!(at(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(at(UTC_TIME, "261117150203Z"), Some(1_794_927_723));
        assert_eq!(at(GENERALIZED_TIME, "20000229235959Z"), Some(951_868_799));
        assert_eq!(at(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
        for (tag, text) in [
            (UTC_TIME, "500101000000Z"),
            (UTC_TIME, "261317150203Z"),
            (UTC_TIME, "260229000000Z"),
            (UTC_TIME, "260200000000Z"),
            (UTC_TIME, "26021700000Z"),
            (UTC_TIME, "2602170000000"),
            (GENERALIZED_TIME, "+9991231235959Z"),
            (INTEGER, "261117150203Z"),
        ] {
            assert_eq!(at(tag, text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x80],
            &[0x30, 0x02, 0x30, 0x00],
        ] {
            assert_eq!(validity_ms(bytes), None);
        }
    }
}
