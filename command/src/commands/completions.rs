//! `tidegate completions`: what a shell needs to complete the commands and options.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::failure::Failure;
use super::output;

/// Print a completion script for your shell.
#[derive(Args)]
#[command(
    after_help = "For example: tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate"
)]
pub(crate) struct Completions {
    /// The shell.
    shell: ShellName,
}

#[derive(Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(completions: &Completions) -> Result<(), Failure> {
    let shell = match completions.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::Cli::command(), "tidegate", &mut script);
    output::bytes(&script)
}
