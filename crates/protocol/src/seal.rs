//! Sealed request state: what a server gives a client to carry, so that nobody else can read, change or reuse it.
//!
//! 2026-07-28 basic/patterns/mrtr: state is attacker-controlled on its way back. A seal is authenticated encryption
//! (XChaCha20-Poly1305) over the compressed content and its expiry, bound to a [`Binding`]: who asked what. The
//! caller passes in the time and the nonce, as this crate has neither clock nor randomness.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::error::{Error, Symbol};
use crate::json::{Member, ObjectWriter};
use crate::params::Params;

/// Longest sealed text that is accepted or produced.
pub const MAX_SEALED: usize = 64 * 1024;

/// Most that a sealed text may unpack to, so that a small one cannot be a bomb.
const MAX_UNPACKED: usize = 1024 * 1024;

const FORMAT: u8 = 1;
const NONCE: usize = 24;

/// Random bytes for one seal. Never use the same twice.
pub type Nonce = [u8; NONCE];

/// A secret key.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// A key from 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// A key derived from a secret text of any length, so that replicas can share one.
    pub fn derive(secret: &str) -> Key {
        Key(Sha256::new().chain_update(b"tidegate request state\0").chain_update(secret).finalize().into())
    }

    /// Names the key in a seal without telling anything about it.
    fn fingerprint(&self) -> u8 {
        Sha256::new().chain_update(b"fingerprint").chain_update(self.0).finalize()[0]
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// What a state is good for: one principal at one endpoint, one method, one set of parameters.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// Who says who the caller is, or empty.
    pub issuer: &'a str,
    /// The authenticated caller, or empty.
    pub subject: &'a str,
    /// The tenant, or empty.
    pub tenant: &'a str,
    /// The endpoint, or empty for the default one.
    pub endpoint: &'a str,
    /// The method.
    pub method: &'a str,
    /// Digest of the parameters that matter, see [`digest_of`].
    pub params: [u8; 32],
}

/// Digest over parts that must not run into each other.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Digest of the parameters that make a call what it is: all but those that differ between its rounds.
///
/// Clients write a retry anew, so it is over the values and not over their spelling: neither the order of members nor
/// white space, escapes and ways to write a number matter, and no arguments are an empty object.
pub fn digest_of(params: &Params) -> [u8; 32] {
    let mut salient = ObjectWriter::with_capacity(params.as_str().len());
    for member in params.members() {
        let Member { name, value } = member;
        let is_empty = value.starts_with('{') && value[1..value.len() - 1].trim().is_empty();
        let differs = matches!(&*name, "_meta" | "inputResponses" | "requestState");
        if !(differs || (name == "arguments" && is_empty)) {
            salient.raw(&name, value);
        }
    }
    digest([salient.finish().canonical().as_str()])
}

impl Binding<'_> {
    fn bytes(&self) -> [u8; 32] {
        let params: String = self.params.iter().map(|b| format!("{b:02x}")).collect();
        match self.endpoint {
            // As it was before there were endpoints: what is out there stays good.
            "" => digest([self.issuer, self.subject, self.tenant, self.method, &params]),
            endpoint => digest([self.issuer, self.subject, self.tenant, self.method, &params, endpoint]),
        }
    }
}

/// Seals and opens states. The first key seals; all keys open, so that keys can be rotated.
#[derive(Debug, Clone)]
pub struct Sealer {
    keys: Vec<Key>,
}

impl Sealer {
    /// A sealer that seals with `key`.
    pub fn new(key: Key) -> Sealer {
        Sealer { keys: vec![key] }
    }

    /// Also opens what an earlier key has sealed.
    pub fn accepting(mut self, old: Key) -> Sealer {
        self.keys.push(old);
        self
    }

    /// A sealer for one of several who share these keys: what it seals, the others cannot open.
    pub fn scoped(&self, name: &str) -> Sealer {
        let scoped = |key: &Key| {
            let hash = Sha256::new().chain_update(b"tidegate scope\0").chain_update(key.0).chain_update(name);
            Key(hash.finalize().into())
        };
        Sealer { keys: self.keys.iter().map(scoped).collect() }
    }

    /// Seals `content` until `expires_ms`. `None` if the result would be longer than [`MAX_SEALED`].
    pub fn seal(
        &self,
        content: &[u8],
        binding: &Binding<'_>,
        expires_ms: u64,
        nonce: Nonce,
    ) -> Option<String> {
        let key = &self.keys[0];
        let mut plain = expires_ms.to_le_bytes().to_vec();
        plain.extend(miniz_oxide::deflate::compress_to_vec(content, 6));
        let aad = binding.bytes();
        let sealed = XChaCha20Poly1305::new(&key.0.into())
            .encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: &aad })
            .ok()?;
        let mut out = vec![FORMAT, key.fingerprint()];
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        let text = URL_SAFE_NO_PAD.encode(out);
        (text.len() <= MAX_SEALED).then_some(text)
    }

    /// Opens a state, or says why not in the one sentence that all refusals share.
    pub fn open(&self, text: &str, binding: &Binding<'_>, now_ms: u64) -> Result<Vec<u8>, Error> {
        self.open_until(text, binding, now_ms).map(|(content, _)| content).ok_or_else(refused)
    }

    /// The same, and until when it is good; `None` if it cannot be opened.
    pub fn open_until(&self, text: &str, binding: &Binding<'_>, now_ms: u64) -> Option<(Vec<u8>, u64)> {
        if text.len() > MAX_SEALED {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (header, sealed) = bytes.split_at_checked(2 + NONCE)?;
        if header[0] != FORMAT {
            return None;
        }
        let nonce: Nonce = header[2..].try_into().ok()?;
        let aad = binding.bytes();
        let plain = self.keys.iter().filter(|key| key.fingerprint() == header[1]).find_map(|key| {
            XChaCha20Poly1305::new(&key.0.into())
                .decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: &aad })
                .ok()
        })?;
        let (expires, packed) = plain.split_at_checked(8)?;
        let expires_ms = u64::from_le_bytes(expires.try_into().ok()?);
        if now_ms > expires_ms {
            return None;
        }
        let content = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, MAX_UNPACKED).ok()?;
        Some((content, expires_ms))
    }
}

