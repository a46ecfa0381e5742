//! The walk through the lines of a trail: what each of them should be, and what it is instead.

use std::path::{Path, PathBuf};

use super::about::About;
use super::report::{Damage, Head, Mark, Report, What};
use crate::chain::{GENESIS, Hash, LONGEST_LINE, Link, Position, stated_hash};
use crate::file::head::read_opening;
use crate::lines::Line;

/// So much damage is listed; the rest is counted.
const MOST_LISTED: usize = 1000;
/// So many gaps are remembered, to find out what is only out of place.
const MOST_GAPS: usize = 1000;

/// Where something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The index of the file.
    pub(super) file: usize,
    pub(super) line: u64,
}

/// A line that is no record.
#[derive(Debug, Clone, Copy)]
struct Unread {
    place: Place,
    length: u64,
    /// The hash at its end, if it has one.
    stated: Option<Hash>,
    is_ended: bool,
}

/// Records that are not there.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: u64,
    to: u64,
    /// What comes after it.
    place: Place,
}

/// The last record, if it came after a gap and could not be verified: its number may be what was changed.
#[derive(Debug, Clone, Copy)]
struct Jump {
    expected: u64,
    place: Place,
}

/// What is known while the lines go by.
#[derive(Debug)]
pub(super) struct Walk {
    /// The last record, or what the first one follows.
    at: Option<Position>,
    /// Other hashes that the next record may follow: where the last one was damaged, its own is only one of them.
    others: Vec<Hash>,
    /// Whether it is unknown what the next record follows.
    is_blind: bool,
    unread: Vec<Unread>,
    gaps: Vec<Gap>,
    jump: Option<Jump>,
    /// Records that the file did not get, as later records say.
    lost: Vec<(u64, u64)>,
    /// Whether the file at hand had a record yet.
    is_in_file: bool,
    found: Vec<(Place, Option<u64>, What)>,
    unlisted: u64,
    head: Option<Position>,
    expected: Option<Head>,
    /// The hashes of the records that these two are about.
    at_head: Option<Hash>,
    at_expected: Option<Hash>,
    is_head_unreadable: bool,
    records: u64,
    first: Option<Mark>,
    last: Option<Mark>,
    /// How often a time was earlier than the one before, and where first.
    backwards: (u64, u64),
    /// How often the process ended without saying so.
    unclean: u64,
    is_stopped: bool,
    torn: u64,
    unverified: u64,
}

impl Walk {
    pub(super) fn new(head: Option<Position>, expected: Option<Head>) -> Walk {
        Walk {
            at: None,
            others: Vec::new(),
            is_blind: false,
            unread: Vec::new(),
            gaps: Vec::new(),
            jump: None,
            lost: Vec::new(),
            is_in_file: false,
            found: Vec::new(),
            unlisted: 0,
            head,
            expected,
            at_head: None,
            at_expected: None,
            is_head_unreadable: false,
            records: 0,
            first: None,
            last: None,
            backwards: (0, 0),
            unclean: 0,
            is_stopped: true,
            torn: 0,
            unverified: 0,
        }
    }

    pub(super) fn begin_file(&mut self) {
        self.is_in_file = false;
    }

    pub(super) fn head_is_unreadable(&mut self) {
        self.is_head_unreadable = true;
    }

    /// The next line.
    pub(super) fn line(&mut self, place: Place, line: &Line<'_>, is_last_file: bool) {
        if !self.is_in_file
            && let Some(before) = read_opening(line.bytes)
        {
            self.is_in_file = true;
            return self.opening(place, before);
        }
        let link = Link::read(line.bytes).filter(|_| line.bytes.len() <= LONGEST_LINE);
        match link {
            Some(link) => {
                if !self.is_in_file {
                    self.is_in_file = true;
                    self.found(place, None, What::Opening);
                }
                self.record(place, &link, line.bytes);
            }
            None => {
                let is_ended = line.is_ended || !is_last_file;
                let stated = stated_hash(line.bytes);
                if self.unread.len() < MOST_LISTED {
                    self.unread.push(Unread { place, length: line.length, stated, is_ended });
                } else {
                    self.unlisted += 1;
                }
            }
        }
    }

    /// A file begins and says what its first record follows.
    fn opening(&mut self, place: Place, before: Position) {
        let is_wrong = match self.at {
            None => before.seq == 0 && before.hash != GENESIS,
            Some(at) if before.seq == at.seq => before.hash != at.hash && !self.others.contains(&before.hash),
            Some(at) => before.seq < at.seq,
        };
        if is_wrong {
            self.found(place, None, What::Opening);
        }
        match self.at {
            // Lines before it that are no records can be nothing but what was torn at the very beginning.
            None => self.at = Some(before),
            Some(_) => self.others.push(before.hash),
        }
    }

