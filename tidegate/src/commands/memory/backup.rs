//! `tidegate memory backup`: a copy of the memory while it is in use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;
use tidegate::protocol::Json;
use tidegate_config::MemoryStore;

use super::begun::{Begun, not_the_memory};
use super::{Which, failure};
use crate::commands::display::Display;
use crate::commands::exit;
use crate::commands::failure::Failure;
use crate::commands::interrupt::Interrupt;
use crate::commands::output;
use crate::term::style::Paint;

/// Copy the whole memory to another file, also while it is in use.
///
/// The copy has everything of everybody at one moment, and is a memory itself: put it in the place of the other to have
/// that again.
#[derive(Args)]
#[command(after_help = exit::HELP)]
pub(super) struct Backup {
    /// The file to write.
    file: PathBuf,

    /// Write it even if there is a file already, which is lost then.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    pub(super) which: Which,
}

pub(super) async fn run(args: Backup) -> Result<(), Failure> {
    let MemoryStore::File(memory) = args.which.existing()? else {
        return Err(Failure::usage("the memory is kept in a PostgreSQL database, which copies it itself")
            .next("Use pg_dump, as for any other database, or: tidegate memory export --history FILE."));
    };
    check(&args, &memory)?;
    let begun = Begun::new(&args.file)?;
    // Made here, so that nobody else can read it.
    drop(begun.open()?);
    let (display, interrupt, wanted) =
        (Display::new(0), Interrupt::listen(), Arc::new(AtomicBool::new(true)));
    display.waiting("Copying the memory");
    let (to, shown, goes_on) = (begun.to.clone(), display.clone(), wanted.clone());
    let copying = tokio::task::spawn_blocking(move || {
        tidegate_memory::backup(&memory, &to, |copied, whole| {
            let params = json!({"progress": copied, "total": whole, "message": "copying the memory"});
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
    let copied = copied?.map_err(|error| Failure::usage(format!("the copy failed: {error}")))?;
    let bytes = copied.map_err(|fault| failure(&fault))?;
    begun.finish()?;
    let file = args.file.display().to_string();
    if args.which.json {
        return output::text(&json!({"file": file, "bytes": bytes}).to_string());
    }
    output::text(&format!("{} the memory to {file} ({bytes} bytes)", Paint::stdout().good("Copied")))
}

/// Whether the copy may stand there.
fn check(args: &Backup, memory: &Path) -> Result<(), Failure> {
    let file = &args.file;
    not_the_memory(file, memory)?;
    let Ok(there) = file.symlink_metadata() else { return Ok(()) };
    if !args.force || there.is_dir() {
        return Err(Failure::usage(format!("{} is there already", file.display()))
            .next("Name another file, or write over it with --force."));
    }
    if !file.metadata().is_ok_and(|there| there.is_file()) {
        return Err(Failure::usage(format!("{} is no plain file: name another one", file.display())));
    }
    let mut beside = file.clone().into_os_string();
    beside.push("-wal");
    if Path::new(&beside).exists() {
        return Err(Failure::usage(format!(
            "{} is a memory that is in use, or was not ended well: name another file",
            file.display()
        )));
    }
    Ok(())
}
