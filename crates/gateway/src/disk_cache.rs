//! Last known lists on disk, so that a server that is down at the start still shows what it offers, and nobody has to wait
//! for one that is starting.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use sha2::{Digest, Sha256};
use tidegate_config::{ServerSettings, Source};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Limits, Object};
use tidegate_service::budget::MAX_LISTS;

use crate::catalog::{About, Catalog, Entry, Part};
use crate::kind::Kind;
use crate::mount::Mount;

/// Most that is read back.
const MAX_BYTES: u64 = 2 * MAX_LISTS as u64;

/// Under which name the file holds what the server says about itself.
const ABOUT: &str = "about";

/// What a server listed the last time; nothing if that is not known.
pub(crate) fn load(dir: Option<&Path>, settings: &ServerSettings) -> Catalog {
    let Some(path) = dir.and_then(|dir| path(dir, settings)) else { return Catalog::default() };
    match read(&path) {
        Ok(catalog) => catalog,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Catalog::default(),
        Err(error) => {
            tracing::warn!(server = settings.name, %error, "cannot use the cached lists");
            Catalog::default()
        }
    }
}

/// How many tools a server offered when it was last asked; `None` if that is not known.
pub fn kept_tools(dir: Option<&Path>, settings: &ServerSettings) -> Option<usize> {
    let catalog = read(&path(dir?, settings)?).ok()?;
    let tools = catalog.part(Kind::Tools)?;
    Some(tools.entries.iter().filter(|entry| settings.offers(&entry.key)).count())
}

fn read(path: &Path) -> std::io::Result<Catalog> {
    let text = tidegate_client::read_regular_text(path, MAX_BYTES)?;
    let limits = Limits { max_depth: 127, max_bytes: MAX_BYTES as usize };
    let all = Object::parse(text, &limits).map_err(std::io::Error::other)?;
    let mut catalog = Catalog::default();
    for kind in Kind::ALL {
        let Some(entries) = all.json(kind.member()).and_then(|list| list.elements()) else { continue };
        let entries = entries.iter().filter_map(|definition| Entry::read(kind, definition)).collect();
        catalog.parts[kind.index()] = Some(Part::kept(entries));
    }
    catalog.about = all.object(ABOUT).and_then(|about| {
        let capabilities = Json::trusted(bytestring::ByteString::from(about.json("capabilities")?.as_str()));
        Some(About { capabilities, instructions: about.str("instructions").map(|text| text.into_owned()) })
    });
    Ok(catalog)
}

/// Keeps what a server lists now, in a task of its own.
pub(crate) fn save(dir: Option<PathBuf>, mount: &Arc<Mount>) {
    let Some(path) = dir.and_then(|dir| path(&dir, &mount.settings)) else { return };
    let mount = mount.clone();
    tokio::task::spawn_blocking(move || {
        // One after the other, and what is written is what is known then: whoever comes last writes the latest.
        let _turn = mount.saving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write(&path, &mount.catalog()) {
            tracing::warn!(server = mount.name(), %error, "cannot cache the server's lists");
        }
    });
}

fn write(path: &Path, catalog: &Catalog) -> std::io::Result<()> {
    let mut text = String::from("{");
    for kind in Kind::ALL {
        let Some(part) = catalog.part(kind) else { continue };
        if text.len() > 1 {
            text.push(',');
        }
        let definitions: Vec<Json> = part.entries.iter().map(|entry| entry.definition.clone()).collect();
        text.push_str(&format!("{:?}:{}", kind.member(), Json::array(&definitions)));
    }
    if let Some(about) = &catalog.about {
        let mut said = ObjectWriter::new();
        said.json("capabilities", &about.capabilities);
        if let Some(instructions) = &about.instructions {
            said.str("instructions", instructions);
        }
        let comma = if text.len() > 1 { "," } else { "" };
        text.push_str(&format!("{comma}{ABOUT:?}:{}", said.finish()));
    }
    text.push('}');
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    // Never half a file, whoever writes at the same time.
    let draft = path.with_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, path)
}

/// A file for each server and what it is, so that a name that means another server now shows nothing of the old one.
fn path(dir: &Path, settings: &ServerSettings) -> Option<PathBuf> {
    if let Source::Target(tidegate_client::Target::Local(_)) = &settings.source {
        return None;
    }
    // How it is reached, without its secrets: a digest of those would be something to check guesses against.
    let digest = Sha256::digest(format!("{}\0{}", settings.name, settings.shown));
    let mark: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(dir.join("lists").join(format!("{}-{mark}.json", settings.name)))
}