    fn record(&mut self, place: Place, link: &Link<'_>, line: &[u8]) {
        let about = About::of(line);
        self.read_unread(link.seq, &about);
        if let Some(jump) = self.jump.take()
            && Some(link.seq) == jump.expected.checked_add(1)
        {
            // It was no gap: the number of the record before was changed, too.
            self.gaps.pop();
            self.found(jump.place, Some(jump.expected), What::Changed);
            if let Some(at) = &mut self.at {
                at.seq = jump.expected;
            }
        }
        let Some(at) = self.at else {
            // What it follows is unknown. That the opening is missing was said.
            return self.accept(link.seq, link, &about);
        };
        let Some(expected) = at.seq.checked_add(1) else {
            return self.found(place, Some(link.seq), What::OutOfPlace);
        };
        // What a record itself says that it follows counts only where what it follows is missing: else it would cut the chain.
        let said = about.previous.filter(|_| link.seq != expected || self.is_blind);
        let follows: Vec<Hash> =
            std::iter::once(at.hash).chain(self.others.iter().copied()).chain(said).collect();
        let is_sound = follows.iter().any(|before| link.hash_after(before) == link.stated);
        let is_renumbered = || follows.iter().any(|before| link.hash_as(expected, before) == link.stated);
        if link.seq == expected {
            let computed = link.hash_after(&at.hash);
            match (is_sound, self.is_blind && about.previous.is_none()) {
                (true, _) => {}
                (false, true) => self.unverified += 1,
                (false, false) => self.found(place, Some(expected), What::Changed),
            }
            self.accept(expected, link, &about);
            if !is_sound {
                self.others.push(computed);
            }
        } else if !is_sound && is_renumbered() {
            self.found(place, Some(expected), What::Renumbered { says: link.seq });
            self.accept(expected, link, &about);
        } else if link.seq > expected {
            if self.gaps.len() < MOST_GAPS {
                self.gaps.push(Gap { from: expected, to: link.seq - 1, place });
                self.jump = (!is_sound).then_some(Jump { expected, place });
            } else {
                self.found(place, Some(expected), What::Missing { to: link.seq - 1 });
            }
            self.unverified += u64::from(!is_sound);
            self.accept(link.seq, link, &about);
        } else {
            let what = if self.fill_gap(link.seq) { What::OutOfPlace } else { What::Duplicate };
            self.found(place, Some(link.seq), what);
            self.note_heads(link.seq, link.stated);
            self.records += u64::from(what == What::OutOfPlace);
        }
    }

    /// What the lines were that were no records, now that the next record is known.
    fn read_unread(&mut self, next: u64, about: &About) {
        if self.unread.is_empty() {
            return;
        }
        let unread = std::mem::take(&mut self.unread);
        let length: u64 = unread.iter().map(|line| line.length).sum();
        if about.kind == "start" && about.torn == Some(length) {
            self.torn += 1;
            return;
        }
        let expected = self.at.map_or(next, |at| at.seq.saturating_add(1));
        let many = next.saturating_sub(expected);
        if many == 0 {
            // The next one is there: nothing is in the place of these.
            unread.iter().for_each(|line| self.found(line.place, None, What::NotARecord));
            return;
        }
        let is_each_one = many >= unread.len() as u64;
        for (line, nth) in unread.iter().zip(0..) {
            let seq = expected + if is_each_one { nth } else { 0 };
            self.found(line.place, Some(seq), What::NotARecord);
        }
        let last = expected + if is_each_one { unread.len() as u64 - 1 } else { many - 1 };
        let stated: Vec<Hash> = unread.iter().filter_map(|line| line.stated).collect();
        self.is_blind = true;
        self.at = Some(Position { seq: last, hash: stated.last().copied().unwrap_or(GENESIS) });
        self.others = stated;
    }

    fn accept(&mut self, seq: u64, link: &Link<'_>, about: &About) {
        self.at = Some(Position { seq, hash: link.stated });
        self.others.clear();
        self.is_blind = false;
        self.records += 1;
        self.note_heads(seq, link.stated);
        let mark = Mark { seq, time: about.time.clone() };
        if self.last.as_ref().is_some_and(|last| mark.time < last.time) {
            self.backwards =
                (self.backwards.0 + 1, if self.backwards.0 == 0 { seq } else { self.backwards.1 });
        }
        self.first.get_or_insert_with(|| mark.clone());
        self.last = Some(mark);
        match about.kind.as_str() {
            "start" => self.unclean += u64::from(!std::mem::replace(&mut self.is_stopped, false)),
            "stop" => self.is_stopped = true,
            "lost" => self.lost.extend(about.lost),
            _ => self.is_stopped = false,
        }
    }

    fn note_heads(&mut self, seq: u64, hash: Hash) {
        if self.head.is_some_and(|head| head.seq == seq) {
            self.at_head = Some(hash);
        }
        if self.expected.is_some_and(|head| head.seq == seq) {
            self.at_expected = Some(hash);
        }
    }

