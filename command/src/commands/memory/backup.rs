//! `tidegate memory backup`: a copy of the memory while it is in use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;
use tidegate::protocol::Json;
use tidegate_memory::MemoryStore;

use super::atomic_file::{AtomicFile, not_the_memory};
use super::{StoreArgs, failure};
use crate::commands::display::Display;
use crate::commands::exit;
use crate::commands::failure::Failure;
use crate::commands::interrupt::Interrupt;
use crate::commands::output;
use crate::term::style::Paint;

/// Back up the whole memory to a file, even while it is in use.
///
/// The backup is a consistent snapshot of all tenants, and a memory itself: to restore it, put it in place of the original.
#[derive(Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Backup {
    /// The file to write.
    file: PathBuf,

    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    pub(super) store_args: StoreArgs,
}

pub(super) async fn run(args: Backup) -> Result<(), Failure> {
    let MemoryStore::File(memory) = args.store_args.existing()? else {
        return Err(Failure::usage("the memory is in a PostgreSQL database, which has its own backups")
            .advise("Use pg_dump, or: tidegate memory export --history FILE."));
    };
    check(&args, &memory)?;
    let partial = AtomicFile::new(&args.file)?;
    // Made here, so that nobody else can read it.
    drop(partial.open()?);
    let (display, interrupt, wanted) =
        (Display::new(0), Interrupt::listen(), Arc::new(AtomicBool::new(true)));
    display.waiting("Backing up the memory");
    let (to, shown, goes_on) = (partial.to.clone(), display.clone(), wanted.clone());
    let copying = tokio::task::spawn_blocking(move || {
        tidegate_memory::backup(&memory, &to, |copied, whole| {
            let params = json!({"progress": copied, "total": whole, "message": "backing up"});
            shown.progress(&Json::from(params));
            goes_on.load(Ordering::Relaxed)
        })
    });
    let mut copying = std::pin::pin!(copying);
    let copied = interrupt.or(async { Ok((&mut copying).await) }).await;
    if copied.is_err() {
        // It ends within a step, and what it wrote is removed after that.
        wanted.store(false, Ordering::Relaxed);
        let _ = copying.await;
    }
    display.clear();
    let copied = copied?.map_err(|error| Failure::usage(format!("the backup failed: {error}")))?;
    let bytes = copied.map_err(|fault| failure(&fault))?;
    partial.finish()?;
    let file = args.file.display().to_string();
    if args.store_args.json {
        return output::text(&json!({"file": file, "bytes": bytes}).to_string());
    }
    output::text(&format!("{} the memory to {file} ({bytes} bytes)", Paint::stdout().good("Backed up")))
}

/// Whether the copy may stand there.
fn check(args: &Backup, memory: &Path) -> Result<(), Failure> {
    let file = &args.file;
    not_the_memory(file, memory)?;
    let Ok(there) = file.symlink_metadata() else { return Ok(()) };
    if !args.force || there.is_dir() {
        return Err(Failure::usage(format!("{} already exists", file.display()))
            .advise("Choose another file, or overwrite it with --force."));
    }
    if !file.metadata().is_ok_and(|there| there.is_file()) {
        return Err(Failure::usage(format!("{} is not a regular file: choose another one", file.display())));
    }
    let mut beside = file.clone().into_os_string();
    beside.push("-wal");
    if Path::new(&beside).exists() {
        return Err(Failure::usage(format!(
            "{} is a memory that is in use or was not closed properly: choose another file",
            file.display()
        )));
    }
    Ok(())
}
