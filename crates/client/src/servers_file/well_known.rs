//! Where other programs keep their servers.

use std::path::{Path, PathBuf};

/// The files in which other programs keep their MCP servers, whether or not they exist, with a label for each: first
/// those of the current directory, then those of the user.
pub fn well_known_files() -> Vec<(&'static str, PathBuf)> {
    files(Path::new("."), std::env::home_dir().as_deref(), &|name| std::env::var_os(name).map(PathBuf::from))
}

fn files(
    here: &Path,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<(&'static str, PathBuf)> {
    let mut files = vec![
        ("Claude Code, this project", here.join(".mcp.json")),
        ("VS Code, this project", here.join(".vscode/mcp.json")),
        ("Cursor, this project", here.join(".cursor/mcp.json")),
    ];
    let Some(home) = home else { return files };
    let settings = if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else if cfg!(windows) {
        variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
    } else {
        variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(".config"))
    };
    files.push(("Cursor", home.join(".cursor/mcp.json")));
    files.push(("Claude Desktop", settings.join("Claude/claude_desktop_config.json")));
    files.push(("Claude Code", home.join(".claude.json")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_file_well_known() {
        let found = files(Path::new("/p"), Some(Path::new("/h")), &|_| None);
        let paths: Vec<_> = found.iter().map(|(_, path)| path.to_string_lossy().replace('\\', "/")).collect();
        assert_eq!(
            paths[..4],
            ["/p/.mcp.json", "/p/.vscode/mcp.json", "/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]
        );
        assert!(
            paths[4].starts_with("/h/") && paths[4].ends_with("/Claude/claude_desktop_config.json"),
            "{paths:?}"
        );
        assert_eq!(paths[5], "/h/.claude.json");
        assert_eq!(files(Path::new("."), None, &|_| None).len(), 3);
    }
}
