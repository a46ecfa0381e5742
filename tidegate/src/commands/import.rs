//! `tidegate import`: the servers of another program for the gateway.

use std::path::PathBuf;

use clap::Args;
use tidegate_config::import::{Imported, Origin, import};

use super::failure::Failure;
use super::{configuration, output};
use crate::term::style::Paint;
use crate::term::table::Table;

/// Add the servers of another program to the gateway's configuration.
///
/// Nothing is changed about the other program.
#[derive(Args)]
pub(crate) struct Import {
    /// claude, cursor, vscode, or an mcpServers file.
    #[arg(value_name = "PROGRAM|FILE")]
    from: String,

    /// The configuration to change. [default: ./tidegate.toml if there is one, else that of the user]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Put them in place of servers of the same names.
    #[arg(long)]
    replace: bool,

    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Import) -> Result<(), Failure> {
    let path = configuration::changeable(args.config.as_deref())?;
    let first = args.config.is_none() && !path.exists();
    let imported = import(&path, &Origin::parse(&args.from), args.replace, args.dry_run)?;
    for note in &imported.notes {
        output::note(&format!("note: {}", crate::term::clean::line(note)));
    }
    if first && path.exists() {
        let added: Vec<_> = imported.servers.iter().map(|(name, entry)| (name.as_str(), entry)).collect();
        configuration::keep_memory(&path, &added)?;
    }
    output::text(&shown(&imported, &path.display().to_string(), args.dry_run))
}

fn shown(imported: &Imported, path: &str, dry_run: bool) -> String {
    let paint = Paint::stdout();
    if imported.servers.is_empty() {
        return "Nothing to add.".to_owned();
    }
    let count = imported.servers.len();
    let servers = if count == 1 { "server" } else { "servers" };
    let head = match dry_run {
        true => format!("Would add {count} {servers} to {path}:"),
        false => format!("{} {count} {servers} to {path}:", paint.good("Added")),
    };
    let mut table = Table::new(&["", ""]);
    for (name, entry) in &imported.servers {
        let off = if entry.disabled { " (switched off)" } else { "" };
        table.row([format!("  {name}"), format!("{}{off}", entry.shown())]);
    }
    format!("{head}\n{}", table.show(crate::term::width(), paint))
}
