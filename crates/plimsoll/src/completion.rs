//! `plimsoll completion`: shell completion scripts.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::generate;
use clap_complete::shells;

use crate::exit::Exit;
use crate::print;

/// How a script is loaded, in the order of `kubectl completion --help`.
const EXAMPLES: &str = "\
Examples:
  # Load the completion code for bash into the current shell (bash-completion is required)
  source <(plimsoll completion bash)
  # Write it to a file that bash-completion loads in every new shell
  plimsoll completion bash > /etc/bash_completion.d/plimsoll

  # Load the completion code for zsh into the current shell
  source <(plimsoll completion zsh)
  # Load it in every new shell; compinit must run after this
  plimsoll completion zsh > \"${fpath[1]}/_plimsoll\"

  # Load the completion code for fish into the current shell
  plimsoll completion fish | source
  # Load it in every new shell
  plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish";

/// Arguments of `plimsoll completion`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell to complete for.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut command = crate::Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    match arguments.shell {
        Shell::Bash => generate(shells::Bash, &mut command, name, &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, name, &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, name, &mut script),
    }
    print::write(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success.into())
}
