//! [`KeySet`]: the public keys of an issuer (RFC 7517), each with what it may verify.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use crate::jwt::strict_json::Object;

/// How many keys a set has at most.
const MOST_KEYS: usize = 256;
/// Shorter keys of RSA can be broken (NIST SP 800-131A), longer ones cost too much time.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The keys of an issuer.
#[derive(Debug)]
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

/// A public key.
#[derive(Debug)]
pub(crate) struct Key {
    kid: Option<String>,
    kind: KeyKind,
    /// The only algorithm that it is for, where it says so.
    algorithm: Option<Algorithm>,
    /// The numbers that it consists of, to tell it from others.
    numbers: Vec<u8>,
    pub(crate) decoding: DecodingKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// What a set has for a token.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// The key that must have signed it.
    Key(&'a Key),
    /// The key that it names, which cannot have signed it in this way.
    Unfit,
    /// Nothing.
    Nothing,
}

impl KeySet {
    /// Reads a set. What is wrong with single keys goes to `notes`: an issuer may have keys that are not for us.
    pub(crate) fn read(json: &[u8], notes: &mut Vec<String>) -> Result<KeySet, String> {
        let Object(mut set) =
            serde_json::from_slice(json).map_err(|error| format!("it is not a JSON Web Key Set: {error}"))?;
        let Some(Value::Array(all)) = set.remove("keys") else {
            return Err("it is not a JSON Web Key Set: it has no list `keys`".to_owned());
        };
        if all.len() > MOST_KEYS {
            return Err(format!("it has {} keys, and at most {MOST_KEYS} are read", all.len()));
        }
        let mut keys: Vec<Key> = Vec::new();
        for (at, key) in all.iter().enumerate() {
            let read = key.as_object().ok_or_else(|| "it is not an object".to_owned()).and_then(Key::read);
            let taken = |key: &Key| key.kid.is_some() && keys.iter().any(|one| one.is_named_like(key));
            match read {
                Ok(Some(key)) if taken(&key) => notes.push(note(at, &all[at], "another one has its `kid`")),
                Ok(Some(key)) => keys.push(key),
                Ok(None) => {}
                Err(why) => notes.push(note(at, &all[at], &why)),
            }
        }
        Ok(KeySet { keys })
    }

    /// The key for a token with this `kid` and this algorithm. Without a `kid` there must be no choice.
    pub(crate) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Found<'_> {
        let Some(kid) = kid else {
            let mut fitting = self.keys.iter().filter(|key| key.fits(algorithm));
            return match (fitting.next(), fitting.next()) {
                (Some(key), None) => Found::Key(key),
                _ => Found::Nothing,
            };
        };
        let mut named = self.keys.iter().filter(|key| key.kid.as_deref() == Some(kid)).peekable();
        let any = named.peek().is_some();
        match named.find(|key| key.fits(algorithm)) {
            Some(key) => Found::Key(key),
            None if any => Found::Unfit,
            None => Found::Nothing,
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether every key of `other` is in this set too.
    pub(crate) fn has_all_of(&self, other: &KeySet) -> bool {
        other.keys.iter().all(|key| self.keys.iter().any(|own| own.is_same(key)))
    }
}

impl Key {
    /// A key of a set; `None` for one that is not meant to verify signatures.
    fn read(jwk: &Map<String, Value>) -> Result<Option<Key>, String> {
        if text(jwk, "use")?.is_some_and(|usage| usage != "sig") {
            return Ok(None);
        }
        match jwk.get("key_ops") {
            None => {}
            Some(Value::Array(operations)) if operations.iter().any(|one| one == "verify") => {}
            Some(Value::Array(_)) => return Ok(None),
            Some(_) => return Err("its `key_ops` is not a list".to_owned()),
        }
        let (kind, numbers, decoding) = match (text(jwk, "kty")?, text(jwk, "crv")?) {
            (Some("RSA"), _) => {
                let (n, e) = (number(jwk, "n")?, number(jwk, "e")?);
                let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
                if !RSA_BITS.contains(&bits) {
                    let (least, most) = (RSA_BITS.start(), RSA_BITS.end());
                    return Err(format!("it is an RSA key of {bits} bits, and must have {least} to {most}"));
                }
                (
                    KeyKind::Rsa,
                    [n.as_slice(), &[0], &e].concat(),
                    DecodingKey::from_rsa_raw_components(&n, &e),
                )
            }
            (Some("EC"), Some("P-256")) => point(jwk, KeyKind::P256, 32)?,
            (Some("EC"), Some("P-384")) => point(jwk, KeyKind::P384, 48)?,
            (Some("OKP"), Some("Ed25519")) => {
                let x = bytes(jwk, "x")?;
                if x.len() != 32 {
                    return Err("its `x` has not 32 bytes".to_owned());
                }
                (KeyKind::Ed25519, x.clone(), DecodingKey::from_ed_der(&x))
            }
            (None, _) => return Err("it has no `kty`".to_owned()),
            // Other curves, and secrets: nothing that is allowed here is made with them.
            _ => return Ok(None),
        };
        let algorithm = match text(jwk, "alg")? {
            None => None,
            // RFC 9864 gives it the name of its curve.
            Some("Ed25519") => Some(Algorithm::EdDSA),
            Some(name) => match name.parse() {
                Ok(algorithm) => Some(algorithm),
                Err(_) => return Ok(None),
            },
        };
        if !algorithm.is_none_or(|algorithm| kind.fits(algorithm)) {
            return Err("its `alg` does not fit its `kty` and `crv`".to_owned());
        }
        Ok(Some(Key { kid: text(jwk, "kid")?.map(str::to_owned), kind, algorithm, numbers, decoding }))
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.kind.fits(algorithm) && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Whether nobody could tell the two apart by what a token says.
    fn is_named_like(&self, other: &Key) -> bool {
        (&self.kid, self.kind) == (&other.kid, other.kind)
    }

    fn is_same(&self, other: &Key) -> bool {
        (&self.kid, self.kind, &self.numbers) == (&other.kid, other.kind, &other.numbers)
            && self.algorithm == other.algorithm
    }
}

impl KeyKind {
    fn fits(self, algorithm: Algorithm) -> bool {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        match self {
            KeyKind::Rsa => matches!(algorithm, RS256 | RS384 | RS512 | PS256 | PS384 | PS512),
            KeyKind::P256 => algorithm == ES256,
            KeyKind::P384 => algorithm == ES384,
            KeyKind::Ed25519 => algorithm == EdDSA,
        }
    }
}

/// What is wrong with which key.
fn note(at: usize, key: &Value, why: &str) -> String {
    let kid = key.get("kid").and_then(Value::as_str).map(|kid| kid.chars().take(64).collect::<String>());
    let kid = kid.map(|kid| format!(" (`kid` {kid:?})")).unwrap_or_default();
    format!("key {}{kid} is not used: {why}", at + 1)
}

fn text<'a>(jwk: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match jwk.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its `{name}` is not a text")),
    }
}

fn bytes(jwk: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let text = text(jwk, name)?.ok_or_else(|| format!("it has no `{name}`"))?;
    URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| format!("its `{name}` is not base64url"))
}

