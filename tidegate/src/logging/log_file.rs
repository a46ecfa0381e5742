//! [`LogFile`]: log lines in a file, which is put aside when it is large: `tidegate.log` is written, `tidegate.log.1` came before it,
//! `tidegate.log.2` before that.
//!
//! A disk may be full, and somebody may remove the file or put something else in its place. Lines that cannot be written are
//! counted, and when it works again the first line says how many are missing.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tidegate_service::appended::{beside, is_in_place, open};
use tracing::Level;

use super::outputs::TARGET;
use super::writer::Note;

/// A file that log lines go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Its path. It is created with its directory, readable for its owner only, and appended to.
    pub path: PathBuf,
    /// The size at which it is put aside, in bytes.
    pub max_size: u64,
    /// How many files that were put aside are kept.
    pub keep: usize,
}

/// Writes lines to a file.
pub(super) struct LogFile {
    settings: FileSettings,
    opened: Option<Opened>,
    /// How many lines could not be written, and why not at last.
    lost: u64,
    why: String,
    /// Whether it was said that it cannot be put aside.
    is_stuck: bool,
    note: Note,
}

/// No directory should have more files that were put aside.
const MOST_ASIDE: usize = 10_000;

struct Opened {
    file: File,
    /// How many bytes of it are good.
    length: u64,
    /// Whether there is something after these, because it could not be written as a whole.
    is_torn: bool,
    /// A device has no length.
    is_regular: bool,
}

/// Whether lines can be written there. The file is made if it is not there.
pub(super) fn check(path: &Path) -> io::Result<()> {
    Opened::at(path).map(drop)
}

impl LogFile {
    pub(super) fn new(settings: FileSettings, note: Note) -> LogFile {
        LogFile { settings, opened: None, lost: 0, why: String::new(), is_stuck: false, note }
    }

    /// Writes lines, as far as it works. What is left is in `rest`.
    fn append(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        let path = &self.settings.path;
        if self.opened.as_ref().is_none_or(|opened| !is_in_place(&opened.file, path)) {
            self.opened = None;
            self.opened = Some(Opened::at(path)?);
        }
        let mut can_grow = false;
        while let Some(opened) = &mut self.opened
            && !rest.is_empty()
        {
            let room = self.settings.max_size.saturating_sub(opened.length);
            let fits = if opened.is_regular && !can_grow { whole_lines(rest, room) } else { rest.len() };
            if fits == 0 && opened.length > 0 {
                can_grow = !self.rotate();
                continue;
            }
            // A line that is larger than a file may be has one for itself.
            let (now, later) = rest.split_at(fits.max(first_line(rest)));
            opened.append(now)?;
            *rest = later;
        }
        Ok(())
    }

    /// Puts the file aside and begins another, if that is possible.
    fn rotate(&mut self) -> bool {
        let (path, rotated) = (self.settings.path.display(), self.put_aside());
        match rotated {
            Ok(opened) => (self.opened, self.is_stuck) = (Some(opened), false),
            Err(error) => {
                if !std::mem::replace(&mut self.is_stuck, true) {
                    tracing::error!(
                        target: TARGET,
                        "The log file {path} cannot be put aside as it should, and may grow: {error}"
                    );
                }
                return false;
            }
        }
        true
    }

    fn put_aside(&self) -> io::Result<Opened> {
        let FileSettings { path, keep, .. } = &self.settings;
        let aside = |number: usize| beside(path, &number.to_string());
        let there = (1..=MOST_ASIDE).take_while(|number| aside(*number).exists()).last().unwrap_or_default();
        for number in (1..=there).rev() {
            match number < *keep {
                true => std::fs::rename(aside(number), aside(number + 1))?,
                false => std::fs::remove_file(aside(number))?,
            }
        }
        std::fs::rename(path, aside(1))?;
        Opened::at(path)
    }

    /// Says that lines are missing, once that is possible.
    fn say_what_is_lost(&mut self) -> io::Result<()> {
        if self.lost == 0 {
            return Ok(());
        }
        let note = format!("{} lines could not be written here: {}", self.lost, self.why);
        self.append(&mut (self.note)(Level::WARN, &note).as_bytes())?;
        let (path, lost) = (self.settings.path.display(), std::mem::take(&mut self.lost));
        tracing::warn!(target: TARGET, "The log file {path} is written again; {lost} lines are missing in it");
        Ok(())
    }
}

