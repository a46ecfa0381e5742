//! Which variables a child gets. It is somebody else's program, so the tokens and keys around us are none of its
//! business unless they are given to it by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::target::Command;

/// Variables that programs need in order to find themselves, their user and the network.
#[cfg(not(windows))]
const INHERITED: &[&str] = &[
    // The list of the official SDKs.
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    // Language, time and temporary files.
    "LANG",
    "TMPDIR",
    "TZ",
    // The way to the network.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];
/// The list of the official SDKs.
#[cfg(windows)]
const INHERITED: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// Families of variables that are inherited whole.
#[cfg(not(windows))]
const INHERITED_FAMILIES: &[&str] = &["LC_", "XDG_"];
#[cfg(windows)]
const INHERITED_FAMILIES: &[&str] = &[];

impl Command {
    /// The environment that the program gets: a short list of variables of this process that programs need (`PATH`,
    /// `HOME`, the locale, proxies and the like), and [`Command::env`] on top. Nothing else.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<_, _> = std::env::vars_os().filter(|(n, v)| inherits(n, v)).collect();
        for (name, value) in &self.env {
            // Where case makes no difference, one `Path` replaces another `PATH`.
            variables.retain(|other, _| !same_name(other, name));
            variables.insert(name.into(), value.into());
        }
        variables
    }
}

fn inherits(name: &OsStr, value: &OsStr) -> bool {
    // A function that a shell exported: code, not a value. The official SDKs leave it out too.
    if value.as_encoded_bytes().starts_with(b"()") {
        return false;
    }
    let Some(text) = name.to_str() else { return false };
    INHERITED.iter().any(|inherited| same_name(name, inherited))
        || INHERITED_FAMILIES.iter().any(|family| text.starts_with(family))
}

fn same_name(a: &OsStr, b: &str) -> bool {
    if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(windows))]
    fn only_what_programs_need() {
        for (name, value, want) in [
            ("PATH", "/bin", true),
            ("LC_ALL", "C", true),
            ("XDG_CONFIG_HOME", "/x", true),
            ("https_proxy", "http://proxy", true),
            ("SHELL", "() { evil; }", false),
            ("AWS_SECRET_ACCESS_KEY", "x", false),
            ("path", "/bin", false),
            ("LD_PRELOAD", "x.so", false),
        ] {
            assert_eq!(inherits(name.as_ref(), value.as_ref()), want, "{name}");
        }
    }

    #[test]
    fn what_is_given_comes_on_top() {
        let env =
            BTreeMap::from([("PATH".to_owned(), "/mine".to_owned()), ("KEY".to_owned(), "k".to_owned())]);
        let environment = Command { env, ..Command::default() }.environment();
        assert_eq!(environment.get(OsStr::new("PATH")), Some(&"/mine".into()));
        assert_eq!(environment.get(OsStr::new("KEY")), Some(&"k".into()));
        // Cargo sets this one for tests.
        assert_eq!(environment.get(OsStr::new("CARGO_MANIFEST_DIR")), None);
    }
}
