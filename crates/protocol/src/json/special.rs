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

/// The same for long strings, from an offset on: in blocks that the compiler turns into a handful of vector
/// instructions each.
#[inline(never)]
fn find_special_far(bytes: &[u8], mut at: usize) -> usize {
    const BLOCK: usize = 64;
    for block in bytes[at..].chunks_exact(BLOCK) {
        let mut hit = 0u8;
        for &b in block {
            hit |= u8::from(b == b'"') | u8::from(b == b'\\') | u8::from(b < 0x20);
        }
        if hit != 0 {
            break;
        }
        at += BLOCK;
    }
    at + bytes[at..].iter().position(|&b| is_special(b)).unwrap_or(bytes.len() - at)
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

#[inline]
fn is_special(b: u8) -> bool {
    b == b'"' || b == b'\\' || b < 0x20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_in_every_position() {
        for len in 0..100 {
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
