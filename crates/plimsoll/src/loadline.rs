//! `plimsoll loadline`: reads nodes and prints their load lines, once or until interrupted.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use kube::Client;
use plimsoll_client::clock::Clock;
use plimsoll_report::loadline::{Detail, Report, compute, render, render_to_fit};
use plimsoll_report::text::Terminal;
use tokio::signal::unix::{SignalKind, signal};

use crate::cluster::{self, Cluster};
use crate::node_reader::{Past, nodes};
use crate::print::{self, AlternateScreen};
use crate::signals;

/// Lines above the nodes with --watch: the time, and an empty line.
const HEAD: usize = 2;

/// Arguments of `plimsoll loadline`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show all nodes of a cluster
  plimsoll loadline
  # Show every threshold of a node, and update until interrupted
  plimsoll loadline n1 -o wide --watch
  # Print the load lines of all nodes as JSON
  plimsoll loadline -o json")]
pub(crate) struct Arguments {
    /// Nodes [default: all nodes].
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,

    /// Update the output until interrupted.
    #[arg(short, long)]
    watch: bool,

    /// Interval between updates with --watch, such as `2s`.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_interval)]
    interval: Duration,

    /// Output format [default: full for one node, overview for several].
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,

    /// Use ASCII characters only.
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    cluster: Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One row per node.
    Overview,
    /// One line per resource, with the next thresholds.
    Full,
    /// One line per resource, with every threshold.
    Wide,
    /// One object, or one per update with --watch.
    Json,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let parsed: plimsoll_core::duration::Duration = text
        .parse()
        .map_err(|error: plimsoll_core::duration::ParseError| error.to_string())?;
    let nanos = u64::try_from(parsed.as_nanos()).unwrap_or(0);
    match nanos {
        0 => Err("must be greater than 0".to_owned()),
        nanos => Ok(Duration::from_nanos(nanos)),
    }
}

/// Prints the load lines once, or updates them until interrupted.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    cluster::ask(&arguments.cluster, async {
        let client = arguments.cluster.client().await?;
        if arguments.watch {
            return arguments.watch(&client).await;
        }
        let report = arguments.look(&client, &mut Past::default()).await?;
        let text = match arguments.output {
            Some(Format::Json) => serde_json::to_string_pretty(&report)? + "\n",
            _ => render(&report, arguments.detail(&report), arguments.terminal()),
        };
        print::write(&text)?;
        Ok(())
    })
}

impl Arguments {
    async fn look(&self, client: &Client, past: &mut Past) -> Result<Report> {
        let readings = past.look(client, nodes(client, &self.nodes).await?).await?;
        Ok(Report::new(readings.iter().map(compute).collect()))
    }

    fn terminal(&self) -> Terminal {
        let mut terminal = print::terminal();
        terminal.is_unicode &= !self.ascii;
        terminal
    }

    fn detail(&self, report: &Report) -> Detail {
        match self.output {
            Some(Format::Wide) => Detail::Wide,
            Some(Format::Overview) => Detail::Overview,
            None if report.items.len() > 1 => Detail::Overview,
            Some(Format::Full | Format::Json) | None => Detail::Brief,
        }
    }

    /// Redraws a terminal in place; prints updates one below the other to files and pipes.
    async fn watch(&self, client: &Client) -> Result<()> {
        let mut past = Past::default();
        let mut ended = std::pin::pin!(signals::interrupted());
        let mut resized = signal(SignalKind::window_change())?;
        let is_drawn = self.output != Some(Format::Json) && self.terminal().is_interactive;
        // Dropped on return, so that errors are printed to the normal screen and stay visible.
        let mut screen = None;
        loop {
            let report = tokio::select! {
                () = &mut ended => return Ok(()),
                report = self.look(client, &mut past) => report?,
            };
            if is_drawn && screen.is_none() {
                screen = Some(AlternateScreen::enter()?);
            }
            let next = tokio::time::Instant::now() + self.interval;
            loop {
                let is_read = match &screen {
                    Some(screen) => screen.draw(&self.page(&report, self.terminal().height))?,
                    None => print::write(&self.printed(&report)?)?,
                };
                if !is_read {
                    return Ok(());
                }
                tokio::select! {
                    () = &mut ended => return Ok(()),
                    () = tokio::time::sleep_until(next) => break,
                    _ = resized.recv(), if screen.is_some() => {}
                }
            }
        }
    }

    fn printed(&self, report: &Report) -> Result<String> {
        Ok(match self.output {
            Some(Format::Json) => serde_json::to_string(report)? + "\n",
            _ => self.page(report, usize::MAX).join("\n") + "\n\n",
        })
    }

    /// One update below its time, in at most `height` lines.
    fn page(&self, report: &Report, height: usize) -> Vec<String> {
        let now = Clock::system().now().to_api_seconds().0;
        let nodes = match report.items.len() {
            1 => "1 node".to_owned(),
            count => format!("{count} nodes"),
        };
        let every = plimsoll_core::threshold::Duration::from_nanos(
            i64::try_from(self.interval.as_nanos()).unwrap_or(i64::MAX),
        );
        let mut lines = vec![format!("{now}   {nodes}   every {every}"), String::new()];
        let room = height.saturating_sub(HEAD);
        let detail = self.detail(report);
        lines.extend(render_to_fit(report, detail, self.terminal(), room));
        lines
    }
}
