//! A copy of a memory that is in use.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::sqlite::{BUSY, check_ours};
use crate::error::{Code, Fault, Result};

/// How many pages of 4 KiB are copied at a time.
const STEP: i32 = 2_048;
/// The pause before a step that had to wait is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// Copies the memory in one file to another, as it is at one moment, whoever uses it and writes to it meanwhile. The copy
/// is that one file.
///
/// `to` is empty or not there; what is in it is of use only if this returns without a fault. `progress` hears how many
/// bytes of how many were copied, and says whether to go on. Returns how large the copy is. This waits for the disk.
pub fn backup(from: &Path, to: &Path, mut progress: impl FnMut(u64, u64) -> bool) -> Result<u64, Fault> {
    check_ours(from)?;
    // Not for reading only: what is closed last makes the file whole again, if it may.
    let plain = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
    let source = Connection::open_with_flags(from, plain)?;
    source.busy_timeout(BUSY)?;
    // What is read from here on is of one moment: what others write later neither shows nor makes it begin again.
    source.execute_batch("BEGIN")?;
    source.query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
    let page: u32 = source.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    {
        let mut copy = Connection::open_with_flags(to, plain | OpenFlags::SQLITE_OPEN_CREATE)?;
        // What is not finished is thrown away: nothing needs to bring it back.
        copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
        let backup = Backup::new(&source, &mut copy)?;
        let mut waited: Option<Instant> = None;
        loop {
            match backup.step(STEP)? {
                StepResult::Done => break,
                StepResult::More => waited = None,
                _ if waited.get_or_insert_with(Instant::now).elapsed() > BUSY => {
                    return Err(Fault::new(
                        Code::Database,
                        "Another process has locked the memory file for too long; try again",
                    ));
                }
                _ => std::thread::sleep(PAUSE),
            }
            let told = backup.progress();
            let (left, whole) = (told.remaining.max(0) as u64, told.pagecount.max(0) as u64);
            let page = u64::from(page);
            if !progress(whole.saturating_sub(left) * page, whole * page) {
                return Err(Fault::new(Code::InvalidInput, "The backup was cancelled"));
            }
        }
    }
    source.execute_batch("COMMIT")?;
    // The copy says of itself that a second file may stand beside it; none does.
    let copy = Connection::open_with_flags(to, plain)?;
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    drop(copy);
    let kept = File::open(to).and_then(|copy| copy.sync_all().and_then(|()| copy.metadata()));
    let kept =
        kept.map_err(|error| Fault::new(Code::Database, format!("The backup cannot be written: {error}")))?;
    Ok(kept.len())
}
