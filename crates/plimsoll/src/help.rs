//! Help texts: the headings of flags, in the order in which they are shown.
//!
//! Flags without a heading are the most used ones, and come first. A struct with `next_help_heading`
//! is flattened last: its heading also applies to the flags that follow it.

use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

pub(crate) const CLUSTER: &str = "Cluster";
pub(crate) const NODE: &str = "Node";
pub(crate) const STORAGE: &str = "Storage";
pub(crate) const SECURITY: &str = "Security";
pub(crate) const EVICTION: &str = "Eviction";
pub(crate) const NETWORKING: &str = "Networking";
pub(crate) const ADVANCED: &str = "Advanced";

/// The order of headings.
const ORDER: [&str; 7] = [
    CLUSTER, NODE, STORAGE, SECURITY, EVICTION, NETWORKING, ADVANCED,
];

/// Environment variables, at the end of the program's long help.
pub(crate) const ENVIRONMENT: &str = "\
Environment:
  KUBECONFIG      kubeconfig files of commands that talk to a cluster
  RUST_LOG        log filter, such as plimsoll_node=debug; overrides --verbosity
  RUST_BACKTRACE  print a backtrace with internal errors if set to 1
  NO_COLOR        disable colour if set
  COLUMNS         width of drawings and tables instead of the terminal's";

/// Arguments whose flags are sorted by heading. clap shows headings in the order in which flags
/// first use them, and a command made of several structs would show them mixed.
#[derive(Debug)]
pub(crate) struct Grouped<T>(pub(crate) T);

impl<T: FromArgMatches> FromArgMatches for Grouped<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Grouped)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Grouped<T> {
    fn augment_args(command: Command) -> Command {
        grouped(command, &T::augment_args(Command::new("flags")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        grouped(command, &T::augment_args_for_update(Command::new("flags")))
    }
}

/// Adds the arguments of `flags` to a command, in the order of their headings.
fn grouped(command: Command, flags: &Command) -> Command {
    let mut arguments: Vec<Arg> = flags.get_arguments().cloned().collect();
    arguments.sort_by_key(rank);
    let command = command
        .args(arguments)
        .groups(flags.get_groups().cloned().collect::<Vec<_>>());
    match flags.get_after_help() {
        Some(text) => command.after_help(text.clone()),
        None => command,
    }
}

fn rank(argument: &Arg) -> usize {
    match argument.get_help_heading() {
        None => 0,
        Some(heading) => {
            let place = ORDER.iter().position(|known| *known == heading);
            place.map_or(ORDER.len() + 1, |place| place + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The flags of each command that need no heading.
    const MOST_USED: [(&str, &[&str]); 8] = [
        ("check", &["filename", "recursive", "output"]),
        ("controllers", &["leader-elect", "listen", "root-ca-file"]),
        ("explain", &["replay", "namespace", "verbose", "output"]),
        ("loadline", &["watch", "interval", "output", "ascii"]),
        ("node", &["data-dir", "config", "node-name"]),
        ("replay", &["node", "last", "output"]),
        ("server", &["data-dir", "listen", "tls-san"]),
        (
            "up",
            &["data-dir", "listen", "tls-san", "config", "node-name"],
        ),
    ];

    #[test]
    fn command_definitions_are_valid() {
        crate::Cli::command().debug_assert();
    }

    #[test]
    fn most_used_flags_are_first_and_others_have_a_known_heading() {
        let cli = crate::Cli::command();
        for (name, most_used) in MOST_USED {
            let command = cli.find_subcommand(name).unwrap();
            let flags: Vec<&Arg> = command.get_arguments().collect();
            let plain = flags
                .iter()
                .filter(|flag| flag.get_help_heading().is_none());
            let plain: Vec<&str> = plain.filter_map(|flag| flag.get_long()).collect();
            assert_eq!(plain, most_used, "{name}: give other flags a help_heading");
            assert!(
                flags.is_sorted_by_key(|flag| rank(flag)),
                "{name}: {flags:?}"
            );
            for flag in flags {
                assert!(rank(flag) <= ORDER.len(), "{name}: {flag}");
            }
        }
    }

    /// A summary is one line in the imperative: it starts with a verb and is no sentence.
    #[test]
    fn summaries_of_commands_are_one_line() {
        let mut commands = vec![crate::Cli::command()];
        while let Some(command) = commands.pop() {
            let summary = command.get_about().map(ToString::to_string);
            let summary = summary.unwrap_or_default();
            let name = command.get_name();
            assert!(!summary.is_empty(), "{name} has no summary");
            assert!(!summary.contains('\n'), "{name}: {summary}");
            assert!(summary.chars().count() <= 90, "{name}: {summary}");
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
