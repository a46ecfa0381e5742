//! `tidegate memory`: exports, imports and copies of a memory, however large it is.

mod atomic_file;
mod backup;

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Stdout, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use tidegate::protocol::Json;
use tidegate_config::Config;
use tidegate_memory::{Code, Counts, Fault, Imported, MemorySettings, MemoryStore, Store, tenant_key};

use super::display::Display;
use super::exit::{self, Exit};
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::{configuration, output};
use crate::term::clean;
use crate::term::style::Paint;
use atomic_file::{AtomicFile, not_the_memory};
use backup::Backup;

/// Back up, export or import the memory.
///
/// Works on the database directly, whether or not it is being served, so there is no size limit.
#[derive(Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Backup(Backup),
    Export(Export),
    Import(Import),
}

/// Export what is known to a file (JSONL).
#[derive(Args)]
#[command(after_help = exit::HELP)]
struct Export {
    /// The file to write; - for standard output.
    #[arg(default_value = "-")]
    file: PathBuf,

    /// Include the history: all versions of the graph, of documents and of agents.
    #[arg(long)]
    history: bool,

    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    tenant_args: TenantArgs,

    #[command(flatten)]
    store_args: StoreArgs,
}

/// Import a file of tidegate memory export, or of server-memory.
///
/// Lines that cannot be imported are skipped and reported. Importing a file twice changes nothing. A file with history can only
/// be imported into an empty memory.
#[derive(Args)]
#[command(after_help = exit::HELP)]
struct Import {
    /// The file to read; - for standard input.
    file: PathBuf,

    #[command(flatten)]
    tenant_args: TenantArgs,

    #[command(flatten)]
    store_args: StoreArgs,
}

/// Whose part of the memory is meant.
#[derive(Args)]
struct TenantArgs {
    /// The tenant. [default: the memory of users without a tenant]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

/// Which memory is meant.
#[derive(Args)]
struct StoreArgs {
    /// The configuration that says where the memory is. [default: the one that tidegate serve uses]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The memory itself, instead of the one of the configuration: a file, or postgres://...
    #[arg(long, value_name = "FILE|URL", conflicts_with = "config")]
    store: Option<String>,

    /// Print the result as JSON; not when writing to standard output.
    #[arg(long)]
    json: bool,
}

impl Memory {
    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        match &self.action {
            Action::Backup(backup) => backup.store_args.json,
            Action::Export(export) => export.store_args.json,
            Action::Import(import) => import.store_args.json,
        }
    }
}

pub(crate) async fn run(memory: Memory) -> Result<(), Failure> {
    match memory.action {
        Action::Backup(args) => backup::run(args).await,
        Action::Export(args) => export(args).await,
        Action::Import(args) => import(args).await,
    }
}

async fn export(args: Export) -> Result<(), Failure> {
    let location = args.store_args.existing()?;
    if let MemoryStore::File(memory) = &location {
        not_the_memory(&args.file, memory)?;
    }
    // A device or a pipe stays what it is, and a directory is refused for what it is.
    if !args.force && !is_standard(&args.file) && args.file.is_file() {
        return Err(Failure::usage(format!("{} already exists", args.file.display()))
            .advise("Choose another file, or overwrite it with --force."));
    }
    let store = open(&location)?;
    let exported = export_from(&store, &args).await;
    store.close().await;
    exported
}

async fn export_from(store: &Store, args: &Export) -> Result<(), Failure> {
    let memory = store.of(&tenant_key(args.tenant_args.tenant.as_deref()));
    let display = Display::new(0);
    display.waiting("Exporting the memory");
    let interrupt = Interrupt::listen();
    if is_standard(&args.file) {
        let written = memory.export(PipedStdout(std::io::stdout()), args.history);
        let written = interrupt.or(async { written.await.map_err(|fault| failure(&fault)) }).await;
        display.clear();
        return written.map(drop);
    }
    let partial = AtomicFile::new(&args.file)?;
    let written = memory.export(partial.open()?, args.history);
    let written = interrupt.or(async { written.await.map_err(|fault| failure(&fault)) }).await;
    display.clear();
    let counts = written.and_then(|counts| partial.finish().map(|()| counts))?;
    let file = args.file.display().to_string();
    if args.store_args.json {
        let mut told = counts.to_json(args.history);
        told["file"] = file.into();
        return output::text(&told.to_string());
    }
    let what = shown(&counts, args.history);
    output::text(&format!("{} {what} to {file}", Paint::stdout().good("Exported")))
}

