//! Telling people why a machine cannot run pods, before anything is begun.

use std::process::ExitCode;

use plimsoll_node::agent::Options;
use plimsoll_node::preflight::{Level, judge, observe};

use super::subject;

/// Prints what is wrong with the machine; an exit code if it cannot be a node.
#[expect(clippy::print_stderr, reason = "this is where people learn it")]
pub(crate) fn refuse_unfit(options: &Options) -> Option<ExitCode> {
    let findings = judge(&observe(&subject(options)), &options.config);
    let mut code = None;
    for finding in findings
        .iter()
        .filter(|finding| finding.level != Level::Fine)
    {
        eprintln!("{}: {}: {}", finding.level, finding.subject, finding.state);
        eprintln!("hint: {}", finding.remedy);
        if finding.level == Level::Error {
            code = Some(ExitCode::from(1));
        }
    }
    code
}
