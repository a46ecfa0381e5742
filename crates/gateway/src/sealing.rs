//! What the gateway seals with: the keys of the configuration, or those of a file that is made at first use. What clients were
//! given before a restart is good after it, and processes that have the same keys take it from each other.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use tidegate_client::AppError;
use tidegate_config::Settings;
use tidegate_protocol::seal::{Key, Sealer};
use tidegate_service::{random, secrets};

use crate::gateway::configuration_error;

/// The file in the state directory: one key in each line, the one that seals first.
const FILE: &str = "sealing.key";
/// Most that the file holds.
const MOST_KEYS: usize = 8;
const MAX_BYTES: u64 = 4096;

/// What these settings seal with; `None` if nothing but a key of this process alone can be had.
pub(crate) fn sealer(settings: &Settings) -> Result<Option<Sealer>, AppError> {
    let keys = match (settings.sealing_keys.as_slice(), &settings.state_dir) {
        ([], None) => {
            tracing::debug!("the sealing key is random and ends with this process: there is no state_dir");
            return Ok(None);
        }
        ([], Some(dir)) => match kept(&dir.join(FILE))? {
            Some(keys) => keys,
            None => return Ok(None),
        },
        (keys, _) => keys.to_vec(),
    };
    let mut keys = keys.into_iter();
    Ok(keys.next().map(|first| keys.fold(Sealer::new(first), Sealer::accepting)))
}

