//! The help of the whole program: its commands in groups.

use clap::Command;

/// Which commands belong together. What is in no group comes last.
const GROUPS: &[(&str, &[&str])] = &[
    ("Gateway", &["serve", "add", "remove", "import", "check", "pin"]),
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
    ("Memory", &["memory", "model"]),
];
const LAST: &str = "Other";

/// The same program, whose help lists its commands in groups.
pub(crate) fn grouped(mut command: Command) -> Command {
    // This adds `help`, which is a command too.
    command.build();
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> =
        command.get_subcommands().map(Command::get_name).filter(|name| !grouped(name)).collect();
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or(0);
    let mut list = String::new();
    for (title, names) in GROUPS.iter().copied().chain([(LAST, others.as_slice())]) {
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
        for (title, names) in GROUPS {
            assert!(help.contains(&format!("\n{title}:\n  {}", names[0])), "{help}");
        }
    }
}
