//! Exit codes.

use std::process::ExitCode;

/// The table of exit codes, at the end of the program's long help.
pub(crate) const HELP: &str = "\
Exit codes:
  0   success
  1   the command failed on this machine, or found errors in its input
  2   wrong usage
  3   the cluster refused, or could not be reached
  70  internal error";

/// The exit code of a command. docs/commands.md has the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The command failed on this machine, or found errors in its input.
    Failed = 1,
    /// The command line is wrong. clap ends with the same code.
    Usage = 2,
    /// The cluster refused, or could not be reached.
    Cluster = 3,
    /// A fault of the program. The number is EX_SOFTWARE of sysexits.h.
    Internal = 70,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_every_code() {
        for exit in [
            Exit::Success,
            Exit::Failed,
            Exit::Usage,
            Exit::Cluster,
            Exit::Internal,
        ] {
            let line = format!("\n  {:<4}", exit as u8);
            assert!(HELP.contains(&line), "{exit:?}");
        }
    }
}
