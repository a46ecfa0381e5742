//! The files of the store. Everything here may block, and nothing fails: what cannot be read or written is logged.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Limits, Object};
use tidegate_service::{epoch_ms, random};

use super::ended::{ALL, EndedSessions, MAX_ENDED, line};
use super::{Owner, SessionKey, SessionMemory, locked};

/// Most sessions whose level and subscriptions are kept, and how large they may be together. Those that expire first make room.
const MAX_FILES: usize = 16 * 1024;
const MAX_TOTAL: u64 = 64 * 1024 * 1024;
/// The part of both that one owner may have: its own make room for more, and not those of others.
const SHARE: usize = 4;
/// Most that is read of one such file, and of a file of ended sessions.
const MAX_MEMORY: u64 = 512 * 1024;
const MAX_HOUR: u64 = (MAX_ENDED as u64) * 2 * 33;
/// What has expired is looked for this often.
const CLEAN_MS: u64 = 3_600_000;

pub(super) struct Files {
    state: PathBuf,
    ended: PathBuf,
    /// When what has expired was last removed, in milliseconds since 1970; 0 before the first time.
    cleaned_ms: u64,
    /// How long each file of ended sessions was when it was read.
    read: HashMap<u64, u64>,
    /// The sessions whose level and subscriptions are kept. Sorted by expiry.
    kept: BTreeMap<String, Kept>,
    total: u64,
    warned: bool,
    warned_of_ended: bool,
}

/// The file of one session.
struct Kept {
    bytes: u64,
    /// Whose it is, if this process has written it for somebody who was authenticated.
    owner: Option<Owner>,
}

impl Files {
    pub(super) fn new(dir: PathBuf) -> Files {
        Files {
            state: dir.join("state"),
            ended: dir.join("ended"),
            cleaned_ms: 0,
            read: HashMap::new(),
            kept: BTreeMap::new(),
            total: 0,
            warned: false,
            warned_of_ended: false,
        }
    }

    /// Makes the directories, reads what is in them and removes what has expired: at first, and then every hour.
    pub(super) fn prepare(&mut self, ended: &Mutex<EndedSessions>) {
        let now = epoch_ms();
        if self.cleaned_ms != 0 && now.abs_diff(self.cleaned_ms) < CLEAN_MS {
            return;
        }
        let is_first = self.cleaned_ms == 0;
        self.cleaned_ms = now;
        for dir in [self.state.clone(), self.ended.clone()] {
            if let Err(error) = make_dir(&dir) {
                self.warn("make", &dir, &error);
            }
        }
        let this_hour = now / CLEAN_MS;
        locked(ended).forget_before(this_hour);
        self.read.retain(|hour, _| *hour >= this_hour);
        for (name, path) in entries(&self.ended) {
            match hour_of(&name) {
                Some(hour) if hour < this_hour => remove(&path),
                Some(hour) if is_first => _ = self.read_ended(hour, ended),
                Some(_) => {}
                None => remove_draft(&path, &name),
            }
        }
        let before = std::mem::take(&mut self.kept);
        self.total = 0;
        for (name, path) in entries(&self.state) {
            match (expiry_of(&name), fs::metadata(&path)) {
                (Some(expires), _) if expires < now => remove(&path),
                (Some(_), Ok(meta)) => {
                    self.total += meta.len();
                    let owner = before.get(&name).and_then(|kept| kept.owner);
                    self.kept.insert(name, Kept { bytes: meta.len(), owner });
                }
                _ => remove_draft(&path, &name),
            }
        }
    }

    /// Takes in which sessions of an hour have ended, if others have written that. Whether it could be read.
    pub(super) fn read_ended(&mut self, hour: u64, ended: &Mutex<EndedSessions>) -> bool {
        let path = self.ended.join(hour.to_string());
        let len = match fs::metadata(&path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return true,
            Err(error) => {
                self.warn("read", &path, &error);
                return false;
            }
        };
        if self.read.get(&hour) == Some(&len) {
            return true;
        }
        if len > MAX_HOUR {
            locked(ended).close(hour);
        } else {
            match read(&path, MAX_HOUR) {
                Ok(text) => locked(ended).read(hour, &text),
                Err(error) => {
                    self.warn("read", &path, &error);
                    return false;
                }
            }
        }
        self.read.insert(hour, len);
        let closed = locked(ended).make_room();
        self.close_hours(&closed);
        true
    }

