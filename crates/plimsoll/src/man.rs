//! `plimsoll man`: manual pages, one per command, generated from the definitions of the help.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::exit::{self, Exit};
use crate::print;

/// How the table of exit codes begins.
const EXIT_CODES: &[u8] = b"Exit codes:";

/// Arguments of `plimsoll man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Install the manual pages for all users
  plimsoll man /usr/local/share/man/man1
  man plimsoll-up")]
pub(crate) struct Arguments {
    /// Directory to write the pages to; created if missing.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes all pages.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let directory = &arguments.directory;
    write_pages(directory)
        .with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
    print::write(&format!(
        "manual pages written; read them with: man {}\n",
        directory.join("plimsoll.1").display()
    ))?;
    Ok(Exit::Success.into())
}

fn write_pages(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut command = crate::Cli::command().disable_help_subcommand(true);
    command.build();
    write_page(command, directory)
}

/// The page of a command, and those of the commands below it.
fn write_page(command: Command, directory: &Path) -> std::io::Result<()> {
    for command in command.get_subcommands() {
        write_page(command.clone(), directory)?;
    }
    let page = Man::new(command)
        .source(concat!("Plimsoll ", env!("CARGO_PKG_VERSION")))
        .manual("Plimsoll");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // The page of the program includes the table with its help.
    if !text
        .windows(EXIT_CODES.len())
        .any(|part| part == EXIT_CODES)
    {
        let table = exit::HELP.replace('-', "\\-");
        text.extend(format!(".SH \"EXIT STATUS\"\n.nf\n{table}\n.fi\n").bytes());
    }
    std::fs::write(directory.join(page.get_filename()), text)
}
