//! TLS for [`serve`](super::serve): the certificate, and what follows its files.

mod accept;
mod validity;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use tidegate_service::epoch_ms;
use tokio_rustls::TlsAcceptor;

pub(super) use accept::accept;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// Most that is read of one.
const LONGEST: u64 = 1024 * 1024;

/// A certificate and its key, read from PEM files. Where it is served, the files are looked at every few seconds, and new ones
/// are used for the connections that come from then on.
pub struct TlsCertificate {
    cert: PathBuf,
    key: PathBuf,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
    files: Mutex<Seen>,
    /// Whether it has been said that the current one has expired.
    warned: AtomicBool,
}

/// The certificate that is shown.
#[derive(Debug)]
struct Current(ArcSwap<Loaded>);

#[derive(Debug)]
struct Loaded {
    certified: Arc<CertifiedKey>,
    /// From when and until when it is valid, in milliseconds since 1970, as far as that can be read.
    validity_ms: Option<(u64, u64)>,
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load().certified.clone())
    }
}

/// What a certificate cannot be served for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // each says it in its sentence
pub enum TlsError {
    #[error("Cannot read the file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("There is no certificate in {}: it has to begin with -----BEGIN CERTIFICATE-----", path.display())]
    NoCertificate { path: PathBuf },
    #[error("There is no private key in {}: it has to begin with -----BEGIN PRIVATE KEY-----", path.display())]
    NoKey { path: PathBuf },
    #[error(
        "The private key in {} is encrypted, and nobody is there to type its password. Decrypt it, for example with: openssl \
         pkey -in {} -out decrypted.pem",
        path.display(), path.display()
    )]
    EncryptedKey { path: PathBuf },
    #[error("The private key in {} does not fit the first certificate in {}", key.display(), cert.display())]
    Mismatch { cert: PathBuf, key: PathBuf },
    #[error("The certificate in {} with the key in {} cannot be used: {why}", cert.display(), key.display())]
    Unusable { cert: PathBuf, key: PathBuf, why: String },
}

impl TlsCertificate {
    /// Reads a chain of certificates, the server's own first, and its private key. One that has expired is good enough, with a
    /// warning in the log.
    pub fn load(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<TlsCertificate, TlsError> {
        let (cert, key) = (cert.into(), key.into());
        let stamps = Stamps::of(&cert, &key);
        let current = Arc::new(Current(ArcSwap::from_pointee(read(&cert, &key)?)));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        // TLS 1.2 and 1.3.
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| TlsError::Unusable {
            cert: cert.clone(),
            key: key.clone(),
            why: error.to_string(),
        })?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let files = Mutex::new(Seen { used: stamps.clone(), last: stamps });
        let warned = AtomicBool::new(false);
        let loaded = TlsCertificate { cert, key, current, config: Arc::new(config), files, warned };
        loaded.warn_if_expired();
        Ok(loaded)
    }

    /// When the current one expires, in milliseconds since 1970, as far as that can be read.
    pub fn expires_ms(&self) -> Option<u64> {
        self.current.0.load().validity_ms.map(|(_, end)| end)
    }

    /// From when on the current one is valid, in milliseconds since 1970, as far as that can be read.
    pub fn begins_ms(&self) -> Option<u64> {
        self.current.0.load().validity_ms.map(|(begin, _)| begin)
    }

    /// Whether the current one is for a host: a name, or an address, in brackets or not.
    pub fn is_for(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let current = self.current.0.load();
        let parsed =
            current.certified.end_entity_cert().ok().and_then(|cert| ParsedCertificate::try_from(cert).ok());
        match (parsed, ServerName::try_from(host)) {
            (Some(parsed), Ok(name)) => verify_server_name(&parsed, &name).is_ok(),
            _ => false,
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.config.clone().into()
    }

    /// Follows the files for as long as this is polled.
    pub(super) async fn follow(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let certificate = self.clone();
            // Files may be far away.
            _ = tokio::task::spawn_blocking(move || certificate.look()).await;
        }
    }

    /// Takes new files if they have changed, and not since the last look: two files are not replaced at once. Those that are no
    /// good are said so once, and what there was goes on being used.
    fn look(&self) {
        let now = Stamps::of(&self.cert, &self.key);
        {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            let is_settled = now == std::mem::replace(&mut files.last, now.clone());
            if now == files.used || !is_settled {
                drop(files);
                return self.warn_if_expired();
            }
            files.used = now;
        }
        match read(&self.cert, &self.key) {
            Ok(loaded) => {
                self.current.0.store(Arc::new(loaded));
                self.warned.store(false, Ordering::Relaxed);
                tracing::info!("The certificate in {} was read again and is in use.", self.cert.display());
                self.warn_if_expired();
            }
            Err(error) => tracing::warn!("{error}. The certificate of before stays in use."),
        }
    }

    fn warn_if_expired(&self) {
        if self.expires_ms().is_some_and(|expires| expires < epoch_ms())
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "The certificate in {} has expired: clients will refuse it. Replace the file; it is picked up at once.",
                self.cert.display()
            );
        }
    }
}

