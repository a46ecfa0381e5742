//! API keys: what they look like, the file that knows them by their hashes, and who holds one.
//!
//! The file is [`KeyFile`]; `tidegate keys` changes it, and a gateway reads it and looks every second whether it has changed. The
//! file never has a key in it, so whoever reads it cannot call. When a key was last used is in a file of its own ([`LastUse`]): a
//! gateway never writes to the file that people edit.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_auth::keys::{KeyFile, NewKey};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("keys.toml");
//! # let now_ms = tidegate_service::epoch_ms();
//! let new = NewKey { name: "ann".into(), tenant: Some("acme".into()), ..NewKey::default() };
//! let key = KeyFile::change(&path, |file| file.add(new, now_ms))?;
//! assert!(key.reveal().starts_with("tidegate_"));
//! assert_eq!(KeyFile::read(&path)?.keys()[0].name.as_ref(), "ann");
//! # Ok(())
//! # }
//! ```

mod api_key;
mod change;
mod error;
mod file_lock;
mod key_file;
mod key_text;
mod last_use;
mod parse;
mod save;
mod table;
mod watcher;

pub use api_key::{ApiKey, KeyState};
pub use change::{NewKey, Rotation};
pub use error::KeyFileError;
pub use key_file::KeyFile;
pub use key_text::{KEY_PREFIX, is_key};
pub use last_use::LastUse;
pub use table::KeyTable;
pub(crate) use table::KeyUse;

pub(crate) use watcher::{KeyWatcher, Loaded};

/// The issuer of the principals that API keys stand for.
pub const KEYS_ISSUER: &str = "tidegate:keys";

/// The name of the default endpoint in the `endpoints` of a key.
pub const DEFAULT_ENDPOINT: &str = "default";
