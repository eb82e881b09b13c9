//! Scheduler configurations: findings and the resulting profiles.

use plimsoll_core::scheduling::configuration::{KIND, read_document};
use plimsoll_core::scheduling::profile::{Argument, Profile};

use super::file::{Document, File};
use super::report::{
    ArgumentRow, DocumentReport, FindingRow, ProfileRow, Report, SchedulerReport, ScoreRow,
};

pub(super) fn check(file: &File, document: &Document, report: &mut Report) {
    let reading = read_document(&document.tree);
    for problem in &reading.problems {
        let row = FindingRow::from_problem(&file.name, problem);
        report.findings.push(row);
    }
    let profiles = reading.configuration.profiles.iter();
    report.documents.push(DocumentReport {
        scheduler: Some(SchedulerReport {
            profiles: profiles.map(profile_row).collect(),
        }),
        ..DocumentReport::new(file, document, KIND)
    });
}

fn profile_row(profile: &Profile) -> ProfileRow {
    let filters = profile.filters.iter().map(|filter| filter.as_str());
    let scores = profile.scores.iter().map(|(score, weight)| ScoreRow {
        plugin: score.as_str(),
        weight: *weight,
    });
    let arguments = profile.changed_arguments().into_iter();
    let argument_row = |argument: Argument| ArgumentRow {
        plugin: argument.plugin,
        field: argument.field,
        value: argument.value,
    };
    ProfileRow {
        scheduler_name: profile.scheduler_name.clone(),
        percentage_of_nodes_to_score: profile.percentage_of_nodes_to_score,
        preemption: profile.preempts(),
        filters: filters.collect(),
        scores: scores.collect(),
        arguments: arguments.map(argument_row).collect(),
    }
}
