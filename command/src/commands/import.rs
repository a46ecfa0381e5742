//! `tidegate import`: the servers of another program for the gateway.

use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_config::import::{ImportSettings, Imported, Origin, ProgramFile, import, program_files};
use tidegate_config::missing_note;

use super::failure::Failure;
use super::{configuration, output};
use crate::term::clean;
use crate::term::style::Paint;
use crate::term::table::Table;

/// Import the servers of another program into the gateway's configuration.
///
/// Without an argument, lists the programs that have MCP servers on this machine. The other program's files are not
/// changed. Tidegate itself is skipped.
#[derive(Args)]
pub(crate) struct Import {
    /// claude (claude-code and claude-desktop), codex, cursor, gemini, vscode, windsurf, zed, or a file of one of these.
    #[arg(value_name = "PROGRAM|FILE")]
    from: Option<String>,

    /// The configuration to change. [default: ./tidegate.toml if it exists, else the user's]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Replace servers of the same name.
    #[arg(long)]
    replace: bool,

    /// Only show what would be imported.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Import) -> Result<(), Failure> {
    let Some(from) = &args.from else { return output::text(&listed(&program_files())) };
    let path = configuration::changeable(args.config.as_deref())?;
    let first = args.config.is_none() && !path.exists();
    let options = ImportSettings { replace: args.replace, dry_run: args.dry_run };
    let imported = import(&path, &Origin::parse(from), options, &configuration::environment)?;
    for note in &imported.notes {
        output::note(&format!("note: {}", clean::line(note)));
    }
    for (server, variables) in &imported.missing {
        output::note(&format!("note: {}", clean::line(&missing_note(server, variables, &path))));
    }
    if first && path.exists() {
        let added: Vec<_> = imported.servers.iter().map(|(name, entry)| (name.as_str(), entry)).collect();
        configuration::keep_memory(&path, &added)?;
    }
    output::text(&shown(&imported, &path, args.dry_run))
}

/// What could be imported.
fn listed(found: &[ProgramFile]) -> String {
    let paint = Paint::stdout();
    if found.is_empty() {
        return "No MCP servers of other programs were found. Import a file with tidegate import FILE."
            .to_owned();
    }
    let mut table = Table::new(&["PROGRAM", "SERVERS", "FILE"]);
    for found in found {
        let file = found.file.display();
        let (count, file) = match &found.servers {
            Ok(count) => (count.to_string(), file.to_string()),
            Err(error) => ("-".to_owned(), error.clone()),
        };
        table.row([found.program.name(), &count, &file]);
    }
    let example = found.iter().find(|found| found.servers.is_ok()).unwrap_or(&found[0]).program.name();
    format!(
        "{}\nImport them with tidegate import PROGRAM, for example tidegate import {example}.",
        table.show(crate::term::width(), paint)
    )
}

fn shown(imported: &Imported, path: &Path, dry_run: bool) -> String {
    let paint = Paint::stdout();
    if imported.servers.is_empty() {
        return "Nothing to import.".to_owned();
    }
    let path = path.display();
    let count = imported.servers.len();
    let servers = if count == 1 { "server" } else { "servers" };
    let head = match dry_run {
        true => format!("Would import {count} {servers} into {path}:"),
        false => format!("{} {count} {servers} into {path}:", paint.good("Imported")),
    };
    let mut table = Table::new(&["", ""]);
    for (name, entry) in &imported.servers {
        let off = if entry.disabled { " (disabled)" } else { "" };
        table.row([name.clone(), format!("{}{off}", entry.shown())]);
    }
    let rows = table.show(crate::term::width().map(|width| width.saturating_sub(INDENT.len())), paint);
    let rows: Vec<String> = rows.lines().map(|row| format!("{INDENT}{row}")).collect();
    format!("{head}\n{}", rows.join("\n"))
}

/// What the servers are indented by.
const INDENT: &str = "  ";