/// One sentence for every reason, so that a forger learns nothing.
fn refused() -> Error {
    Error::new(
        Symbol::StateRefused,
        "Invalid params: requestState is not valid for this request (changed, expired, or from another request); \
         start again without it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_what_they_say_and_not_how() {
        let digest = |text: &'static str| {
            digest_of(&Params::parse(&crate::Json::trusted(text), &crate::Limits::default()).unwrap())
        };
        let first = digest(r#"{"arguments":{"a":"A","n":1,"o":{"x":[1],"y":2}},"name":"t","_meta":{"k":1}}"#);
        for same in [
            r#"{"name":"t","arguments":{"a":"A","n":1,"o":{"x":[1],"y":2}}}"#,
            r#"{ "name" : "t", "arguments": {"o":{"y":2.0,"x":[ 1e0 ]},"n":1.0,"a":"\u0041"} }"#,
            r#"{"requestState":"s","name":"\u0074","inputResponses":{"q":{}},"arguments":{"a":"A","n":1,"o":{"x":[1],"y":2}}}"#,
        ] {
            assert_eq!(digest(same), first, "{same}");
        }
        for other in [
            r#"{"name":"u","arguments":{"a":"A","n":1,"o":{"x":[1],"y":2}}}"#,
            r#"{"name":"t","arguments":{"a":"A","n":"1","o":{"x":[1],"y":2}}}"#,
            r#"{"name":"t","arguments":{"a":"A","n":1,"o":{"x":[1],"y":2}},"task":{}}"#,
            r#"{"name":"t"}"#,
        ] {
            assert_ne!(digest(other), first, "{other}");
        }
        assert_eq!(digest(r#"{"name":"t"}"#), digest(r#"{"arguments":{ },"name":"t"}"#));
        assert_ne!(digest(r#"{"name":"t"}"#), digest(r#"{"arguments":[],"name":"t"}"#));
    }

    fn binding(subject: &str) -> Binding<'_> {
        Binding {
            issuer: "",
            subject,
            tenant: "",
            endpoint: "",
            method: "tools/call",
            params: digest(["a", "b"]),
        }
    }

    #[test]
    fn opens_only_for_its_binding_and_time() {
        let sealer = Sealer::new(Key::new([7; 32]));
        let text = sealer.seal(b"hello", &binding("ann"), 1000, [1; 24]).unwrap();
        assert_eq!(sealer.open(&text, &binding("ann"), 1000).unwrap(), b"hello");
        assert_eq!(sealer.open_until(&text, &binding("ann"), 0), Some((b"hello".to_vec(), 1000)));
        assert!(sealer.open(&text, &binding("bob"), 1000).is_err());
        assert!(sealer.open(&text, &binding("ann"), 1001).is_err());
        let other = Binding { params: digest(["ab"]), ..binding("ann") };
        assert!(sealer.open(&text, &other, 1000).is_err());
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let sealer = Sealer::new(Key::new([7; 32]));
        let text = sealer.seal(b"hello", &binding("ann"), 1000, [1; 24]).unwrap();
        for i in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[i] = if changed[i] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(sealer.open(&changed, &binding("ann"), 0).is_err(), "position {i}");
        }
        assert!(sealer.open("", &binding("ann"), 0).is_err());
    }

    #[test]
    fn keys_rotate() {
        let old = Sealer::new(Key::derive("one"));
        let text = old.seal(b"x", &binding(""), 10, [3; 24]).unwrap();
        let new = Sealer::new(Key::derive("two")).accepting(Key::derive("one"));
        assert_eq!(new.open(&text, &binding(""), 0).unwrap(), b"x");
        assert!(Sealer::new(Key::derive("two")).open(&text, &binding(""), 0).is_err());
    }

    #[test]
    fn scopes_are_apart_and_rotate_with_their_keys() {
        let old = Sealer::new(Key::derive("one"));
        let text = old.scoped("a").seal(b"x", &binding(""), 10, [3; 24]).unwrap();
        let new = Sealer::new(Key::derive("two")).accepting(Key::derive("one"));
        assert_eq!(new.scoped("a").open(&text, &binding(""), 0).unwrap(), b"x");
        assert!(
            new.scoped("b").open(&text, &binding(""), 0).is_err()
                && new.open(&text, &binding(""), 0).is_err()
        );
    }

    #[test]
    fn too_large_is_not_sealed() {
        let sealer = Sealer::new(Key::new([7; 32]));
        let noise: Vec<u8> = (0..3000u32).flat_map(|i| Sha256::digest(i.to_le_bytes())).collect();
        assert!(sealer.seal(&noise, &binding(""), 1, [0; 24]).is_none());
    }
}
