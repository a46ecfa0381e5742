//! Where the audit trail goes.

use std::path::{Path, PathBuf};

use url::Url;

use super::Resolver;
use crate::audit_settings::{AuditFile, AuditSettings, SyslogServer, SyslogSettings, WhenFull};
use crate::written::{self, Audit};

const MAX_SIZE: usize = 100 << 20;
const QUEUE: usize = 8 << 20;
const KEEP: usize = 10;
/// Smaller ones would hold a few records.
const LEAST: usize = 64 << 10;
/// More would be a way to use up the memory.
const LARGEST_QUEUE: usize = 1 << 30;
/// No directory should have more files.
const MOST_KEPT: usize = 10_000;

/// Facilities by name (RFC 5424 6.2.1), without those that only the system itself uses.
const FACILITIES: [(&str, u8); 13] = [
    ("user", 1),
    ("daemon", 3),
    ("auth", 4),
    ("authpriv", 10),
    ("audit", 13),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];
/// What is confidential is readable for few in the usual configuration of a syslog server.
const AUTHPRIV: u8 = 10;

impl Resolver<'_> {
    pub(super) fn audit(&mut self, audit: &Audit) -> AuditSettings {
        let stdout = audit.stdout.unwrap_or(false);
        if audit.file.is_none() && audit.syslog.is_none() && !stdout {
            self.required(
                &["audit"],
                &["file", "syslog", "stdout"],
                "goes nowhere: add file = \"audit.jsonl\", syslog = \"unix:///dev/log\" or stdout = true",
            );
        }
        let path = audit.file.as_deref().and_then(|path| self.path(&["audit", "file"], path));
        if let Some(path) = &path
            && (path.is_dir() || path.file_name().is_none())
        {
            self.wrong(&["audit", "file"], "must be a file, and is a directory");
        }
        let max_size = self.size(&["audit", "max_size"], audit.max_size.as_ref(), MAX_SIZE);
        if max_size < LEAST {
            self.wrong(&["audit", "max_size"], "must be at least \"64KiB\"");
        }
        let keep = audit.keep.unwrap_or(KEEP);
        if !(1..=MOST_KEPT).contains(&keep) {
            self.wrong(&["audit", "keep"], format!("must be from 1 to {MOST_KEPT}"));
        }
        if audit.file.is_none() {
            for (field, is_there) in [("max_size", audit.max_size.is_some()), ("keep", audit.keep.is_some())]
            {
                if is_there {
                    self.note(&["audit", field], "has no effect: there is no file.");
                }
            }
        }
        let queue = self.size(&["audit", "queue"], audit.queue.as_ref(), QUEUE);
        if !(LEAST..=LARGEST_QUEUE).contains(&queue) {
            self.wrong(&["audit", "queue"], "must be from \"64KiB\" to \"1GiB\"");
        }
        let syslog = audit.syslog.as_deref().and_then(|url| self.syslog(url));
        let facility = self.facility(audit);
        AuditSettings {
            file: path.map(|path| AuditFile { path, max_size: max_size as u64, keep }),
            stdout,
            syslog: syslog.map(|server| SyslogSettings { server, facility }),
            queue,
            when_full: match audit.when_full {
                None | Some(written::WhenFull::Drop) => WhenFull::Drop,
                Some(written::WhenFull::Refuse) => WhenFull::Refuse,
            },
        }
    }

    fn facility(&mut self, audit: &Audit) -> u8 {
        let Some(name) = audit.facility.as_deref() else { return AUTHPRIV };
        if audit.syslog.is_none() {
            self.note(&["audit", "facility"], "has no effect: there is no syslog server.");
        }
        match FACILITIES.iter().find(|(known, _)| *known == name) {
            Some((_, number)) => *number,
            None => {
                let names: Vec<&str> = FACILITIES.iter().map(|(name, _)| *name).collect();
                self.wrong(&["audit", "facility"], format!("must be one of {}", names.join(", ")));
                AUTHPRIV
            }
        }
    }

    fn syslog(&mut self, text: &str) -> Option<SyslogServer> {
        match server(text) {
            Ok(server) => Some(server),
            Err(sentence) => {
                self.wrong(&["audit", "syslog"], sentence);
                None
            }
        }
    }
}

const FORM: &str = "must be \"udp://127.0.0.1:514\", \"tcp://logs.example.com:601\" or \"unix:///dev/log\", with your own host and port";

fn server(text: &str) -> Result<SyslogServer, &'static str> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(FORM);
    }
    if let Some(path) = text.strip_prefix("unix://") {
        return match cfg!(unix) {
            true if Path::new(path).is_absolute() => Ok(SyslogServer::Unix(PathBuf::from(path))),
            true => Err("must have the whole path of the socket, such as \"unix:///dev/log\""),
            false => Err("must be \"udp://…\" or \"tcp://…\": there are no such sockets on this system"),
        };
    }
    let url = Url::parse(text).map_err(|_| FORM)?;
    let is_bare = matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    let host = url.host_str().filter(|host| !host.is_empty() && is_bare).ok_or(FORM)?;
    match (url.scheme(), url.port()) {
        ("udp" | "tcp", None | Some(0)) => Err("must have a port, such as \"udp://127.0.0.1:514\""),
        ("udp", Some(port)) => Ok(SyslogServer::Udp(format!("{host}:{port}"))),
        ("tcp", Some(port)) => Ok(SyslogServer::Tcp(format!("{host}:{port}"))),
        _ => Err(FORM),
    }
}
