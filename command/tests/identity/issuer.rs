//! [`Issuer`]: an identity provider that signs whatever a test wants signed.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// An issuer with a key (ES256).
pub(crate) struct Issuer {
    /// What it is called in `iss`.
    pub(crate) name: String,
    pub(crate) kid: String,
    pair: EcdsaKeyPair,
}

impl Issuer {
    /// One with a new key.
    pub(crate) fn new(name: &str, kid: &str) -> Issuer {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        Issuer { name: name.to_owned(), kid: kid.to_owned(), pair }
    }

    /// Its public key, as a key of a JWK set.
    pub(crate) fn jwk(&self) -> Value {
        let point = self.public();
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": encode(&point[1..33]), "y": encode(&point[33..65])})
    }

    /// Its JWK set.
    pub(crate) fn jwks(&self) -> Value {
        json!({"keys": [self.jwk()]})
    }

    /// The bytes of its public key, as everybody knows them.
    pub(crate) fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The usual header of its access tokens.
    pub(crate) fn header(&self) -> Value {
        json!({"alg": "ES256", "typ": "at+jwt", "kid": self.kid})
    }

    /// The usual claims: an hour from now, for this audience.
    pub(crate) fn claims(&self, subject: &str, audience: &str) -> Value {
        json!({"iss": self.name, "sub": subject, "aud": audience, "client_id": "tests", "scope": "mcp",
            "iat": now(), "nbf": now() - 1, "exp": now() + 3600, "jti": fresh()})
    }

    /// Signs.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&message(header, claims))
    }

    /// Signs a message as it stands.
    pub(crate) fn sign_text(&self, message: &str) -> String {
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", encode(signature.as_ref()))
    }
}

/// What is signed of a token.
pub(crate) fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()))
}

/// As tokens have it.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(passed.as_secs()).unwrap()
}

/// A text that was never there before, and that no other one begins with.
pub(crate) fn fresh() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("pearl-{}-{:06}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What an issuer answers at its addresses, and how often it was asked.
pub(crate) struct Published {
    /// Its address, without a path.
    pub(crate) origin: String,
    asked: Arc<Mutex<Vec<String>>>,
    documents: Arc<Mutex<Documents>>,
}

type Documents = Vec<(&'static str, u16, String)>;

impl Published {
    /// Answers at these paths, and 404 elsewhere.
    pub(crate) fn start() -> Published {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (asked, documents) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Documents>>::default());
        let published = Published { origin, asked: asked.clone(), documents: documents.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, documents) = (asked.clone(), documents.clone());
                std::thread::spawn(move || answer(stream, &asked, &documents));
            }
        });
        published
    }

    /// From now on there is this at that path.
    pub(crate) fn put(&self, path: &'static str, status: u16, document: &Value) {
        let mut documents = self.documents.lock().unwrap();
        documents.retain(|(known, ..)| *known != path);
        documents.push((path, status, document.to_string()));
    }

    /// How often it was asked for this path.
    pub(crate) fn asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }
}

fn answer(mut stream: std::net::TcpStream, asked: &Mutex<Vec<String>>, documents: &Mutex<Documents>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .to_ascii_lowercase()
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let found = documents.lock().unwrap().iter().find(|(known, ..)| *known == path).cloned();
    asked.lock().unwrap().push(path);
    let (_, status, body) = found.unwrap_or(("", 404, "{}".to_owned()));
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
}