impl fmt::Debug for TlsCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsCertificate").field("cert", &self.cert).finish_non_exhaustive()
    }
}

fn read(cert: &Path, key: &Path) -> Result<Loaded, TlsError> {
    let (chain, key_pem) = (read_file(cert)?, read_file(key)?);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain)
        .collect::<Result<_, _>>()
        .map_err(|_| TlsError::NoCertificate { path: cert.to_owned() })?;
    let Some(first) = chain.first() else {
        return Err(TlsError::NoCertificate { path: cert.to_owned() });
    };
    let validity_ms = validity::validity_ms(first);
    let path = || key.to_owned();
    let is_encrypted = || key_pem.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
    let private = PrivateKeyDer::from_pem_slice(&key_pem);
    // An old form has the same first line as the key that is not encrypted.
    if is_encrypted() {
        return Err(TlsError::EncryptedKey { path: path() });
    }
    let private = private.map_err(|_| TlsError::NoKey { path: path() })?;
    let certified = CertifiedKey::from_der(chain, private, &ring::default_provider());
    match certified {
        Ok(certified) => Ok(Loaded { certified: Arc::new(certified), validity_ms }),
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(TlsError::Mismatch { cert: cert.to_owned(), key: path() })
        }
        Err(error) => Err(TlsError::Unusable { cert: cert.to_owned(), key: path(), why: error.to_string() }),
    }
}

const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    // Opening a pipe would wait for whoever writes to it.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LONGEST + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > LONGEST {
        return Err(unreadable(io::Error::other(format!("it has more than {LONGEST} bytes"))));
    }
    Ok(content)
}

/// How the files looked, when they were last used and at the last look.
struct Seen {
    used: Stamps,
    last: Stamps,
}

/// How two files look from outside; none if one is not there.
#[derive(Clone, PartialEq)]
struct Stamps([Option<Stamp>; 2]);

/// When it was modified, how long it is, and which file it is.
type Stamp = (Option<SystemTime>, u64, u64);

impl Stamps {
    fn of(cert: &Path, key: &Path) -> Stamps {
        Stamps([cert, key].map(|path| {
            let meta = fs::metadata(path).ok()?;
            #[cfg(unix)]
            let file = std::os::unix::fs::MetadataExt::ino(&meta);
            #[cfg(not(unix))]
            let file = 0;
            Some((meta.modified().ok(), meta.len(), file))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificates() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edge/certificates")
    }

    fn load(cert: &str, key: &str) -> Result<TlsCertificate, String> {
        let all = certificates();
        TlsCertificate::load(all.join(cert), all.join(key)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_be_served_says_why() {
        assert!(load("first.pem", "first.key").is_ok());
        for (cert, key, why) in [
            ("none.pem", "first.key", "Cannot read the file"),
            ("first.pem", "none.key", "none.key"),
            ("first.key", "first.key", "There is no certificate in"),
            ("first.pem", "first.pem", "There is no private key in"),
            ("first.pem", "encrypted.key", "is encrypted"),
            ("first.pem", "second.key", "does not fit"),
            (".", "first.key", "it is not a regular file"),
        ] {
            let error = load(cert, key).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn it_is_known_when_it_expires() {
        // 2120-01-01 is a generalized time, 2021-01-01 the one with two digits.
        assert_eq!(load("first.pem", "first.key").unwrap().expires_ms(), Some(4_733_510_400_000));
        let expired = load("expired.pem", "first.key").unwrap();
        assert_eq!(expired.expires_ms(), Some(1_609_459_200_000));
        assert!(expired.warned.load(Ordering::Relaxed));
        assert_eq!(expired.begins_ms(), Some(1_577_836_800_000));
    }

    #[test]
    fn it_is_known_whom_it_is_for() {
        let first = load("first.pem", "first.key").unwrap();
        assert!(first.is_for("localhost") && first.is_for("127.0.0.1"));
        for other in ["mcp.example.com", "[::1]", "127.0.0.2", "", "not a name"] {
            assert!(!first.is_for(other), "{other:?}");
        }
    }

    #[test]
    fn new_files_are_used_when_they_are_good() {
        let dir = tempfile::TempDir::new().unwrap();
        let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        let put = |name: &str, file: &Path| _ = fs::copy(certificates().join(name), file).unwrap();
        put("first.pem", &cert);
        put("first.key", &key);
        let certificate = TlsCertificate::load(&cert, &key).unwrap();
        let shown = || certificate.current.0.load().certified.cert[0].clone();
        let first = shown();
        certificate.look();
        assert_eq!(shown(), first);

        fs::write(&cert, "nonsense").unwrap();
        for _ in 0..3 {
            certificate.look();
            assert_eq!(shown(), first, "what is no good is not used");
        }
        put("second.pem", &cert);
        certificate.look();
        assert_eq!(shown(), first, "the key may be about to come");
        put("second.key", &key);
        certificate.look();
        certificate.look();
        assert_ne!(shown(), first);
    }
}