    /// Level and subscriptions of a session; the usual ones if nothing is kept.
    pub(super) fn read_memory(&mut self, key: &SessionKey) -> SessionMemory {
        let path = self.state.join(name(key));
        match read(&path, MAX_MEMORY) {
            Ok(text) => parse(&text).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::NotFound => SessionMemory::default(),
            Err(error) => {
                self.warn("read", &path, &error);
                SessionMemory::default()
            }
        }
    }

    /// Keeps level and subscriptions of a session, or nothing if they are the usual ones.
    pub(super) fn write_memory(&mut self, key: &SessionKey, memory: &SessionMemory, owner: Option<Owner>) {
        let name = name(key);
        let path = self.state.join(&name);
        if *memory == SessionMemory::default() {
            return self.forget(&name);
        }
        let text = written(memory);
        if let Err(error) = replace(&path, &text) {
            return self.warn("write", &path, &error);
        }
        let bytes = text.len() as u64;
        let before = self.kept.insert(name, Kept { bytes, owner });
        self.total = self.total - before.map_or(0, |kept| kept.bytes) + bytes;
        if let Some(owner) = owner {
            self.keep_share(owner);
        }
        while self.kept.len() > MAX_FILES || self.total > MAX_TOTAL {
            let Some(first) = self.kept.keys().next().cloned() else { break };
            self.forget(&first);
        }
    }

    /// Forgets what is more than one owner's share, that which expires first.
    fn keep_share(&mut self, owner: Owner) {
        let own = self.kept.iter().filter(|(_, kept)| kept.owner == Some(owner));
        let (mut files, mut bytes) =
            own.clone().fold((0, 0), |(files, bytes), (_, kept)| (files + 1, bytes + kept.bytes));
        let mut surplus = Vec::new();
        for (name, kept) in own {
            if files <= MAX_FILES / SHARE && bytes <= MAX_TOTAL / SHARE as u64 {
                break;
            }
            (files, bytes) = (files - 1, bytes - kept.bytes);
            surplus.push(name.clone());
        }
        surplus.iter().for_each(|name| self.forget(name));
    }

    fn forget(&mut self, name: &str) {
        self.total -= self.kept.remove(name).map_or(0, |kept| kept.bytes);
        remove(&self.state.join(name));
    }

    /// Writes down that these have ended. Returns those of which that could not be written.
    pub(super) fn append_ended(&mut self, ended: Vec<SessionKey>) -> Vec<SessionKey> {
        let mut hours: BTreeMap<u64, Vec<SessionKey>> = BTreeMap::new();
        for key in ended {
            self.forget(&name(&key));
            hours.entry(key.hour()).or_default().push(key);
        }
        let mut unwritten = Vec::new();
        for (hour, keys) in hours {
            let path = self.ended.join(hour.to_string());
            let mut lines = String::new();
            for key in &keys {
                // The break comes first: if an earlier line was not written to its end, this one is a line of its own.
                _ = write!(lines, "\n{}", line(key));
            }
            let appended = append(&path, &lines).or_else(|error| match error.kind() {
                // Somebody has removed the directory.
                ErrorKind::NotFound => make_dir(&self.ended).and_then(|()| append(&path, &lines)),
                _ => Err(error),
            });
            if let Err(error) = appended {
                if !std::mem::replace(&mut self.warned_of_ended, true) {
                    tracing::warn!(
                        "Cannot write {}: {error}. Legacy sessions that have ended come back after a restart until that can be \
                         written.",
                        path.display()
                    );
                }
                unwritten.extend(keys);
            }
        }
        unwritten
    }

    /// Writes down that all sessions of these hours are taken to have ended.
    pub(super) fn close_hours(&mut self, hours: &[u64]) {
        for hour in hours {
            let path = self.ended.join(hour.to_string());
            if let Err(error) = replace(&path, ALL) {
                self.warn("write", &path, &error);
            }
        }
    }

    /// Says once that something is wrong with the directory.
    fn warn(&mut self, what: &str, path: &Path, error: &io::Error) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                "Cannot {what} {}: {error}. What legacy sessions have subscribed to, and that they have ended, may be forgotten \
                 at a restart.",
                path.display()
            );
        }
    }
}

/// The expiry first, so that names sort by it.
fn name(key: &SessionKey) -> String {
    format!("{:012x}-{}", key.expires_ms, line(key))
}

