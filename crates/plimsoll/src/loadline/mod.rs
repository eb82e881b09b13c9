//! `plimsoll loadline`: how deep nodes lie, and how far their lines are.
//!
//! Reading order: `read` (what nodes say), `compute` (what that comes to), `report` (the result as
//! data; documented in docs/loadline.md), `bar` and `render` (the same for people).

mod bar;
pub(crate) mod compute;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod report;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::cluster::{self, Cluster};
use crate::print::{self, Terminal};

use compute::compute;
use read::{Past, nodes};
use render::{Detail, render};
use report::Report;

/// Arguments of `plimsoll loadline`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The nodes; all of them if none is named.
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,

    #[command(flatten)]
    cluster: Cluster,

    /// Draw again and again, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,

    /// How often to look with --watch, for example `2s`.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_interval)]
    interval: Duration,

    /// Output format: `wide` shows every threshold, `json` one object per look.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,

    /// Use ASCII characters only.
    #[arg(long)]
    ascii: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Wide,
    Json,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let parsed: plimsoll_core::duration::Duration = text
        .parse()
        .map_err(|error: plimsoll_core::duration::ParseError| error.to_string())?;
    let nanos = u64::try_from(parsed.as_nanos()).unwrap_or(0);
    match nanos {
        0 => Err("it has to be longer than nothing".to_owned()),
        nanos => Ok(Duration::from_nanos(nanos)),
    }
}

/// Draws once, or until told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    cluster::ask(&arguments.cluster, draw(arguments))
}

async fn draw(arguments: &Arguments) -> Result<()> {
    let client = arguments.cluster.client().await?;
    let mut past = Past::default();
    let mut is_first = true;
    loop {
        let readings = past
            .look(&client, nodes(&client, &arguments.nodes).await?)
            .await?;
        let report = Report::new(readings.iter().map(compute).collect());
        let text = arguments.text(&report, is_first)?;
        if !print::write(&text)? || !arguments.watch {
            return Ok(());
        }
        is_first = false;
        tokio::time::sleep(arguments.interval).await;
    }
}

impl Arguments {
    fn text(&self, report: &Report, is_first: bool) -> Result<String> {
        let mut terminal = Terminal::stdout();
        terminal.is_unicode &= !self.ascii;
        let detail = match self.output {
            Some(Format::Json) if self.watch => return Ok(serde_json::to_string(report)? + "\n"),
            Some(Format::Json) => return Ok(serde_json::to_string_pretty(report)? + "\n"),
            Some(Format::Wide) => Detail::Wide,
            None => Detail::Brief,
        };
        let text = render(report, detail, terminal);
        Ok(match (self.watch && terminal.is_interactive, is_first) {
            (true, is_first) => in_place(&text, is_first),
            (false, true) => text,
            (false, false) => format!("\n{text}"),
        })
    }
}

/// The text over what stood there before. Lines are cleared one by one, so that nothing flickers.
fn in_place(text: &str, is_first: bool) -> String {
    let begin = if is_first { "\x1b[2J\x1b[H" } else { "\x1b[H" };
    let lines: Vec<String> = text.lines().map(|line| format!("{line}\x1b[K\n")).collect();
    format!("{begin}{}\x1b[J", lines.concat())
}
