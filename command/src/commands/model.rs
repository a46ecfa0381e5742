//! `tidegate model`: downloads the model that the memory searches by meaning with.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tidegate::protocol::Json;
use tidegate_memory::{Code, Embedder, Fault, HUGGING_FACE, download};

use super::display::Display;
use super::exit::{self, Exit};
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::output;
use crate::term::style::Paint;

/// Download a model so that the memory can search by meaning.
///
/// It is a static embedding model (a table of vectors) that runs on this machine: no text leaves it. The memory uses it from its
/// next start, unless the configuration names another one.
#[derive(Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct Model {
    /// A model2vec model, as OWNER/NAME.
    #[arg(default_value = "minishlab/potion-base-8M", value_name = "MODEL")]
    name: String,

    /// The URL of Hugging Face, or of a mirror.
    #[arg(long, value_name = "URL", env = "HF_ENDPOINT", default_value = HUGGING_FACE, hide_env_values = true)]
    from: String,

    /// Save it in this folder instead, without using it yet. [default: where the memory finds it]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: Model) -> Result<(), Failure> {
    let short = args.name.rsplit('/').next().unwrap_or_default();
    let usual = tidegate_memory::usual_models().map_err(|error| Failure::usage(error.message()))?;
    let folder = args.folder.clone().unwrap_or_else(|| usual.join(short));
    may_be_replaced(&folder)?;
    // Nothing of it is in the folder before all of it is there, and can be used.
    let partial = beside(&folder)?;
    let downloaded = Interrupt::listen().or(fetch(&args, &partial)).await;
    let installed = downloaded.and_then(|()| install(&partial, &folder));
    if installed.is_err() {
        let _ = std::fs::remove_dir_all(&partial);
    }
    installed?;
    if args.folder.is_none() {
        // The memory looks for one.
        remove_others(&usual, &folder);
    }
    if args.json {
        return output::text(&json!({"model": args.name, "folder": folder}).to_string());
    }
    let next = match args.folder {
        None => "The memory uses it from its next start.".to_owned(),
        Some(_) => format!("To use it, add to tidegate.toml:\n\n[memory.embeddings]\nfolder = {folder:?}"),
    };
    output::text(&format!(
        "{} {} to {}\n{next}",
        Paint::stdout().good("Downloaded"),
        args.name,
        folder.display()
    ))
}

/// Downloads the files, and tries whether they are a model.
async fn fetch(args: &Model, to: &Path) -> Result<(), Failure> {
    let display = Display::new(0);
    display.waiting(&format!("Connecting to {}", args.from));
    let done = download(&args.from, &args.name, to, |file, there, whole| {
        display.progress(&Json::from(json!({"progress": there, "total": whole, "message": file})));
    })
    .await;
    display.clear();
    done.map_err(|fault| failure(&fault))?;
    Embedder::folder(to).map(drop).map_err(|fault| failure(&fault))
}

/// Where the files are while some are still missing.
fn beside(folder: &Path) -> Result<PathBuf, Failure> {
    let name = folder.file_name().ok_or_else(|| Failure::usage("--folder must have a name"))?;
    let mut name = name.to_owned();
    name.push(".part");
    Ok(folder.with_file_name(name))
}

/// What is no model is not ours to replace.
fn may_be_replaced(folder: &Path) -> Result<(), Failure> {
    let Ok(there) = std::fs::read_dir(folder) else { return Ok(()) };
    let is_strange = |name: &str| !tidegate_memory::MODEL_FILES.contains(&name);
    match there.flatten().find(|entry| entry.file_name().to_str().is_none_or(is_strange)) {
        Some(entry) => Err(Failure::usage(format!(
            "{} contains {:?}, which is not part of a model: choose another folder",
            folder.display(),
            entry.file_name()
        ))),
        None => Ok(()),
    }
}

fn install(partial: &Path, folder: &Path) -> Result<(), Failure> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::rename(partial, folder)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", folder.display())))
}

fn remove_others(usual: &Path, kept: &Path) {
    for entry in std::fs::read_dir(usual).into_iter().flatten().flatten() {
        let path = entry.path();
        if path != kept && may_be_replaced(&path).is_ok() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn failure(fault: &Fault) -> Failure {
    let exit = if fault.code == Code::Outside { Exit::Unavailable } else { Exit::Usage };
    Failure::new(exit, &fault.message)
}