/// When the session of a file expires; `None` if the name is none of [`name`].
fn expiry_of(name: &str) -> Option<u64> {
    let (expires, digest) = name.split_once('-')?;
    let is_hex = |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hex(expires, 12) && is_hex(digest, 32)).then(|| u64::from_str_radix(expires, 16).ok()).flatten()
}

/// The hour of a file of ended sessions; `None` if it is not called like one. Hours since 1970 have six digits, or seven.
fn hour_of(name: &str) -> Option<u64> {
    let is_hour = matches!(name.len(), 6 | 7) && name.bytes().all(|b| b.is_ascii_digit());
    is_hour.then(|| name.parse().ok()).flatten()
}

fn written(memory: &SessionMemory) -> String {
    let subscriptions: Vec<&str> = memory.subscriptions.iter().map(|uri| &**uri).collect();
    let mut w = ObjectWriter::new();
    w.str("level", memory.level.as_str()).value("subscriptions", &subscriptions);
    w.finish().as_str().to_owned()
}

fn parse(text: &str) -> Option<SessionMemory> {
    let limits = Limits { max_depth: 4, max_bytes: MAX_MEMORY as usize };
    let all = Object::parse(text, &limits).ok()?;
    let subscriptions = all.json("subscriptions")?.elements()?;
    Some(SessionMemory {
        level: all.str("level")?.parse().ok()?,
        subscriptions: subscriptions.iter().filter_map(|uri| Some((*uri.to_str()?).into())).collect(),
    })
}

fn read(path: &Path, max: u64) -> io::Result<String> {
    let mut text = String::new();
    // Opening a pipe would wait for whoever writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    if file.take(max + 1).read_to_string(&mut text)? as u64 > max {
        return Err(io::Error::other(format!("it has more than {max} bytes")));
    }
    Ok(text)
}

/// Appends in one write, so that lines of several processes do not mix.
fn append(path: &Path, lines: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Err(io::Error::other("it is not a regular file")),
        _ => {}
    }
    private().append(true).create(true).open(path)?.write_all(lines.as_bytes())
}

/// Replaces a file as a whole. What a crash of the machine leaves may be the old one: nobody waits for the disk here.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension(format!("{:016x}.draft", u64::from_le_bytes(random())));
    let mut file = private().write(true).create_new(true).open(&draft)?;
    let replaced = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&draft, path));
    if replaced.is_err() {
        remove(&draft);
    }
    replaced
}

/// Files for their owner alone: they say what somebody has subscribed to.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn entries(dir: &Path) -> Vec<(String, PathBuf)> {
    let all = fs::read_dir(dir).into_iter().flatten().flatten();
    all.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect()
}

/// Removes what a process that was killed has left half written. Nobody writes for as long as a minute.
fn remove_draft(path: &Path, name: &str) {
    let age = fs::metadata(path).and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
    if name.ends_with(".draft") && age.is_some_and(|age| age.as_secs() > 60) {
        remove(path);
    }
}

fn remove(path: &Path) {
    // It is not there, or is tried again with the next look.
    _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_owner_keeps_pushes_out_its_own() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut files = Files::new(dir.path().to_owned());
        files.prepare(&Mutex::default());
        let later = epoch_ms() + 1_000_000;
        let key = |n: u64| SessionKey::new(&n.to_string(), later + n);
        let memory = |bytes: usize| SessionMemory {
            subscriptions: ["x".repeat(bytes).into()].into(),
            ..SessionMemory::default()
        };
        files.write_memory(&key(0), &memory(10), Some(Owner(1)));
        files.write_memory(&key(1), &memory(10), None);
        let most = MAX_TOTAL / SHARE as u64 / 500_000;
        for n in 2..most + 12 {
            files.write_memory(&key(n), &memory(500_000), Some(Owner(2)));
        }
        let is_kept = |files: &mut Files, n| files.read_memory(&key(n)) != SessionMemory::default();
        assert!(is_kept(&mut files, 0) && is_kept(&mut files, 1));
        assert!(!is_kept(&mut files, 2) && is_kept(&mut files, most + 11));
        assert!(files.total <= MAX_TOTAL / SHARE as u64 + 200, "{}", files.total);
        files.cleaned_ms = 1;
        files.prepare(&Mutex::default());
        files.write_memory(&key(most + 12), &memory(500_000), Some(Owner(2)));
        assert!(files.total <= MAX_TOTAL / SHARE as u64 + 200, "whose they are is known after cleaning up");
    }
}
