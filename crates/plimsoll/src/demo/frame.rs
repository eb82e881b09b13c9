//! The load line of the node at one moment, as `plimsoll loadline` draws it.

use anyhow::{Context, Result};
use kube::Client;
use plimsoll_report::loadline::{Detail, Report, compute, render};
use plimsoll_report::text::Terminal;

use super::sandbox::NODE;
use crate::node_reader::{Past, nodes};

/// Draws one node repeatedly.
pub(super) struct Frames {
    client: Client,
    past: Past,
}

impl Frames {
    pub(super) fn new(client: Client) -> Frames {
        Frames {
            client,
            past: Past::default(),
        }
    }

    /// The node's memory as it is now.
    pub(super) async fn next(&mut self, terminal: Terminal) -> Result<Vec<String>> {
        let found = nodes(&self.client, &[NODE.to_owned()]).await?;
        let mut readings = self.past.look(&self.client, found).await?;
        let reading = readings.pop().context("the node was deleted")?;
        let mut line = compute(&reading);
        line.resources.retain(|line| line.resource == "memory");
        // The first frame has no forecast, and the next will have one.
        line.unknown.clear();
        let text = render(&Report::new(vec![line]), Detail::Brief, terminal);
        Ok(text.lines().map(str::to_owned).collect())
    }
}
