//! Logging to standard error: levels and formats.

use std::io::Write;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use plimsoll_report::text::Colour;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::print;

/// The target of status messages, logged at every level: serving, stopping, errors.
pub(crate) const STATUS: &str = "plimsoll::status";

/// Arguments of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct Arguments {
    /// Log level: 0 warnings, 1-2 info, 3-5 debug, 6-9 trace, 10 including libraries [env: RUST_LOG].
    #[arg(short = 'v', long, value_name = "LEVEL", global = true,
        value_parser = clap::value_parser!(u8).range(0..=10))]
    verbosity: Option<u8>,

    /// Format of log lines.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text, global = true)]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Plain text.
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
        Format::Text => builder
            .with_ansi(print::stderr_colour() == Colour::On)
            .init(),
        Format::Json => builder.json().init(),
    }
}

/// Whether logs are in JSON.
pub(crate) fn is_json() -> bool {
    FORMAT.get() == Some(&Format::Json)
}

/// Prints status lines that users wait for and copy from, such as the server's address.
pub(crate) fn announce(lines: &[String]) {
    for line in lines {
        match is_json() {
            true => tracing::info!(target: STATUS, "{line}"),
            false => print_line(line),
        }
    }
}

/// Prints a line to standard error.
pub(crate) fn print_line(line: &str) {
    write(&format!("{line}\n"));
}

/// Writes to standard error.
pub(crate) fn write(text: &str) {
    // Ignored: standard error may be closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn filter(variable: &str, verbosity: Option<u8>, level: LevelFilter, format: Format) -> EnvFilter {
    let status = format!("{STATUS}=info");
    let directives = match (variable.trim(), verbosity) {
        // Text prints status lines at every level; JSON must log them too.
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

/// The levels of our own logs and of libraries'. Libraries log each request several times and are one
/// level lower.
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
    fn rust_log_overrides_the_flag() {
        let shown = shown("hyper=trace", Some(4), LevelFilter::WARN);
        assert!(!shown.contains("debug"), "{shown}");
        assert!(shown.contains("hyper=trace"), "{shown}");
    }

    #[test]
    fn verbosity_applies_to_our_own_logs_first() {
        let four = shown("", Some(4), LevelFilter::OFF);
        assert!(four.contains("plimsoll=debug"), "{four}");
        assert!(four.contains("info"), "{four}");
        let none = shown("", None, LevelFilter::OFF);
        assert!(none.contains("off"), "{none}");
        assert!(none.contains("plimsoll::status=info"), "{none}");
    }
}
