//! Where other programs keep their servers.

use std::path::{Path, PathBuf};

/// The files in which other programs keep their MCP servers, whether or not they exist, with a label for each: first
/// those of the current directory, then those of the user. No file is named twice, also not through a link, or because the
/// current directory is the home directory.
pub fn well_known_files() -> Vec<(&'static str, PathBuf)> {
    let files = files(Path::new("."), std::env::home_dir().as_deref(), &|name| {
        std::env::var_os(name).map(PathBuf::from)
    });
    once_each(files)
}

/// Whether a file belongs to the current directory rather than to the user: it may have come with a repository of somebody
/// else, so what it names is not started because of a name alone.
pub fn is_project_file(path: &Path) -> bool {
    let files = files(Path::new("."), std::env::home_dir().as_deref(), &|name| {
        std::env::var_os(name).map(PathBuf::from)
    });
    is_of_project(&files, path)
}

fn is_of_project(files: &[(&'static str, PathBuf)], path: &Path) -> bool {
    let is_it = |known: &Path| real(known) == real(path);
    let found = |of_project: bool| {
        files.iter().any(|(label, known)| label.contains(PROJECT) == of_project && is_it(known))
    };
    found(true) && !found(false)
}

/// What the labels of files of the current directory say.
const PROJECT: &str = "this project";

/// The path without links; as it is written, if there is no such file.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

fn files(
    here: &Path,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<(&'static str, PathBuf)> {
    let mut files = vec![
        ("Claude Code, this project", here.join(".mcp.json")),
        ("VS Code, this project", here.join(".vscode/mcp.json")),
        ("VS Code, settings of this project", here.join(".vscode/settings.json")),
        ("Cursor, this project", here.join(".cursor/mcp.json")),
        ("Codex, this project", here.join(".codex/config.toml")),
        ("Gemini CLI, this project", here.join(".gemini/settings.json")),
        ("Zed, this project", here.join(".zed/settings.json")),
    ];
    let Some(home) = home else { return files };
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let xdg = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let settings = if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else if cfg!(windows) {
        variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"))
    } else {
        xdg.clone()
    };
    let zed = if cfg!(windows) { settings.join("Zed") } else { xdg.join("zed") };
    let codex = variable("CODEX_HOME")
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or_else(|| home.join(".codex"));
    files.extend([
        ("Cursor", home.join(".cursor/mcp.json")),
        ("Claude Desktop", settings.join("Claude/claude_desktop_config.json")),
        ("Claude Code", home.join(".claude.json")),
        ("VS Code", settings.join("Code/User/mcp.json")),
        ("VS Code, settings", settings.join("Code/User/settings.json")),
        ("Codex", codex.join("config.toml")),
        ("Gemini CLI", home.join(".gemini/settings.json")),
        ("Windsurf", home.join(".codeium/windsurf/mcp_config.json")),
        ("Zed", zed.join("settings.json")),
    ]);
    files
}

/// The files without those that an earlier path leads to as well.
fn once_each(files: Vec<(&'static str, PathBuf)>) -> Vec<(&'static str, PathBuf)> {
    let mut seen = Vec::new();
    let mut is_new = |path: &Path| {
        let real = real(path);
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    };
    files.into_iter().filter(|(_, path)| is_new(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(files: &[(&str, PathBuf)]) -> Vec<String> {
        files.iter().map(|(_, path)| path.to_string_lossy().replace('\\', "/")).collect()
    }

    #[test]
    fn servers_file_well_known() {
        let found = files(Path::new("/p"), Some(Path::new("/h")), &|_| None);
        let paths = shown(&found);
        for path in [
            "/p/.mcp.json",
            "/p/.vscode/mcp.json",
            "/p/.vscode/settings.json",
            "/p/.cursor/mcp.json",
            "/p/.codex/config.toml",
            "/p/.gemini/settings.json",
            "/p/.zed/settings.json",
            "/h/.cursor/mcp.json",
            "/h/.claude.json",
            "/h/.codex/config.toml",
            "/h/.gemini/settings.json",
            "/h/.codeium/windsurf/mcp_config.json",
        ] {
            assert!(paths.iter().any(|known| known == path), "{path}: {paths:?}");
        }
        for end in ["/Claude/claude_desktop_config.json", "/Code/User/mcp.json", "/Code/User/settings.json"] {
            assert!(paths.iter().any(|path| path.starts_with("/h/") && path.ends_with(end)), "{end}");
        }
        assert_eq!(files(Path::new("."), None, &|_| None).len(), 7, "only those of the project");
        let moved = files(Path::new("/p"), Some(Path::new("/h")), &|name| {
            (name == "CODEX_HOME").then(|| PathBuf::from("/codex"))
        });
        assert!(shown(&moved).contains(&"/codex/config.toml".to_owned()));
    }

    #[test]
    fn servers_file_of_a_project() {
        let away = files(Path::new("/p"), Some(Path::new("/h")), &|_| None);
        for (file, expected) in [
            ("/p/.mcp.json", true),
            ("/p/.vscode/settings.json", true),
            ("/p/.cursor/mcp.json", true),
            ("/h/.cursor/mcp.json", false),
            ("/h/.claude.json", false),
            ("/p/other.json", false),
        ] {
            assert_eq!(is_of_project(&away, Path::new(file)), expected, "{file}");
        }
        // Who is at home finds their own there, and one that only projects have.
        let home = files(Path::new("/h"), Some(Path::new("/h")), &|_| None);
        assert!(!is_of_project(&home, Path::new("/h/.cursor/mcp.json")));
        assert!(is_of_project(&home, Path::new("/h/.mcp.json")));
    }

    #[cfg(not(any(windows, target_os = "macos")))]
    #[test]
    fn servers_file_well_known_on_linux() {
        let found = shown(&files(Path::new("/p"), Some(Path::new("/h")), &|_| None));
        assert!(found.contains(&"/h/.config/Code/User/mcp.json".to_owned()), "{found:?}");
        assert!(found.contains(&"/h/.config/zed/settings.json".to_owned()), "{found:?}");
    }

    #[test]
    fn servers_file_well_known_names_no_file_twice() {
        let own = tempfile::tempdir().unwrap();
        let home = own.path();
        std::fs::create_dir_all(home.join(".cursor")).unwrap();
        std::fs::write(home.join(".cursor/mcp.json"), "{}").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(home.join(".cursor/mcp.json"), home.join(".mcp.json")).unwrap();
        let all = files(home, Some(home), &|_| None);
        let found = once_each(all.clone());
        let cursors = |list: &[(&str, PathBuf)]| {
            list.iter().filter(|(_, path)| path.ends_with(".cursor/mcp.json")).count()
        };
        assert_eq!(cursors(&all), 2);
        // The link comes first, and leads to the same file.
        assert_eq!(cursors(&found), usize::from(cfg!(not(unix))), "{found:?}");
    }
}
