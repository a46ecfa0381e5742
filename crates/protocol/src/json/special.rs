//! Where the plain part of a string ends.

/// Offset of the first quote, backslash or control character, or the length if there is none.
///
/// Most strings of a message are short names, so the first bytes are looked at at once.
#[inline(always)]
pub(crate) fn find_special(bytes: &[u8]) -> usize {
    if let Some(word) = bytes.first_chunk() {
        let hits = special_bytes(u64::from_le_bytes(*word));
        if hits != 0 {
            return hits.trailing_zeros() as usize / 8;
        }
        return find_special_near(bytes);
    }
    find_special_far(bytes, 0)
}

/// The same for somewhat longer strings, whose first word has nothing special.
#[inline(never)]
fn find_special_near(bytes: &[u8]) -> usize {
    const WORD: usize = 8;
    const NEAR: usize = 48;
    let near = &bytes[..bytes.len().min(NEAR)];
    let mut rest = &near[WORD..];
    while let Some((word, after)) = rest.split_first_chunk::<WORD>() {
        let hits = special_bytes(u64::from_le_bytes(*word));
        if hits != 0 {
            return near.len() - rest.len() + hits.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    find_special_far(bytes, near.len() - rest.len())
}

/// The same for long strings, from an offset on: one look for the end of the plain part, which uses whatever vectors the
/// machine has, and one at the lowest byte before it.
#[inline(never)]
fn find_special_far(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let plain = &rest[..end];
    let lowest = plain.iter().fold(u8::MAX, |lowest, &b| lowest.min(b));
    match lowest < 0x20 {
        true => at + plain.iter().position(|&b| b < 0x20).unwrap_or(end),
        false => at + end,
    }
}

/// The high bit of each byte of a word that is special. Only the lowest such bit is exact, which is all that is asked.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // A byte below a bound borrows when the bound is taken from it. With bit 1 flipped the quote comes just above the
    // control characters, with the backslash cancelled out it is the only zero, and neither touches the high bit.
    let control_or_quote = (word ^ (EACH * 0x02)).wrapping_sub(EACH * 0x21);
    let backslash = (word ^ (EACH * b'\\' as u64)).wrapping_sub(EACH);
    (control_or_quote | backslash) & !word & (EACH * 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_in_every_position() {
        for len in 0..200 {
            for at in 0..len {
                for special in [b'"', b'\\', 0x1f, 0] {
                    let mut text = vec![b'x'; len];
                    text[at] = special;
                    assert_eq!(find_special(&text), at);
                }
            }
            assert_eq!(find_special(&vec![0xc3; len]), len);
        }
    }
}
