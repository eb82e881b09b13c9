//! `plimsoll replay` and `plimsoll explain --replay`: replays recorded eviction decisions with the
//! engine of this program.
//!
//! Reading order: this file (where records come from), `report` (the result as data; documented in
//! docs/commands.md), `render` (the result as text).

mod render;
mod report;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use plimsoll_core::eviction::record::Record;
use serde::Deserialize;

use crate::cluster::{self, Cluster};
use crate::exit::Exit;
use crate::failure::Advise;
use crate::kubelet::Kubelet;
use crate::print;

use render::render;
use report::Report;

/// A node keeps 64 records, each of a few hundred kilobytes at most.
const MAX_BYTES: u64 = 64 << 20;

/// Arguments of `plimsoll replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Replay the latest decision of a node
  plimsoll replay --node n1 --last 1
  # Replay decisions from a file
  kubectl get --raw /api/v1/nodes/n1/proxy/plimsoll/decisions > decisions.json
  plimsoll explain --replay decisions.json")]
pub(crate) struct Arguments {
    /// Node whose decisions to replay.
    #[arg(long, value_name = "NAME")]
    node: String,

    /// Replay only the latest N decisions.
    #[arg(long, value_name = "N")]
    last: Option<usize>,

    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,

    #[command(flatten)]
    cluster: Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
}

/// Replays the decisions of a node.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut is_same = true;
    let code = cluster::ask(&arguments.cluster, async {
        let client = arguments.cluster.client().await?;
        let query = match arguments.last {
            Some(last) => format!("limit={last}"),
            None => String::new(),
        };
        let name = &arguments.node;
        // Returns the API server's NotFound error if the node does not exist.
        Api::<Node>::all(client.clone()).get(name).await?;
        let records = Kubelet::new(&client, name).decisions(&query).await;
        let records = match records {
            Ok(records) => records,
            Err(reason) => {
                let error = anyhow!("failed to read the decisions of node {name}: {reason}");
                return Err(error.exit(Exit::Cluster));
            }
        };
        is_same = show(&records, arguments.output == Some(Format::Json))?;
        Ok(())
    })?;
    Ok(match is_same {
        true => code,
        false => Exit::Failed.into(),
    })
}

/// Replays the records of a file, in the form of `/plimsoll/decisions` or of an agent's data
/// directory: one record, a list, or several documents one after the other.
pub(crate) fn run_file(path: &Path, as_json: bool) -> Result<ExitCode> {
    let text = read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let records = parse(&text);
    let records = records.with_context(|| format!("{} holds no decisions", path.display()))?;
    Ok(match show(&records, as_json)? {
        true => Exit::Success.into(),
        false => Exit::Failed.into(),
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let file: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(path)?),
    };
    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        bail!("file is larger than {} MiB", MAX_BYTES >> 20);
    }
    Ok(text)
}

/// A list, or one record.
#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    List { items: Vec<Record> },
    One(Box<Record>),
}

fn parse(text: &[u8]) -> serde_json::Result<Vec<Record>> {
    let mut records = Vec::new();
    for document in serde_json::Deserializer::from_slice(text).into_iter() {
        match document? {
            Document::List { items } => records.extend(items),
            Document::One(record) => records.push(*record),
        }
    }
    Ok(records)
}

/// Prints the decisions; returns whether all replay as recorded.
fn show(records: &[Record], as_json: bool) -> Result<bool> {
    let report = Report::new(records);
    let text = match as_json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => render(&report),
    };
    print::write(&text)?;
    Ok(report.is_same())
}