/// A number without the zeros that some issuers put before it.
fn number(jwk: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = bytes(jwk, name)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros);
    Ok(bytes)
}

/// A point of a curve in the form `04 x y`, with the zeros that some issuers leave out.
fn point(
    jwk: &Map<String, Value>,
    kind: KeyKind,
    length: usize,
) -> Result<(KeyKind, Vec<u8>, DecodingKey), String> {
    let mut point = vec![4];
    for name in ["x", "y"] {
        let number = number(jwk, name)?;
        let zeros = length.checked_sub(number.len()).ok_or_else(|| format!("its `{name}` is too long"))?;
        point.extend(std::iter::repeat_n(0, zeros));
        point.extend(number);
    }
    let decoding = DecodingKey::from_ec_der(&point);
    Ok((kind, point, decoding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rsa(bits: usize) -> String {
        let mut n = vec![0xff_u8; bits.div_ceil(8)];
        n[0] = 0xff >> (n.len() * 8 - bits);
        URL_SAFE_NO_PAD.encode(n)
    }

    fn read(keys: Value) -> (KeySet, Vec<String>) {
        let mut notes = Vec::new();
        let set = KeySet::read(json!({ "keys": keys }).to_string().as_bytes(), &mut notes).unwrap();
        (set, notes)
    }

    fn found(set: &KeySet, kid: Option<&str>, algorithm: Algorithm) -> &'static str {
        match set.find(kid, algorithm) {
            Found::Key(_) => "key",
            Found::Unfit => "unfit",
            Found::Nothing => "nothing",
        }
    }

    #[test]
    fn a_key_is_only_for_what_it_says() {
        use Algorithm::{ES256, ES384, EdDSA, HS256, PS256, RS256, RS512};
        let n = rsa(2048);
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let xx = URL_SAFE_NO_PAD.encode([7; 48]);
        let rsa = |more: Value| {
            let mut key = json!({ "kty": "RSA", "n": n, "e": "AQAB", "kid": "k" });
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            key
        };
        let curve =
            |kty: &str, crv: &str, x: &str| json!({ "kty": kty, "crv": crv, "x": x, "y": x, "kid": "k" });
        for (key, fits, not) in [
            (rsa(json!({})), &[RS256, RS512, PS256][..], &[ES256, EdDSA, HS256][..]),
            (
                rsa(json!({ "alg": "RS256", "use": "sig", "key_ops": ["verify"] })),
                &[RS256],
                &[RS512, PS256, HS256],
            ),
            (curve("EC", "P-256", &x), &[ES256], &[ES384, RS256, HS256]),
            (curve("EC", "P-384", &xx), &[ES384], &[ES256, EdDSA, HS256]),
            (curve("OKP", "Ed25519", &x), &[EdDSA], &[ES256, RS256, HS256]),
        ] {
            let (set, notes) = read(json!([key]));
            assert_eq!(notes, Vec::<String>::new());
            for algorithm in fits {
                assert_eq!(found(&set, Some("k"), *algorithm), "key", "{key} {algorithm:?}");
                assert_eq!(found(&set, None, *algorithm), "key", "{key} {algorithm:?}");
            }
            for algorithm in not {
                assert_eq!(found(&set, Some("k"), *algorithm), "unfit", "{key} {algorithm:?}");
                assert_eq!(found(&set, None, *algorithm), "nothing", "{key} {algorithm:?}");
            }
            assert_eq!(found(&set, Some("K"), fits[0]), "nothing");
        }
        for nothing in [
            rsa(json!({ "use": "enc" })),
            rsa(json!({ "key_ops": ["encrypt"] })),
            rsa(json!({ "alg": "RSA-OAEP" })),
            json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "k" }),
            json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256" }),
            json!({ "kty": "EC", "crv": "secp256k1", "x": x, "y": x, "kid": "k" }),
        ] {
            let (set, notes) = read(json!([nothing]));
            assert!(set.is_empty() && notes.is_empty(), "{nothing} {notes:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_key_is_named_and_the_others_are_used() {
        let good = json!({ "kty": "RSA", "n": rsa(2048), "e": "AQAB", "kid": "good" });
        for (bad, why) in [
            (json!({ "kty": "RSA", "n": rsa(1024), "e": "AQAB" }), "an RSA key of 1024 bits"),
            (json!({ "kty": "RSA", "n": rsa(2047), "e": "AQAB" }), "an RSA key of 2047 bits"),
            (json!({ "kty": "RSA", "n": rsa(16384), "e": "AQAB" }), "an RSA key of 16384 bits"),
            (json!({ "kty": "RSA", "n": "", "e": "AQAB" }), "an RSA key of 0 bits"),
            (json!({ "kty": "RSA", "e": "AQAB" }), "it has no `n`"),
            (json!({ "kty": "RSA", "n": "!", "e": "AQAB" }), "its `n` is not base64url"),
            (json!({ "kty": "RSA", "n": rsa(2048), "e": "AQAB", "alg": "ES256" }), "its `alg` does not fit"),
            (json!({ "kty": "RSA", "n": rsa(2048), "e": "AQAB", "alg": "HS256" }), "its `alg` does not fit"),
            (
                json!({ "kty": "RSA", "n": rsa(2048), "e": "AQAB", "kid": "good" }),
                "(`kid` \"good\") is not used: another one has",
            ),
            (json!({ "kty": "EC", "crv": "P-256", "x": rsa(2048), "y": "AQAB" }), "its `x` is too long"),
            (json!({ "kty": "OKP", "crv": "Ed25519", "x": "AQAB" }), "its `x` has not 32 bytes"),
            (json!({ "n": "AQAB" }), "it has no `kty`"),
            (json!({ "kty": 7 }), "its `kty` is not a text"),
            (json!("RSA"), "not an object"),
        ] {
            let (set, notes) = read(json!([good, bad]));
            assert_eq!(set.len(), 1, "{bad}");
            assert!(
                notes.len() == 1 && notes[0].starts_with("key 2 ") && notes[0].contains(why),
                "{bad}: {notes:?}"
            );
        }
        for (text, why) in [
            ("", "not a JSON Web Key Set"),
            ("[]", "not a JSON Web Key Set"),
            ("{}", "has no list `keys`"),
            (r#"{"keys":{}}"#, "has no list `keys`"),
            (r#"{"keys":[],"keys":[]}"#, "the same name"),
        ] {
            let error = KeySet::read(text.as_bytes(), &mut Vec::new()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let many = json!({ "keys": vec![json!({}); 257] }).to_string();
        assert!(KeySet::read(many.as_bytes(), &mut Vec::new()).unwrap_err().contains("257 keys"));
    }

    #[test]
    fn without_a_kid_there_must_be_no_choice() {
        let key = |kid: &str| json!({ "kty": "RSA", "n": rsa(2048), "e": "AQAB", "kid": kid });
        let (one, _) = read(json!([key("a")]));
        let (two, _) = read(json!([key("a"), key("b")]));
        assert_eq!(found(&one, None, Algorithm::RS256), "key");
        assert_eq!(found(&two, None, Algorithm::RS256), "nothing");
        assert!(two.has_all_of(&one) && !one.has_all_of(&two));
    }
}
