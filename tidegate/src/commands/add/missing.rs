//! Which variables a server needs that are not set.

use std::collections::BTreeSet;
use std::path::Path;

use tidegate_client::{parse_env_file, read_regular_text};
use tidegate_config::ServerEntry;

use crate::commands::configuration;

/// No `.env` is larger.
const MAX_BYTES: u64 = 1024 * 1024;

/// The variables that the entry refers to and that are set neither in the environment nor in the `.env` beside the
/// configuration.
pub(super) fn variables(entry: &ServerEntry, config: &Path) -> Vec<String> {
    let texts = [&entry.command, &entry.cwd, &entry.url, &entry.env_file].into_iter().flatten();
    let texts = texts.chain(&entry.args).chain(entry.env.values()).chain(entry.headers.values());
    let wanted: BTreeSet<&str> = texts.flat_map(|text| references(text)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let beside = read_regular_text(&config.with_file_name(".env"), MAX_BYTES).ok();
    let beside = beside.and_then(|text| parse_env_file(&text).ok()).unwrap_or_default();
    let is_set = |name: &str| configuration::environment(name).is_some() || beside.contains_key(name);
    wanted.into_iter().filter(|name| !is_set(name)).map(str::to_owned).collect()
}

/// The names in `${NAME}` and `${env:NAME}`; not `${NAME:-default}`, whatever the default refers to, `${file:/path}` and `$${`.
fn references(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let is_escaped = rest[..at].ends_with('$');
        rest = &rest[at + 2..];
        let Some(end) = closing(rest) else { break };
        let inner = &rest[..end];
        let name = inner.strip_prefix("env:").unwrap_or(inner);
        if !is_escaped && !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            names.push(name);
        }
        rest = &rest[end..];
    }
    names
}

/// Where the brace is that closes a reference whose beginning was read.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_without_a_default_are_needed() {
        assert_eq!(references("Bearer ${A} ${env:B}${C:-x} ${file:/run/d} $${E} ${F:-${G}} ${"), ["A", "B"]);
    }
}
