//! The trail as a whole: what is written, what is found again, what is noticed, and what happens when a place fails.

mod calls;
mod damage;
mod places;
mod restarts;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_config::{AuditFile, AuditSettings, WhenFull};

use crate::Audit;
use crate::kind::Kind;
use crate::verify::{Report, verify};

/// So long nothing takes: it tells slow from stuck.
const PATIENCE: Duration = Duration::from_secs(30);

fn settings(file: Option<&Path>) -> AuditSettings {
    let file = file.map(|path| AuditFile { path: path.to_owned(), max_size: 1 << 30, keep: 10 });
    AuditSettings { file, stdout: false, syslog: None, queue: 1 << 20, when_full: WhenFull::Drop }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Audit {
    /// Something happened.
    fn happens(&self, what: &str) {
        let members = format!(",\"name\":\"{what}\"");
        self.recorder().queue().push(1_785_240_000_000, Kind::Call, members.as_bytes());
    }
}

/// A trail with so many calls in it, from start to stop.
fn write_trail(settings: &AuditSettings, calls: usize) {
    let audit = Audit::start(settings, "1.2.3").unwrap();
    (0..calls).for_each(|call| audit.happens(&format!("call {call}")));
    audit.close(PATIENCE);
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[track_caller]
fn sound(path: &Path) -> Report {
    let report = verify(path, None).unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
    report
}

fn in_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    (folder, path)
}