impl Write for LogFile {
    /// Writes lines or counts them: to whoever writes, it always works.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut rest = lines;
        if let Err(error) = self.say_what_is_lost().and_then(|()| self.append(&mut rest)) {
            self.why = error.to_string();
            let was_fine = self.lost == 0;
            self.lost += rest.iter().filter(|byte| **byte == b'\n').count() as u64;
            if was_fine {
                let path = self.settings.path.display();
                tracing::error!(
                    target: TARGET,
                    "The log file {path} cannot be written: {error}. Lines are left out until it can be"
                );
            }
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Opened {
    fn at(path: &Path) -> io::Result<Opened> {
        // A pipe would be waited for.
        if std::fs::metadata(path).is_ok_and(|about| !about.is_dir() && !is_writable(&about)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let file = open(path)?;
        let about = file.metadata()?;
        Ok(Opened { length: about.len(), is_torn: false, is_regular: about.is_file(), file })
    }

    /// Appends lines, or leaves everything as it was.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn && self.is_regular {
            self.file.set_len(self.length)?;
        }
        let written = self.file.write_all(lines);
        self.is_torn = written.is_err();
        written?;
        self.length += lines.len() as u64;
        Ok(())
    }
}

/// Whether lines can be written to it without waiting for a reader.
fn is_writable(about: &Metadata) -> bool {
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&about.file_type()) {
        return true;
    }
    about.is_file()
}

/// How many bytes are whole lines and have room.
fn whole_lines(lines: &[u8], room: u64) -> usize {
    let room = lines.len().min(usize::try_from(room).unwrap_or(usize::MAX));
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn first_line(lines: &[u8]) -> usize {
    lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, max_size: u64, keep: usize) -> LogFile {
        let path = folder.join("logs/tidegate.log");
        let note: Note = Box::new(|level, message| format!("{level} {message}\n"));
        LogFile::new(FileSettings { path, max_size, keep }, note)
    }

    /// What is in the files, the newest first.
    fn texts(file: &LogFile) -> Vec<String> {
        let path = &file.settings.path;
        let asides = (1..).map(|number: usize| beside(path, &number.to_string()));
        let paths = std::iter::once(path.clone()).chain(asides);
        paths.map_while(|path| std::fs::read_to_string(path).ok()).collect()
    }

    fn say(file: &mut LogFile, lines: &str) {
        file.write_all(lines.as_bytes()).unwrap();
    }

    #[test]
    fn files_are_put_aside_at_whole_lines_and_only_some_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path(), 10, 2);
        for (lines, want) in [
            ("one\ntwo\n", vec!["one\ntwo\n"]),
            ("three\nfour\n", vec!["four\n", "three\n", "one\ntwo\n"]),
            ("5\n", vec!["four\n5\n", "three\n", "one\ntwo\n"]),
            ("a line that is too long\n6\n", vec!["6\n", "a line that is too long\n", "four\n5\n"]),
        ] {
            say(&mut file, lines);
            assert_eq!(texts(&file), want);
        }
        // A file that is there is continued, and what is too many by now goes.
        let mut file = self::file(folder.path(), 10, 1);
        say(&mut file, "seven\n");
        say(&mut file, "eight\n");
        assert_eq!(texts(&file), ["eight\n", "6\nseven\n"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path(), 10, 2);
        say(&mut file, "one\n");
        let mode = std::fs::metadata(&file.settings.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path(), 1000, 2);
        let path = file.settings.path.clone();
        std::fs::create_dir_all(&path).unwrap();
        say(&mut file, "one\ntwo\n");
        say(&mut file, "three\n");
        assert_eq!(file.lost, 3);
        std::fs::remove_dir(&path).unwrap();
        say(&mut file, "four\n");
        let [text] = &texts(&file)[..] else { panic!() };
        assert!(
            text.starts_with("WARN 3 lines could not be written here: ") && text.ends_with("\nfour\n"),
            "{text}"
        );
        // Somebody moves it, or removes its directory.
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        say(&mut file, "five\n");
        assert_eq!(texts(&file), ["five\n"]);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        say(&mut file, "six\n");
        assert_eq!((texts(&file), file.lost), (vec!["six\n".to_owned()], 0));
    }

    #[test]
    fn a_file_that_cannot_be_put_aside_grows_until_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path(), 10, 1);
        let path = file.settings.path.clone();
        say(&mut file, "one\ntwo\n");
        let in_its_way = beside(&path, "1");
        std::fs::create_dir(&in_its_way).unwrap();
        say(&mut file, "three\nfour\n");
        say(&mut file, "five\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\nfour\nfive\n");
        assert!(file.is_stuck && file.lost == 0);
        std::fs::remove_dir(&in_its_way).unwrap();
        say(&mut file, "six\n");
        assert_eq!(texts(&file), ["six\n", "one\ntwo\nthree\nfour\nfive\n"]);
        assert!(!file.is_stuck);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let mut file = file(Path::new("/nowhere"), 10, 1);
        file.settings.path = "/dev/full".into();
        say(&mut file, "one\ntwo\n");
        say(&mut file, "three\n");
        assert_eq!(file.lost, 3);
        assert!(file.why.contains("No space left"), "{}", file.why);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_waits_for_whoever_reads_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = file(folder.path(), 10, 1);
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        file.settings.path = path;
        say(&mut file, "one\n");
        assert_eq!((file.lost, file.why.as_str()), (1, "it is not a file"));
    }
}
