//! `cargo xtask bench --quality`: brings a corpus and a static model that others made, and hands over to the example
//! `quality` of the memory server.
//!
//! The corpus is the text of the RFCs in Debian's packages doc-rfc-std and doc-rfc-std-proposed, which are in the part of
//! Debian that is called non-free. Nothing is installed: the packages are unpacked below `target`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{servers, shell};

const POOL: &str = "http://deb.debian.org/debian/pool/non-free/d/doc-rfc";
/// The packages with their checksums (SHA-256).
const CORPUS: [(&str, &str); 2] = [
    ("doc-rfc-std_20230121-1_all.deb", "b9bfead1a230da198ab96ce70cc9fbb64dc600d914c1504eeb4c19e29f95734b"),
    (
        "doc-rfc-std-proposed_20230121-1_all.deb",
        "b34f60b4bee98891524a2c2508f3d4dcb1e1468a2bd26e0a5f5aecf95806eea0",
    ),
];
/// A Python package that has the files of a static model inside, and where those are.
const MODEL: &str = "wordllama==0.4.0.post1";
const FILES: [(&str, &str); 2] = [
    ("wordllama/tokenizers/l2_supercat_tokenizer_config.json", "tokenizer.json"),
    ("wordllama/weights/l2_supercat_256.safetensors", "model.safetensors"),
];

/// Brings what is missing and runs the benchmark.
pub(crate) fn run() -> Result<()> {
    let dir = shell::target_dir()?.join("quality");
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let corpus = dir.join("rfc");
    // Written last: then all of it is there.
    let stamp = corpus.join("unpacked");
    if !stamp.exists() {
        for (package, checksum) in CORPUS {
            unpack(&dir, &corpus, package, checksum)?;
        }
        fs::write(&stamp, "").with_context(|| format!("writing {}", stamp.display()))?;
    }
    let model = model(&dir)?;
    let mut command = shell::cargo(&[
        "run",
        "--profile",
        "dist",
        "--package",
        "tidegate-memory",
        "--example",
        "quality",
        "--",
    ]);
    command.arg(corpus).arg(model).arg(&dir);
    shell::check(&mut command)
}

/// Brings the model, in a folder as the memory reads it.
fn model(dir: &Path) -> Result<PathBuf> {
    let packages = servers::installed(&dir.join("python"), MODEL, FILES[0].0)?;
    let model = dir.join("wordllama-256");
    fs::create_dir_all(&model).with_context(|| format!("creating {}", model.display()))?;
    for (from, to) in FILES {
        fs::copy(packages.join(from), model.join(to)).with_context(|| format!("copying {from}"))?;
    }
    fs::write(model.join("config.json"), "{\"normalize\": true}")?;
    Ok(model)
}

/// Unpacks the texts and what is said about them.
fn unpack(dir: &Path, corpus: &Path, package: &str, checksum: &str) -> Result<()> {
    for program in ["curl", "sha256sum", "dpkg", "tar", "gzip"] {
        if !shell::installed(program) {
            bail!("{program} was not found in the PATH; it is needed to unpack Debian's RFCs");
        }
    }
    println!("bringing   {package}");
    fs::create_dir_all(corpus).with_context(|| format!("creating {}", corpus.display()))?;
    let file = dir.join(package);
    shell::check(Command::new("curl").args(["-sSf", "-o"]).arg(&file).arg(format!("{POOL}/{package}")))?;
    let sum = shell::output(Command::new("sha256sum").arg(&file))?;
    if !sum.starts_with(checksum) {
        bail!("{package} is not what was expected: its checksum is {sum}");
    }
    let unpack = "dpkg --fsys-tarfile \"$1\" | tar x -C \"$2\" --wildcards '*/rfc[0-9]*.txt.gz' '*/rfc[0-9]*.json' \
                  && find \"$2\" -name '*.txt.gz' -type f -exec gzip -df {} +";
    shell::check(Command::new("sh").args(["-c", unpack, "sh"]).arg(&file).arg(corpus))?;
    fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))
}
