//! [`Reading`]: what a server says about its section of a configuration while it finds out what that means.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_service::secrets::register_setting;

use crate::time::Time;

/// The section of a server, while it is found out what it means. Fields are named by the way to them inside the section:
/// `&["agents", "steps"]`.
pub struct Reading<'a> {
    section: &'static str,
    findings: &'a mut dyn Findings,
}

/// Where what is found out is told. Whoever reads configurations implements it; paths are those in the whole file.
pub trait Findings {
    /// Something is wrong with a field: a sentence without its subject, such as "must be 1 or more".
    fn wrong(&mut self, at: &[&str], sentence: String);
    /// Something is worth knowing about a field.
    fn note(&mut self, at: &[&str], sentence: &str);
    /// One of these fields should be in the table at `at`, and none is.
    fn required(&mut self, at: &[&str], fields: &[&str], sentence: &str);
    /// A path as it was written: from the home directory, or relative to the configuration. `None`, and a problem, if there
    /// is none.
    fn path(&mut self, at: &[&str], text: &str) -> Option<PathBuf>;
}

impl<'a> Reading<'a> {
    pub(crate) fn new(section: &'static str, findings: &'a mut dyn Findings) -> Reading<'a> {
        Reading { section, findings }
    }

    fn whole<'p>(&self, at: &[&'p str]) -> Vec<&'p str> {
        std::iter::once(self.section).chain(at.iter().copied()).collect()
    }

    /// Something is wrong with a field: a sentence without its subject, such as "must be 1 or more". Values may be secrets:
    /// leave them out.
    pub fn wrong(&mut self, at: &[&str], sentence: impl Into<String>) {
        self.findings.wrong(&self.whole(at), sentence.into());
    }

    /// Something is worth knowing about a field, such as "has no effect: …".
    pub fn note(&mut self, at: &[&str], sentence: &str) {
        self.findings.note(&self.whole(at), sentence);
    }

    /// One of these fields should be in the table at `at`, and none is. It is no news if one of them could not be read.
    pub fn required(&mut self, at: &[&str], fields: &[&str], sentence: &str) {
        self.findings.required(&self.whole(at), fields, sentence);
    }

    /// A path as people write it: `~/` is the home directory, and what is relative starts at the configuration.
    pub fn path(&mut self, at: &[&str], text: &str) -> Option<PathBuf> {
        self.findings.path(&self.whole(at), text)
    }

    /// A length of time that is longer than nothing, or what is usual.
    pub fn time(&mut self, at: &[&str], time: Option<&Time>, usual: Duration) -> Duration {
        match time.map_or(Ok(usual), Time::duration) {
            Ok(time) if !time.is_zero() => time,
            Ok(_) => {
                self.wrong(at, "must be longer than 0");
                usual
            }
            Err(sentence) => {
                self.wrong(at, sentence);
                usual
            }
        }
    }

    /// A secret that is there, and that no log line and no error shows from now on. An empty one stands for a variable that
    /// may not be set.
    pub fn secret(&mut self, text: Option<&str>) -> Option<String> {
        let text = text.filter(|text| !text.is_empty())?;
        register_setting(text);
        Some(text.to_owned())
    }
}

/// For settings that nobody wrote: there is nothing to say about them.
pub(crate) struct Unwritten;

impl Findings for Unwritten {
    fn wrong(&mut self, _: &[&str], _: String) {}
    fn note(&mut self, _: &[&str], _: &str) {}
    fn required(&mut self, _: &[&str], _: &[&str], _: &str) {}
    fn path(&mut self, _: &[&str], text: &str) -> Option<PathBuf> {
        Some(PathBuf::from(text))
    }
}
