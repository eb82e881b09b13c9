//! What the program logs on standard error, how much of it, and how it is written.

use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::failure;
use crate::print::Colour;

/// The target of what a server logs in any case: that it serves, that it stops, why it failed.
pub(crate) const STATUS: &str = "plimsoll::status";

/// Arguments of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct Arguments {
    /// Log more: 0 warnings, 1-2 what happens, 3-5 details, 6-9 everything, 10 libraries too.
    /// RUST_LOG wins if it is set.
    #[arg(short = 'v', long, value_name = "LEVEL", global = true,
        value_parser = clap::value_parser!(u8).range(0..=10))]
    verbosity: Option<u8>,

    /// How log lines are written.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text, global = true)]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

static FORMAT: OnceLock<Format> = OnceLock::new();

/// Starts logging; `level` is the command's own.
pub(crate) fn start(arguments: &Arguments, level: LevelFilter) {
    let format = *FORMAT.get_or_init(|| arguments.log_format);
    let variable = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = filter(&variable, arguments.verbosity, level, format);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        Format::Text => builder.with_ansi(Colour::for_stderr() == Colour::On).init(),
        Format::Json => builder.json().init(),
    }
}

/// Whether standard error is read by programs.
pub(crate) fn is_json() -> bool {
    FORMAT.get() == Some(&Format::Json)
}

/// Logs that a server has got so far; people wait for these lines, and copy them.
pub(crate) fn announce(lines: &[String]) {
    for line in lines {
        match is_json() {
            true => tracing::info!(target: STATUS, "{line}"),
            false => failure::print_line(line),
        }
    }
}

fn filter(variable: &str, verbosity: Option<u8>, level: LevelFilter, format: Format) -> EnvFilter {
    let status = format!("{STATUS}=info");
    let directives = match (variable.trim(), verbosity) {
        // What text shows whatever the level is, JSON shows too.
        (variable, _) if !variable.is_empty() => match format {
            Format::Text => variable.to_owned(),
            Format::Json => format!("{variable},{status}"),
        },
        (_, None) => format!("{level},{status}"),
        (_, Some(verbosity)) => {
            let (own, libraries) = levels(verbosity);
            format!("{libraries},plimsoll={own},{status}")
        }
    };
    let builder = EnvFilter::builder().with_default_directive(level.into());
    builder.parse_lossy(directives)
}

/// The levels of our own lines and of libraries'. Libraries log each request several times, so they
/// are a step behind.
fn levels(verbosity: u8) -> (LevelFilter, LevelFilter) {
    match verbosity {
        0 => (LevelFilter::WARN, LevelFilter::WARN),
        1..=2 => (LevelFilter::INFO, LevelFilter::WARN),
        3..=5 => (LevelFilter::DEBUG, LevelFilter::INFO),
        6..=9 => (LevelFilter::TRACE, LevelFilter::DEBUG),
        _ => (LevelFilter::TRACE, LevelFilter::TRACE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(variable: &str, verbosity: Option<u8>, level: LevelFilter) -> String {
        filter(variable, verbosity, level, Format::Text).to_string()
    }

    #[test]
    fn the_variable_wins_over_the_flag() {
        let shown = shown("hyper=trace", Some(4), LevelFilter::WARN);
        assert!(!shown.contains("debug"), "{shown}");
        assert!(shown.contains("hyper=trace"), "{shown}");
    }

    #[test]
    fn verbosity_is_about_our_own_lines_first() {
        let four = shown("", Some(4), LevelFilter::OFF);
        assert!(four.contains("plimsoll=debug"), "{four}");
        assert!(four.contains("info"), "{four}");
        let none = shown("", None, LevelFilter::OFF);
        assert!(none.contains("off"), "{none}");
        assert!(none.contains("plimsoll::status=info"), "{none}");
    }
}