async fn import(args: Import) -> Result<(), Failure> {
    let display = Display::new(0);
    let from: Box<dyn Read + Send> = match is_standard(&args.file) {
        true => Box::new(std::io::stdin()),
        false => Box::new(ProgressReader::open(&args.file, display.clone())?),
    };
    let store = open(&args.store_args.location()?)?;
    let memory = store.of(&tenant_key(args.tenant_args.tenant.as_deref())).by("tidegate memory");
    display.waiting("Importing the file");
    let imported = memory.import(BufReader::new(from));
    let imported = Interrupt::listen().or(async { imported.await.map_err(|fault| failure(&fault)) }).await;
    display.clear();
    store.close().await;
    let Imported { counts, history, skipped, problems, .. } = imported?;
    if args.store_args.json {
        let mut told = counts.to_json(history);
        told["skipped"] = skipped.into();
        told["problems"] = json!(problems);
        return output::text(&told.to_string());
    }
    for one in &problems {
        output::note(&format!("note: line {}: {}", one.line, clean::line(&one.problem)));
    }
    match skipped - problems.len() {
        0 => {}
        more => output::note(&format!("note: and {more} more lines were skipped")),
    }
    let left_out = match skipped {
        0 => String::new(),
        skipped => format!("; skipped {}", counted(skipped, "line", "lines")),
    };
    output::text(&format!("{} {}{left_out}", Paint::stdout().good("Imported"), shown(&counts, history)))
}

impl StoreArgs {
    /// Where the memory is, which must be there.
    fn existing(&self) -> Result<MemoryStore, Failure> {
        let location = self.location()?;
        match &location {
            MemoryStore::File(file) if !file.is_file() => {
                Err(Failure::usage(format!("there is no memory at {}", file.display())))
            }
            _ => Ok(location),
        }
    }

    /// Where the memory is.
    fn location(&self) -> Result<MemoryStore, Failure> {
        if let Some(store) = &self.store {
            return Ok(match store.split_once("://") {
                Some(_) => MemoryStore::Postgres(store.clone()),
                None => MemoryStore::File(store.into()),
            });
        }
        let settings = match Config::find(self.config.as_deref()) {
            None => MemorySettings::default(),
            Some(file) => {
                let settings = configuration::load_unserved(&file)?;
                let told = settings.servers.iter().filter_map(|server| server.builtin.as_ref());
                let memory = told.filter_map(|told| told.get::<MemorySettings>()).next().cloned();
                memory.ok_or_else(|| {
                    Failure::usage(format!("{} has no memory server", file.display())).advise(
                        "Choose a memory with --store FILE, or add one: tidegate add memory --builtin memory.",
                    )
                })?
            }
        };
        settings.place().map_err(|error| Failure::usage(error.message()))
    }
}

fn open(location: &MemoryStore) -> Result<Store, Failure> {
    let store = location.open().map_err(|error| Failure::new(Exit::Unavailable, error.message()))?;
    // How many tenants there may be is for those who call; whoever is here has the file.
    store.limit_tenants(usize::MAX);
    Ok(store)
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn failure(fault: &Fault) -> Failure {
    let exit = if fault.code == Code::Database { Exit::Unavailable } else { Exit::Usage };
    Failure::new(exit, &fault.message)
}

fn shown(counts: &Counts, history: bool) -> String {
    let mut parts = vec![
        counted(counts.entities, "entity", "entities"),
        counted(counts.observations, "observation", "observations"),
        counted(counts.relations, "relation", "relations"),
    ];
    if counts.properties > 0 {
        parts.insert(2, counted(counts.properties, "property", "properties"));
    }
    if history {
        parts.push(counted(counts.documents, "document", "documents"));
        parts.push(counted(counts.agents, "agent", "agents"));
        parts.push(counted(counts.changes, "change", "changes"));
    }
    let last = parts.pop().unwrap_or_default();
    format!("{} and {last}", parts.join(", "))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Standard output. Whoever reads may have seen enough, as `head` does.
struct PipedStdout(Stdout);

impl Write for PipedStdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// After how many bytes progress is shown again.
const STEP: u64 = 256 * 1024;

/// A file of which is shown how far it was read.
struct ProgressReader {
    file: File,
    display: Display,
    whole: u64,
    read: u64,
    shown: u64,
}

impl ProgressReader {
    fn open(path: &Path, display: Display) -> Result<ProgressReader, Failure> {
        let cannot = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(cannot)?;
        let whole = file.metadata().map_err(cannot)?.len();
        Ok(ProgressReader { file, display, whole, read: 0, shown: 0 })
    }
}

impl Read for ProgressReader {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(bytes)?;
        self.read += count as u64;
        if self.read - self.shown >= STEP {
            self.shown = self.read;
            let params = json!({"progress": self.read, "total": self.whole, "message": "importing"});
            self.display.progress(&Json::from(params));
        }
        Ok(count)
    }
}
