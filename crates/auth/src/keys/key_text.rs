//! What a key looks like: `tidegate_<id>_<random><checksum>`.
//!
//! The prefix and the checksum are for secret scanners, as with the tokens of GitHub: `tidegate_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}`,
//! with the CRC-32 of all before it in the last six characters, finds keys and nothing else. The id is no secret: it finds the
//! entry of the key, so that one hash is computed and compared for a call and not one for each key.

use sha2::{Digest, Sha256};
use tidegate_service::secrets::Secret;

/// How every key begins.
pub const KEY_PREFIX: &str = "tidegate_";

pub(super) const ID_LEN: usize = 8;
/// 43 characters of 62 are 256 bits.
const RANDOM_LEN: usize = 43;
const CHECKSUM_LEN: usize = 6;
const LEN: usize = KEY_PREFIX.len() + ID_LEN + 1 + RANDOM_LEN + CHECKSUM_LEN;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The id in a key.
pub(crate) type KeyId = [u8; ID_LEN];
/// SHA-256 of a key. It has 256 random bits, so nobody gets from one to the other, and nothing slower is needed.
pub(super) type KeyHash = [u8; 32];

/// Whether a credential means to be an API key of a gateway.
pub fn is_key(credential: &str) -> bool {
    credential.starts_with(KEY_PREFIX)
}

/// A new key with an id of its own.
pub(super) fn generate() -> (String, Secret) {
    let id = random_text(ID_LEN);
    let key = with_checksum(&format!("{KEY_PREFIX}{id}_{}", random_text(RANDOM_LEN)));
    (id, Secret::new(key))
}

pub(super) fn with_checksum(before: &str) -> String {
    before.chars().chain(checksum(before).map(char::from)).collect()
}

/// The id of a key that is well-formed.
pub(crate) fn id_of(key: &str) -> Option<KeyId> {
    let rest = key.strip_prefix(KEY_PREFIX).filter(|_| key.len() == LEN)?;
    let (id, secret) = rest.split_once('_')?;
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_word(id) || !is_word(secret) {
        return None;
    }
    let (before, end) = key.split_at(LEN - CHECKSUM_LEN);
    if end.as_bytes() != checksum(before) {
        return None;
    }
    id.as_bytes().try_into().ok()
}

pub(super) fn hash_of(key: &str) -> KeyHash {
    Sha256::digest(key.as_bytes()).into()
}

fn checksum(text: &str) -> [u8; CHECKSUM_LEN] {
    let mut left = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_LEN];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(left % 62) as usize];
        left /= 62;
    }
    digits
}

/// Characters that are all equally likely.
fn random_text(length: usize) -> String {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        // 248 is the largest multiple of 62 in a byte: what is above would make some characters likelier.
        let bytes = tidegate_service::random::<64>();
        let fair =
            bytes.iter().filter(|byte| **byte < 248).map(|byte| char::from(BASE62[usize::from(byte % 62)]));
        text.extend(fair.take(length - text.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_what_scanners_look_for() {
        let (id, key) = generate();
        let key = key.reveal();
        let (prefix, rest) = key.split_at(KEY_PREFIX.len());
        assert_eq!((prefix, rest.len(), &rest[8..9]), ("tidegate_", 8 + 1 + 49, "_"));
        assert_eq!(id_of(key).as_ref().map(|id| &id[..]), Some(id.as_bytes()));
        assert_ne!(generate().1.reveal(), key);
    }

    #[test]
    fn the_checksum_is_that_of_everything_before_it() {
        let before = "tidegate_AAAAAAAA_0123456789012345678901234567890123456789012";
        // CRC-32 (IEEE) as any other program computes it.
        let number = crc32fast::hash(before.as_bytes());
        let digits = checksum(before);
        let back = digits
            .iter()
            .fold(0u64, |sum, digit| sum * 62 + BASE62.iter().position(|one| one == digit).unwrap() as u64);
        assert_eq!(back, u64::from(number));
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_is_mistyped_is_no_key() {
        let (_, key) = generate();
        let key = key.reveal();
        let other = |at: usize| {
            let mut bytes = key.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            String::from_utf8(bytes).unwrap()
        };
        for at in [10, 20, key.len() - 1] {
            assert_eq!(id_of(&other(at)), None, "{at}");
        }
        for wrong in
            ["", "tidegate_", &key[1..], &key[..key.len() - 1], &format!("{key}0"), &key.replace('_', "-")]
        {
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
        assert_eq!(id_of(&format!("tidegate_{}", "ü".repeat(29))), None);
    }
}
