//! Whatever is changed in a trail, `verify` says in which record.

use std::path::Path;

use super::{in_folder, settings, sound, text, verify, write_trail};
use crate::chain::{Link, hex_text, stated_hash};
use crate::verify::{Damage, Head, Report, What};

/// A trail of eight records: start, six calls, stop.
fn small(path: &Path) -> Vec<String> {
    write_trail(&settings(Some(path)), 6);
    sound(path);
    text(path).lines().map(str::to_owned).collect()
}

fn write(path: &Path, lines: &[String]) {
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[track_caller]
fn damaged(path: &Path) -> Report {
    let report = verify(path, None).unwrap();
    assert!(!report.is_sound(), "{}", text(path));
    report
}

fn is_named(report: &Report, seq: u64) -> bool {
    let covers = |damage: &Damage| {
        damage.seq.is_some_and(|from| (from..=damage.what.to().unwrap_or(from)).contains(&seq))
    };
    report.damage.iter().any(covers)
}

#[test]
fn every_byte_counts() {
    let (_folder, path) = in_folder();
    small(&path);
    let good = std::fs::read(&path).unwrap();
    let mut line = 1;
    for at in 0..good.len() {
        for other in [good[at] ^ 1, b'\n', b'0'] {
            if other == good[at] {
                continue;
            }
            let mut bad = good.clone();
            bad[at] = other;
            std::fs::write(&path, &bad).unwrap();
            let report = damaged(&path);
            let said: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
            // The first line says what the first record follows: either of them is named.
            let is_named = is_named(&report, line - 1)
                || (line <= 2
                    && report
                        .damage
                        .iter()
                        .any(|damage| damage.what == What::Opening || damage.seq == Some(1)));
            assert!(is_named, "byte {at} of line {line} as {other}: {said:#?}");
            // Little else is suspected.
            assert!(report.damage.len() <= 3, "byte {at} of line {line} as {other}: {said:#?}");
        }
        line += u64::from(good[at] == b'\n');
    }
}

#[test]
fn every_record_that_is_removed_is_missed() {
    let (_folder, path) = in_folder();
    let lines = small(&path);
    for gone in 1..lines.len() {
        let mut left = lines.clone();
        left.remove(gone);
        write(&path, &left);
        let report = damaged(&path);
        let [damage] = &report.damage[..] else { panic!("{:?}", report.damage) };
        assert_eq!(damage.seq, Some(gone as u64));
        let expected = match gone + 1 == lines.len() {
            true => What::Cut { to: gone as u64 },
            false => What::Missing { to: gone as u64 },
        };
        assert_eq!(damage.what, expected);
    }
    write(&path, &[&lines[..2], &lines[5..]].concat());
    let report = damaged(&path);
    assert_eq!((report.damage[0].seq, report.damage[0].what), (Some(2), What::Missing { to: 4 }));
    assert!(
        report.damage[0].to_string().ends_with("audit.jsonl:3: records 2 to 4 are missing before this line")
    );
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    let report = damaged(&path);
    assert_eq!((report.damage[0].seq, report.damage[0].what), (Some(1), What::Cut { to: 8 }));
}

#[test]
fn every_record_that_is_moved_or_repeated_is_named() {
    let (_folder, path) = in_folder();
    let lines = small(&path);
    for one in 1..lines.len() - 1 {
        let mut swapped = lines.clone();
        swapped.swap(one, one + 1);
        write(&path, &swapped);
        let report = damaged(&path);
        let [damage] = &report.damage[..] else { panic!("{one}: {:?}", report.damage) };
        assert_eq!((damage.seq, damage.what), (Some(one as u64), What::OutOfPlace));
    }
    for one in 1..lines.len() {
        for to in one + 1..=lines.len() {
            let mut repeated = lines.clone();
            repeated.insert(to, lines[one].clone());
            write(&path, &repeated);
            let report = damaged(&path);
            let [damage] = &report.damage[..] else { panic!("{one} {to}: {:?}", report.damage) };
            assert_eq!(
                (damage.seq, damage.what, damage.line),
                (Some(one as u64), What::Duplicate, Some(to as u64 + 1))
            );
        }
    }
    for junk in ["", "hello", "{\"v\":1}", "{\"v\":1,\"kind\":\"file\",\"seq\":3,\"previous\":\"00\"}"] {
        let mut added = lines.clone();
        added.insert(4, junk.to_owned());
        write(&path, &added);
        let report = damaged(&path);
        let [damage] = &report.damage[..] else { panic!("{junk}: {:?}", report.damage) };
        assert_eq!((damage.seq, damage.what, damage.line), (None, What::NotARecord, Some(5)));
    }
}

#[test]
fn a_trail_that_was_written_anew_is_no_better_than_its_head() {
    let (_folder, path) = in_folder();
    small(&path);
    let head = verify(&path, None).unwrap().head.unwrap();
    let noted: Head = head.to_string().parse().unwrap();
    assert!(verify(&path, Some(noted)).unwrap().is_sound());
    // Somebody writes another one, with everything that belongs to it.
    for name in ["audit.jsonl", "audit.jsonl.head"] {
        std::fs::remove_file(path.with_file_name(name)).unwrap();
    }
    write_trail(&settings(Some(&path)), 6);
    sound(&path);
    let report = verify(&path, Some(noted)).unwrap();
    assert_eq!((report.damage[0].what, report.damage[0].seq), (What::Expected, Some(8)));
    // A head alone is not believed either.
    let other = path.with_file_name("audit.jsonl.head");
    let kept = text(&other);
    std::fs::write(&other, kept.replace("\"hash\":\"", "\"hash\":\"0").replacen("0\"}", "\"}", 1)).unwrap();
    assert_eq!(verify(&path, None).unwrap().damage[0].what, What::Head);
    std::fs::write(&other, format!("{{\"v\":1,\"seq\":8,\"hash\":\"{}\"}}\n", "0".repeat(64))).unwrap();
    assert_eq!(verify(&path, None).unwrap().damage[0].what, What::Head);
    std::fs::remove_file(&other).unwrap();
    assert!(sound(&path).notes.iter().any(|note| note.contains("no file with the head")));
    assert!("8:zz".parse::<Head>().is_err() && "x".parse::<Head>().is_err());
}

#[test]
fn much_damage_is_counted_and_clocks_are_only_noted() {
    let (_folder, path) = in_folder();
    let lines = small(&path);
    let many: Vec<String> =
        std::iter::once(lines[0].clone()).chain((0..5000).map(|_| "junk".to_owned())).collect();
    write(&path, &many);
    let report = damaged(&path);
    assert!(
        report.damage.len() <= 1001 && report.unlisted >= 4000,
        "{} {}",
        report.damage.len(),
        report.unlisted
    );
    // A line without an end is not held in memory.
    std::fs::write(&path, [lines[0].as_bytes(), b"\n", &vec![b'x'; 3 << 20]].concat()).unwrap();
    assert_eq!(damaged(&path).damage[0].what, What::Cut { to: 8 });
    // The calls have a time long before the start of this test.
    write(&path, &lines);
    assert!(
        sound(&path).notes.iter().any(|note| note.contains("clock went backwards once, first at record 2"))
    );
}

/// Chains the records of some lines anew, as somebody would who can write the file.
fn chain_anew(lines: &mut [String], from: usize, to: usize) {
    for at in from..to {
        let before = stated_hash(lines[at - 1].as_bytes()).unwrap();
        let hash = Link::read(lines[at].as_bytes()).unwrap().hash_after(&before);
        let old = hex_text(&stated_hash(lines[at].as_bytes()).unwrap());
        lines[at] = lines[at].replace(&old, &hex_text(&hash));
    }
}

#[test]
fn nothing_before_a_start_can_be_written_anew() {
    let (_folder, path) = in_folder();
    small(&path);
    write_trail(&settings(Some(&path)), 3);
    let lines: Vec<String> = text(&path).lines().map(str::to_owned).collect();
    let start = lines.iter().rposition(|line| line.contains("\"kind\":\"start\"")).unwrap();
    let mut forged = lines.clone();
    forged[3] = forged[3].replace("call 1", "call X");
    chain_anew(&mut forged, 3, start);
    write(&path, &forged);
    assert!(is_named(&damaged(&path), start as u64), "the start follows something else");
}

#[test]
fn a_number_at_the_end_of_all_numbers_is_damage_and_no_panic() {
    let (_folder, path) = in_folder();
    let mut lines = small(&path);
    let last = lines.len() - 1;
    let seq = format!("\"seq\":{last},");
    let high = lines[last].replace(&seq, &format!("\"seq\":{},", u64::MAX));
    assert_ne!(high, lines[last]);
    lines.push(high);
    lines.push(lines[2].clone());
    write(&path, &lines);
    damaged(&path);
}
