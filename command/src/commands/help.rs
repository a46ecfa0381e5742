//! The help of the whole program: its commands in groups.

use clap::Command;

use crate::builtins::registry;

/// Which commands belong together. Those of servers of the program come after them, and what is in no group comes last.
const GROUPS: &[(&str, &[&str])] = &[
    ("Gateway", &["serve", "add", "remove", "import", "check", "keys", "audit", "pin"]),
    ("Running gateway", &["status", "list", "logs", "explain", "restart", "enable", "disable", "reset"]),
    (
        "Servers",
        &[
            "tools",
            "call",
            "resources",
            "read",
            "prompts",
            "prompt",
            "discover",
            "doctor",
            "connect",
            "login",
            "logout",
        ],
    ),
];
const LAST: &str = "Other";

/// All groups: their titles, and the names of their commands.
fn groups() -> Vec<(&'static str, Vec<String>)> {
    let own =
        GROUPS.iter().map(|(title, names)| (*title, names.iter().map(|&name| name.to_owned()).collect()));
    own.chain(registry().commands.iter().map(|brought| (brought.title, brought.names()))).collect()
}

/// The same program, whose help lists its commands in groups.
pub(crate) fn grouped(mut command: Command) -> Command {
    // This adds `help`, which is a command too.
    command.build();
    let groups = groups();
    let grouped = |name: &str| groups.iter().any(|(_, names)| names.iter().any(|one| one == name));
    let others: Vec<String> = command
        .get_subcommands()
        .map(Command::get_name)
        .filter(|name| !grouped(name))
        .map(str::to_owned)
        .collect();
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or(0);
    let mut list = String::new();
    for (title, names) in groups.into_iter().chain([(LAST, others)]) {
        list.push_str(&format!("{header}{title}:{header:#}\n"));
        for one in
            names.iter().filter_map(|name| command.find_subcommand(name)).filter(|one| !one.is_hide_set())
        {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let name = one.get_name();
            list.push_str(&format!(
                "  {literal}{name}{literal:#}{:pad$}  {about}\n",
                "",
                pad = width - name.len()
            ));
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_listed_once_with_a_line() {
        let help = grouped(crate::Cli::command()).render_help().to_string();
        for command in crate::Cli::command().get_subcommands() {
            let start = format!("  {} ", command.get_name());
            let lines: Vec<&str> = help.lines().filter(|line| line.starts_with(&start)).collect();
            assert_eq!(lines.len(), 1, "{start:?} in\n{help}");
            assert!(lines[0].trim_start().contains("  ") && lines[0].len() <= 100, "{lines:?}");
        }
        for (title, names) in groups() {
            assert!(help.contains(&format!("\n{title}:\n  {}", names[0])), "{help}");
        }
    }
}
