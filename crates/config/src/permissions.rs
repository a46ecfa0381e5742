//! Who else on this machine can read a file.

use std::path::Path;

/// What to say about a file that may hold secrets and that others can read.
pub(crate) fn note(path: &Path) -> Option<String> {
    let mode = open_to_others(path)?;
    Some(format!(
        "{0} can be read by other users of this machine (mode {mode:o}). If it holds secrets, run chmod 600 {0}.",
        path.display()
    ))
}

/// What to say about the private key of a certificate that others can read.
pub(crate) fn note_on_private_key(path: &Path) -> Option<String> {
    let mode = open_to_others(path)?;
    Some(format!(
        "The private key {0} can be read by other users of this machine (mode {mode:o}), who could pretend to be the \
         gateway. Run chmod 600 {0}.",
        path.display()
    ))
}

/// What to say about a configuration that holds secrets, the fields that hold them, if others can read it.
pub(crate) fn note_on_secrets(path: &Path, fields: &[String]) -> Option<String> {
    const SHOWN: usize = 3;
    let mode = open_to_others(path).filter(|_| !fields.is_empty())?;
    let mut shown = fields.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if fields.len() > SHOWN {
        shown.push_str(&format!(" and {} more", fields.len() - SHOWN));
    }
    Some(format!(
        "{0} holds secrets in plain text ({shown}) and can be read by other users of this machine (mode {mode:o}). \
         Run chmod 600 {0}.",
        path.display()
    ))
}

/// The mode of a file that the group or others may read.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o044 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn open_to_others(_path: &Path) -> Option<u32> {
    None
}