/// The keys in a file, which is made if it is not there; `None` if it cannot be.
fn kept(path: &Path) -> Result<Option<Vec<Key>>, AppError> {
    if let Err(error) = fs::symlink_metadata(path).or_else(|_| create(path).and_then(|()| fs::metadata(path)))
    {
        tracing::warn!(
            "Cannot create {}: {error}. Cursors, task handles and sessions end with this process. Make state_dir \
             writable, or set sealing_keys.",
            path.display()
        );
        return Ok(None);
    }
    let unusable = |why: &str| {
        configuration_error(format!(
            "The sealing key file {} cannot be used: {why}. Put it right, or delete it to have a new one made; cursors, \
             task handles and sessions that clients have then end",
            path.display()
        ))
    };
    let text =
        tidegate_client::read_regular_text(path, MAX_BYTES).map_err(|error| unusable(&error.to_string()))?;
    if let Some(mode) = open_to_others(path) {
        tracing::warn!(
            "{0} can be read by other users of this machine (mode {mode:o}). It holds sealing keys: run chmod 600 {0}.",
            path.display()
        );
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() || lines.len() > MOST_KEYS {
        return Err(unusable(&format!("it must have 1 to {MOST_KEYS} keys, one in each line")));
    }
    let read = |line: &&str| {
        secrets::register(line);
        key(line).ok_or_else(|| unusable("each line must be a key of 64 hexadecimal digits"))
    };
    lines.iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// Makes the file, whole and readable for its owner alone. If another process has made it meanwhile, that one stays.
fn create(path: &Path) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Under a name of its own first, so that nobody ever reads half a key.
    let draft = path.with_extension(hex(&random::<8>()));
    let made = (|| {
        let mut file = options.open(&draft)?;
        file.write_all(format!("{}\n", hex(&random::<32>())).as_bytes())?;
        file.sync_all()?;
        match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    // It has its other name now, or is of no use to anybody.
    let _ = fs::remove_file(&draft);
    made
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(line: &str) -> Option<Key> {
    if line.len() != 64 || !line.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(line.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(Key::new(bytes))
}

/// The mode of a file that the group or others may read.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o066 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn open_to_others(_path: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;
    use tidegate_protocol::seal::{Binding, digest};

    use super::*;

    /// A state directory that is not there yet, in a directory that goes with the test.
    struct Dir {
        path: PathBuf,
        _around: TempDir,
    }

    impl Dir {
        fn new() -> Dir {
            let around = tempfile::tempdir().unwrap();
            Dir { path: around.path().join("state"), _around: around }
        }

        fn with(content: &str) -> Dir {
            let dir = Dir::new();
            fs::create_dir_all(&dir.path).unwrap();
            fs::write(dir.path.join(FILE), content).unwrap();
            dir
        }

        fn sealer(&self) -> Result<Option<Sealer>, AppError> {
            sealer(&Settings { state_dir: Some(self.path.clone()), ..Settings::default() })
        }

        fn text(&self) -> String {
            fs::read_to_string(self.path.join(FILE)).unwrap()
        }
    }

    fn sealed(sealer: &Sealer) -> String {
        sealer.seal(b"x", &binding(), u64::MAX, random()).unwrap()
    }

    fn opens(sealer: &Sealer, text: &str) -> bool {
        sealer.open(text, &binding(), 0).is_ok()
    }

    fn binding() -> Binding<'static> {
        Binding { issuer: "", subject: "", tenant: "", endpoint: "", method: "m", params: digest([]) }
    }

    #[test]
    fn the_file_is_made_once_and_private() {
        let dir = Dir::new();
        let first = dir.sealer().unwrap().unwrap();
        assert!(opens(&dir.sealer().unwrap().unwrap(), &sealed(&first)));
        assert_eq!(dir.text().trim_end().len(), 64);
        assert_eq!(fs::read_dir(&dir.path).unwrap().count(), 1, "nothing else is left");
        assert_eq!(open_to_others(&dir.path.join(FILE)), None);
        assert!(!opens(&Dir::new().sealer().unwrap().unwrap(), &sealed(&first)), "another has another");
    }

    #[test]
    fn all_that_start_at_once_have_the_same_key() {
        let dir = Dir::new();
        let start = std::sync::Barrier::new(8);
        let sealers: Vec<Sealer> = std::thread::scope(|scope| {
            let begin = || {
                start.wait();
                dir.sealer().unwrap().unwrap()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let text = sealed(&sealers[0]);
        assert!(sealers.iter().all(|sealer| opens(sealer, &text)));
    }

    #[test]
    fn keys_rotate_line_by_line() {
        let (old, new) = ("ab".repeat(32), "CD".repeat(32));
        let text = sealed(&Dir::with(&old).sealer().unwrap().unwrap());
        let both = Dir::with(&format!("{new}\r\n\n  {old}\n")).sealer().unwrap().unwrap();
        let after = Dir::with(&new).sealer().unwrap().unwrap();
        assert!(opens(&both, &text) && opens(&after, &sealed(&both)));
        assert!(!opens(&after, &text));
    }

    #[test]
    fn a_file_that_holds_no_keys_is_refused_and_not_shown() {
        let nine = format!("{}\n", "ab".repeat(32)).repeat(9);
        for wrong in ["", "\n", "hush", &"hush".repeat(16), &"é".repeat(32), &nine, &"ab\n".repeat(2000)] {
            let dir = Dir::with(wrong);
            let error = dir.sealer().unwrap_err().to_string();
            assert!(error.contains("sealing.key cannot be used") && !error.contains("hush"), "{error}");
            assert_eq!(dir.text(), wrong, "it is left as it is");
        }
        let dir = Dir::new();
        fs::create_dir_all(dir.path.join(FILE)).unwrap();
        assert!(dir.sealer().unwrap_err().to_string().contains("cannot be used"));
    }

    #[test]
    fn where_nothing_can_be_kept_the_key_is_of_this_process() {
        assert!(sealer(&Settings::default()).unwrap().is_none());
        let file = Dir::with("");
        let nowhere = file.path.join(FILE).join("below");
        assert!(sealer(&Settings { state_dir: Some(nowhere), ..Settings::default() }).unwrap().is_none());
    }

    #[test]
    fn keys_of_the_configuration_come_first() {
        let dir = Dir::new();
        let keys = |keys: &[&str]| {
            let sealing_keys = keys.iter().map(|key| Key::derive(key)).collect();
            let settings =
                Settings { sealing_keys, state_dir: Some(dir.path.clone()), ..Settings::default() };
            sealer(&settings).unwrap().unwrap()
        };
        let text = sealed(&keys(&["one"]));
        assert!(opens(&keys(&["two", "one"]), &text) && !opens(&keys(&["two"]), &text));
        assert!(!dir.path.exists(), "no file is made that nobody uses");
    }
}
