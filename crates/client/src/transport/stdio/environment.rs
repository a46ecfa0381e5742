//! Which variables a child gets. It is somebody else's program, so the tokens and keys around us are none of its
//! business unless they are given to it by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::target::Command;

/// Variables that programs need in order to find themselves and their user. The list of the official SDKs.
#[cfg(not(windows))]
const OF_SYSTEM: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
#[cfg(windows)]
const OF_SYSTEM: &[&str] = &[
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

/// What else programs are commonly told through the environment, wherever they run.
const INHERITED: &[&str] = &[
    // Language, time and temporary files.
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TZ",
    // The way to the network.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "FTP_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "ftp_proxy",
    // Whom to trust there.
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // Where containers run, for servers that are started with `docker run`.
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    // Git over SSH. It is a socket: keys cannot be read through it.
    "SSH_AUTH_SOCK",
    // Windows on the screen, for servers that open a browser.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

/// Families of variables that are inherited whole.
const FAMILIES: &[&str] = &[
    "LC_",
    "XDG_",
    "SSL_CERT_",
    // Many servers are installed when they are started, by npx, uvx or pipx. Those have to know the registry, the proxy and
    // the cache of this machine and, if the registry is a private one, its credentials (`npm_config__authToken`,
    // `UV_INDEX_WORK_PASSWORD`, `PIP_INDEX_URL`): without them the server could not start at all.
    "UV_",
    "PIP_",
];

/// The same family for npm, which takes its names in either case.
const NPM: &str = "npm_config_";

/// What of these families serves other ends than installing a server, and is not passed on: credentials for publishing,
/// and a token that is good for more than packages.
const WITHHELD: &[&str] = &["UV_PUBLISH_", "UV_GITHUB_TOKEN", "npm_config_otp"];

impl Command {
    /// The environment that the program gets: those variables of this process that programs need (`PATH`, `HOME`, the
    /// locale, proxies, certificates, and settings of the package managers that install servers), and [`Command::env`] on
    /// top. Nothing else.
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
    if WITHHELD.iter().any(|withheld| starts_with(text, withheld, true)) {
        return false;
    }
    OF_SYSTEM.iter().chain(INHERITED).any(|inherited| same_name(name, inherited))
        || FAMILIES.iter().any(|family| starts_with(text, family, cfg!(windows)))
        || starts_with(text, NPM, true)
}

fn starts_with(name: &str, family: &str, any_case: bool) -> bool {
    match name.get(..family.len()) {
        Some(start) if any_case => start.eq_ignore_ascii_case(family),
        Some(start) => start == family,
        None => false,
    }
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
            ("XDG_CONFIG_HOME", "/x", true),
            ("SHELL", "() { evil; }", false),
            ("AWS_SECRET_ACCESS_KEY", "x", false),
            ("path", "/bin", false),
            ("LD_PRELOAD", "x.so", false),
        ] {
            assert_eq!(inherits(name.as_ref(), value.as_ref()), want, "{name}");
        }
    }

    #[test]
    fn network_locale_and_installers_are_passed_on() {
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
            "FTP_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "ftp_proxy",
            "NODE_EXTRA_CA_CERTS",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "npm_config_registry",
            "NPM_CONFIG_CACHE",
            "npm_config__authToken",
            "npm_config_//registry.example.com/:_authToken",
            "UV_INDEX_URL",
            "UV_INDEX_WORK_PASSWORD",
            "UV_CACHE_DIR",
            "PIP_INDEX_URL",
            "DOCKER_HOST",
            "DOCKER_CONFIG",
            "DOCKER_CONTEXT",
            "DOCKER_CERT_PATH",
            "DOCKER_TLS_VERIFY",
            "SSH_AUTH_SOCK",
            "LANG",
            "LANGUAGE",
            "LC_ALL",
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "TMPDIR",
            "TZ",
        ] {
            assert!(inherits(name.as_ref(), "x".as_ref()), "{name}");
        }
    }

    #[test]
    fn no_other_token_is() {
        for name in [
            "UV_PUBLISH_TOKEN",
            "UV_PUBLISH_PASSWORD",
            "UV_GITHUB_TOKEN",
            "npm_config_otp",
            "NPM_CONFIG_OTP",
            "NPM_TOKEN",
            "NODE_AUTH_TOKEN",
            "TWINE_PASSWORD",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "AWS_SESSION_TOKEN",
            "DOCKER_PASSWORD",
            "DOCKER_AUTH_CONFIG",
            "SSH_PRIVATE_KEY",
            "PGPASSWORD",
            "DATABASE_URL",
            "VAULT_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "CORP_PROXY_PASSWORD",
            "MY_HTTP_PROXY",
            "DISPLAY_TOKEN",
            "npm_package_name",
        ] {
            assert!(!inherits(name.as_ref(), "x".as_ref()), "{name}");
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