    /// Takes a record out of the gap that it is in, if it is in one.
    fn fill_gap(&mut self, seq: u64) -> bool {
        let Some(index) = self.gaps.iter().position(|gap| (gap.from..=gap.to).contains(&seq)) else {
            return false;
        };
        let gap = self.gaps.remove(index);
        let parts = [Gap { to: seq - 1, ..gap }, Gap { from: seq + 1, ..gap }];
        self.gaps.extend(parts.into_iter().filter(|part| part.from <= part.to));
        true
    }

    fn found(&mut self, place: Place, seq: Option<u64>, what: What) {
        match self.found.len() < MOST_LISTED {
            true => self.found.push((place, seq, what)),
            false => self.unlisted += 1,
        }
    }

    /// Everything that was found.
    pub(super) fn finish(mut self, files: Vec<PathBuf>, head_file: &Path) -> Report {
        let mut notes = Vec::new();
        for line in std::mem::take(&mut self.unread) {
            match line.is_ended {
                true => self.found(line.place, self.at.map(|at| at.seq + 1), What::NotARecord),
                false => {
                    notes.push("The last line is torn: the process was stopped while it wrote it.".to_owned())
                }
            }
        }
        let mut told = 0;
        for gap in std::mem::take(&mut self.gaps) {
            match self.lost.iter().any(|(from, to)| *from <= gap.from && gap.to <= *to) {
                true => told += gap.to - gap.from + 1,
                false => self.found(gap.place, Some(gap.from), What::Missing { to: gap.to }),
            }
        }
        self.found.sort_by_key(|(place, ..)| *place);
        let file = |index: usize| files.get(index).cloned().unwrap_or_default();
        let mut damage: Vec<Damage> = std::mem::take(&mut self.found)
            .into_iter()
            .map(|(place, seq, what)| Damage { file: file(place.file), line: Some(place.line), seq, what })
            .collect();
        damage.extend(self.at_the_end(file(files.len().saturating_sub(1)), head_file, &mut notes));
        self.notes(told, &mut notes);
        let head = self.at.filter(|_| self.records > 0).map(Head::from);
        let Walk { records, first, last, unlisted, .. } = self;
        Report { files, records, first, last, head, damage, unlisted, notes }
    }

    /// What the heads say.
    fn at_the_end(&self, last_file: PathBuf, head_file: &Path, notes: &mut Vec<String>) -> Vec<Damage> {
        let mut damage = Vec::new();
        let mut add =
            |file: PathBuf, seq: Option<u64>, what: What| damage.push(Damage { file, line: None, seq, what });
        let last = self.at.map_or(0, |at| at.seq);
        if self.is_head_unreadable {
            add(head_file.to_owned(), None, What::Head);
        }
        match (self.head, self.at_head) {
            (Some(head), _) if head.seq > last => {
                add(last_file.clone(), Some(last + 1), What::Cut { to: head.seq })
            }
            (Some(head), Some(hash)) if hash != head.hash => {
                add(head_file.to_owned(), Some(head.seq), What::Head)
            }
            (None, _) if !self.is_head_unreadable && self.records > 0 => {
                notes.push(
                    "There is no file with the head: a tail that was cut off would not be noticed."
                        .to_owned(),
                );
            }
            _ => {}
        }
        if let Some(expected) = self.expected {
            let first = self.first.as_ref().map_or(u64::MAX, |first| first.seq);
            match self.at_expected {
                Some(hash) if hash == expected.hash => {}
                None if expected.seq < first && last > expected.seq => notes.push(format!(
                    "Record {} is in none of the files any more, so what was expected of it could not be compared.",
                    expected.seq
                )),
                _ => add(last_file, Some(expected.seq), What::Expected),
            }
        }
        damage
    }

    fn notes(&self, told: u64, notes: &mut Vec<String>) {
        let first = self.first.as_ref().map_or(1, |first| first.seq);
        if first > 1 {
            notes.push(format!(
                "The trail begins with record {first}: those before it are in none of the files."
            ));
        }
        if told > 0 {
            notes.push(format!(
                "{told} records could not be written when they were made, as the trail itself says."
            ));
        }
        if self.torn > 0 {
            notes.push(format!(
                "{} torn: the process was stopped while it wrote, as the trail itself says.",
                if self.torn == 1 { "One line is".to_owned() } else { format!("{} lines are", self.torn) }
            ));
        }
        if self.unclean > 0 {
            notes.push(format!(
                "The process ended {} without closing the trail: up to a second of records may never have been written.",
                if self.unclean == 1 { "once".to_owned() } else { format!("{} times", self.unclean) }
            ));
        }
        if self.unverified > 0 {
            notes.push(format!(
                "{} could not be verified, because what stood before is damaged or missing.",
                if self.unverified == 1 {
                    "One record".to_owned()
                } else {
                    format!("{} records", self.unverified)
                }
            ));
        }
        if self.backwards.0 > 0 {
            notes.push(format!(
                "The clock went backwards {}, first at record {}: the order of records is that of their numbers.",
                if self.backwards.0 == 1 { "once".to_owned() } else { format!("{} times", self.backwards.0) },
                self.backwards.1
            ));
        }
    }
}
