//! Preflight checks, reported before the node starts anything.

use std::path::Path;

use anyhow::{Result, anyhow};
use plimsoll_node::agent::Options;
use plimsoll_node::preflight::{Finding, Level, judge, observe};

use super::subject;
use crate::data_dir::{self, Part};
use crate::failure::{self, Advise};

/// Prints warnings about the machine; fails if it cannot be a node.
pub(crate) fn refuse_unfit(options: &Options, data_dir: &Path) -> Result<()> {
    // A running node also holds the ports; naming that process explains more than the ports do.
    data_dir::refuse_used(data_dir, Part::Node)?;
    refuse_by(
        judge(&observe(&subject(options)), &options.config),
        Level::Warning,
    )
}

/// Prints findings from a level on; fails if one of them is an error.
pub(crate) fn refuse_by(findings: Vec<Finding>, least: Level) -> Result<()> {
    let mut errors = Vec::new();
    for finding in findings
        .into_iter()
        .filter(|finding| finding.level >= least)
    {
        match finding.level {
            Level::Fine => {}
            Level::Warning => failure::warn(&summary(&finding), &finding.remedy),
            Level::Error => errors.push(finding),
        }
    }
    let Some(last) = errors.pop() else {
        return Ok(());
    };
    for finding in errors {
        failure::report(&anyhow!(summary(&finding)).hint(finding.remedy));
    }
    Err(anyhow!(summary(&last)).hint(last.remedy))
}

fn summary(finding: &Finding) -> String {
    format!("{}: {}", finding.subject, finding.state)
}
