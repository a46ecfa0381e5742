//! Which log lines there are, how they look and where they go.

use tidegate_service::log_filter;

use super::Resolver;
use crate::audit_settings::AuditSettings;
use crate::log_settings::{LogFile, LogFormat, LogSettings};
use crate::written::{self, Log};

const MAX_SIZE: usize = 100 << 20;
const KEEP: usize = 10;
/// Smaller ones would hold a few lines.
const LEAST: usize = 64 << 10;
/// Each is renamed whenever another one is put aside.
const MOST_KEPT: usize = 1000;

impl Resolver<'_> {
    pub(super) fn log(&mut self, log: &Log, audit: Option<&AuditSettings>) -> LogSettings {
        let level = log.level.as_deref().map(str::trim);
        if level.is_some_and(|level| !log_filter::is_filter(level)) {
            self.wrong(&["log", "level"], format!("is not a log level: {}", log_filter::FORM));
        }
        let path = log.file.as_deref().and_then(|path| self.path(&["log", "file"], path));
        if let Some(path) = &path {
            let of_audit = audit.and_then(|audit| audit.file.as_ref());
            if path.is_dir() || path.file_name().is_none() {
                self.wrong(&["log", "file"], "must be a file, and is a directory");
            } else if of_audit.is_some_and(|file| file.path == *path) {
                self.wrong(&["log", "file"], "must be another file than that of [audit]");
            }
        }
        let max_size = self.size(&["log", "max_size"], log.max_size.as_ref(), MAX_SIZE);
        if max_size < LEAST {
            self.wrong(&["log", "max_size"], "must be at least \"64KiB\"");
        }
        let keep = log.keep.unwrap_or(KEEP);
        if !(1..=MOST_KEPT).contains(&keep) {
            self.wrong(&["log", "keep"], format!("must be from 1 to {MOST_KEPT}"));
        }
        if log.file.is_none() {
            for (field, is_there) in [("max_size", log.max_size.is_some()), ("keep", log.keep.is_some())] {
                if is_there {
                    self.note(&["log", field], "has no effect: there is no file.");
                }
            }
        }
        LogSettings {
            format: log.format.map(|format| match format {
                written::LogFormat::Pretty => LogFormat::Pretty,
                written::LogFormat::Json => LogFormat::Json,
            }),
            level: level.map(str::to_owned),
            file: path.map(|path| LogFile { path, max_size: max_size as u64, keep }),
        }
    }
}
