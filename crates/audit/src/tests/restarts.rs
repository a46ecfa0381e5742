//! A trail goes on: after a restart, after a kill, in another file.

use super::{AuditFile, in_folder, settings, sound, text, until, verify, write_trail};
use crate::file::names::{put_aside, trail};
use crate::verify::What;
use crate::{Audit, AuditError};

#[test]
fn numbers_go_on_over_restarts() {
    let (_folder, path) = in_folder();
    write_trail(&settings(Some(&path)), 3);
    write_trail(&settings(Some(&path)), 2);
    let report = sound(&path);
    assert_eq!((report.records, report.head.unwrap().seq, report.files.len()), (9, 9, 1));
    assert!(!report.notes.iter().any(|note| note.contains("without closing")), "{:?}", report.notes);
    #[cfg(unix)]
    for name in ["audit.jsonl", "audit.jsonl.head"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path.with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn what_was_torn_is_kept_and_told() {
    let (_folder, path) = in_folder();
    write_trail(&settings(Some(&path)), 3);
    let whole = text(&path);
    // Killed in the middle of a write, at every byte of the last two records.
    let end = whole.len();
    let from = end - whole.lines().rev().take(2).map(|line| line.len() + 1).sum::<usize>();
    for cut in from..end {
        std::fs::write(&path, &whole[..cut]).unwrap();
        // The head is of before.
        std::fs::remove_file(path.with_file_name("audit.jsonl.head")).ok();
        write_trail(&settings(Some(&path)), 1);
        let report = sound(&path);
        let complete = whole[..cut].lines().filter(|line| line.ends_with("\"}")).count() as u64 - 1;
        assert_eq!(report.records, complete + 3, "cut at {cut}");
        // Where only the last line break is missing, everything was written.
        let is_told = report.notes.iter().any(|note| note.contains("without closing"));
        assert_eq!(is_told, cut + 1 < end, "cut at {cut}: {:?}", report.notes);
    }
}

#[test]
fn a_first_line_that_was_torn() {
    let (_folder, path) = in_folder();
    std::fs::write(&path, "{\"v\":1,\"ki").unwrap();
    write_trail(&settings(Some(&path)), 1);
    let report = sound(&path);
    assert_eq!(report.records, 3);
    assert!(report.notes.iter().any(|note| note.contains("One line is torn")), "{:?}", report.notes);
}

#[test]
fn a_tail_that_was_cut_is_missed_for_good() {
    let (_folder, path) = in_folder();
    write_trail(&settings(Some(&path)), 6);
    let lines: Vec<String> = text(&path).lines().map(str::to_owned).collect();
    std::fs::write(&path, lines[..6].join("\n") + "\n").unwrap();
    let report = verify(&path, None).unwrap();
    assert_eq!((report.damage[0].seq, report.damage[0].what), (Some(6), What::Cut { to: 8 }));
    // It goes on after the numbers that the head knows.
    write_trail(&settings(Some(&path)), 1);
    let report = verify(&path, None).unwrap();
    let [damage] = &report.damage[..] else { panic!("{:?}", report.damage) };
    assert_eq!((damage.seq, damage.what), (Some(6), What::Missing { to: 8 }));
    assert_eq!(report.head.unwrap().seq, 11);
    assert!(text(&path).contains("\"missing\":3"));
}

#[test]
fn what_cannot_be_continued_is_refused() {
    let (_folder, path) = in_folder();
    std::fs::write(&path, "these are\nmy notes\n").unwrap();
    let refused = Audit::start(&settings(Some(&path)), "1").unwrap_err();
    assert!(matches!(refused, AuditError::Unreadable { .. }), "{refused}");
    assert_eq!(text(&path), "these are\nmy notes\n");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(path.with_file_name("audit.jsonl.head"), "?").unwrap();
    assert!(matches!(Audit::start(&settings(Some(&path)), "1"), Err(AuditError::Head { .. })));
    #[cfg(unix)]
    {
        let full = settings(Some(std::path::Path::new("/dev/full")));
        assert!(matches!(Audit::start(&full, "1"), Err(AuditError::NoFile(_))));
    }
}

#[test]
fn one_process_writes_a_trail() {
    let (_folder, path) = in_folder();
    let audit = Audit::start(&settings(Some(&path)), "1").unwrap();
    let refused = Audit::start(&settings(Some(&path)), "1").unwrap_err();
    assert!(matches!(refused, AuditError::InUse(_)));
    assert!(refused.to_string().contains("is written by another process: stop it, or name another file"));
    audit.close(super::PATIENCE);
    Audit::start(&settings(Some(&path)), "1").unwrap().close(super::PATIENCE);
}

#[test]
fn large_files_are_put_aside_and_old_ones_removed() {
    let (_folder, path) = in_folder();
    let mut settings = settings(Some(&path));
    settings.file = Some(AuditFile { path: path.clone(), max_size: 1500, keep: 3 });
    // One batch after the other: each of them is too large for what is left.
    for run in 0..4 {
        write_trail(&settings, 4);
        let report = sound(&path);
        assert_eq!(report.head.unwrap().seq, (run + 1) * 6);
    }
    let files = trail(&path).unwrap();
    assert_eq!(files.len(), 4, "{files:?}");
    for _ in 0..4 {
        write_trail(&settings, 4);
    }
    assert_eq!(put_aside(&path).unwrap().len(), 3);
    let report = sound(&path);
    assert_eq!(report.head.unwrap().seq, 48);
    let first = report.first.unwrap().seq;
    assert!(
        first > 1 && report.notes.iter().any(|note| note.contains(&format!("begins with record {first}")))
    );
    // A file in the middle that is gone is missed.
    let (_, middle) = &put_aside(&path).unwrap()[1];
    std::fs::remove_file(middle).unwrap();
    let report = verify(&path, None).unwrap();
    assert!(
        matches!(report.damage[..], [ref damage] if matches!(damage.what, What::Missing { .. })),
        "{report:?}"
    );
    // One that was put aside is verified alone, too.
    let (_, oldest) = &put_aside(&path).unwrap()[0];
    sound(oldest);
}

#[test]
fn a_rotation_that_was_interrupted_loses_nothing() {
    let (_folder, path) = in_folder();
    write_trail(&settings(Some(&path)), 4);
    std::fs::rename(&path, path.with_file_name("audit.jsonl.000000000001")).unwrap();
    std::fs::write(path.with_file_name("audit.jsonl.new"), "").unwrap();
    write_trail(&settings(Some(&path)), 4);
    assert_eq!(sound(&path).records, 12);
    // Without the head, too.
    std::fs::rename(&path, path.with_file_name("audit.jsonl.000000000007")).unwrap();
    std::fs::remove_file(path.with_file_name("audit.jsonl.head")).unwrap();
    write_trail(&settings(Some(&path)), 4);
    assert_eq!(sound(&path).records, 18);
}

#[cfg(unix)]
#[test]
fn a_file_that_was_moved_away_is_begun_anew() {
    let (_folder, path) = in_folder();
    let audit = Audit::start(&settings(Some(&path)), "1").unwrap();
    until("it has begun", || path.exists() && !text(&path).is_empty());
    std::fs::rename(&path, path.with_file_name("audit.jsonl.000000000001")).unwrap();
    until("it is there again", || {
        audit.happens("call");
        path.exists()
    });
    audit.happens("the last");
    audit.close(super::PATIENCE);
    assert!(text(&path).contains("the last"));
    sound(&path);
}
