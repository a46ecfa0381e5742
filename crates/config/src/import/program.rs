//! The programs whose files are known.

use std::path::PathBuf;

use tidegate_client::{Description, ServersFile, ServersFileError, well_known_files};

/// A program whose files are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Program {
    /// Claude Code and Claude Desktop.
    Claude,
    /// Claude Code: this project, and the user.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex: this project, and the user.
    Codex,
    /// Cursor: this project, and the user.
    Cursor,
    /// Gemini CLI: this project, and the user.
    Gemini,
    /// VS Code: this project, and the user.
    VsCode,
    /// Windsurf.
    Windsurf,
    /// Zed: this project, and the user.
    Zed,
}

/// A file of another program that has servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProgramFile {
    /// The program.
    pub program: Program,
    /// The file.
    pub file: PathBuf,
    /// How many servers it has, or why it cannot be read.
    pub servers: Result<usize, String>,
}

/// A server that was imported already, and where it came from.
pub(super) struct ImportedServer {
    pub(super) file: PathBuf,
    pub(super) description: Description,
}

impl Program {
    /// All of them, in the order of their names.
    pub const ALL: &'static [Program] = &[
        Program::Claude,
        Program::ClaudeCode,
        Program::ClaudeDesktop,
        Program::Codex,
        Program::Cursor,
        Program::Gemini,
        Program::VsCode,
        Program::Windsurf,
        Program::Zed,
    ];

    /// The program of this name, in any case.
    pub fn named(name: &str) -> Option<Program> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "vs-code" | "code" => Some(Program::VsCode),
            "gemini-cli" => Some(Program::Gemini),
            _ => Program::ALL.iter().copied().find(|program| program.name() == name),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Program::Claude => "claude",
            Program::ClaudeCode => "claude-code",
            Program::ClaudeDesktop => "claude-desktop",
            Program::Codex => "codex",
            Program::Cursor => "cursor",
            Program::Gemini => "gemini",
            Program::VsCode => "vscode",
            Program::Windsurf => "windsurf",
            Program::Zed => "zed",
        }
    }

    /// What the labels of its files begin with.
    fn label(self) -> &'static str {
        match self {
            Program::Claude => "Claude",
            Program::ClaudeCode => "Claude Code",
            Program::ClaudeDesktop => "Claude Desktop",
            Program::Codex => "Codex",
            Program::Cursor => "Cursor",
            Program::Gemini => "Gemini CLI",
            Program::VsCode => "VS Code",
            Program::Windsurf => "Windsurf",
            Program::Zed => "Zed",
        }
    }

    /// Its files, whether or not they exist, each once.
    pub(super) fn files(self) -> Vec<(&'static str, PathBuf)> {
        well_known_files().into_iter().filter(|(label, _)| label.starts_with(self.label())).collect()
    }
}

/// The files of all programs that exist and have servers, or cannot be read.
pub fn program_files() -> Vec<ProgramFile> {
    let owner = |label: &str| {
        let owners = Program::ALL.iter().filter(|program| **program != Program::Claude);
        owners.copied().find(|program| label.starts_with(program.label()))
    };
    let file_with_servers = |(label, file): (&str, PathBuf)| {
        let servers = match ServersFile::load(&file) {
            Ok(servers) if servers.names().len() == 0 => return None,
            Ok(servers) => Ok(servers.names().len()),
            Err(ServersFileError::NoServers { .. }) => return None,
            Err(error) => Err(error.to_string()),
        };
        Some(ProgramFile { program: owner(label)?, file, servers })
    };
    well_known_files().into_iter().filter(|(_, file)| file.is_file()).filter_map(file_with_servers).collect()
}
