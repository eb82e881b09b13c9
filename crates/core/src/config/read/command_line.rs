//! A kubelet's command line.

use crate::problem::{Position, Problem};

use super::flag::{self, Flag, FlagValue, Syntax, parse_values};
use super::okd::unknown_flag;
use super::{Assignment, Origin, Profile};

/// A flag and all texts given to it, in order.
type Occurrences<'a> = Vec<(&'static Flag, Vec<FlagValue<'a>>)>;

/// Every flag that is given.
pub(super) fn assignments(
    arguments: &[&str],
    profile: Profile,
    problems: &mut Vec<Problem>,
) -> Vec<Assignment> {
    let mut occurrences: Occurrences<'_> = Vec::new();
    let mut rest = arguments.iter().copied().enumerate();
    while let Some((index, argument)) = rest.next() {
        let Some((name, value)) = split(argument) else {
            let sentence = format!("unknown command {argument}");
            problems.push(Problem::refused(
                format!("argument {}", index + 1),
                sentence,
            ));
            continue;
        };
        let path = format!("--{name}");
        let Some(flag) = flag::find(name) else {
            problems.push(unknown_flag(&path, name, None));
            continue;
        };
        let text = match value {
            Some(value) => value,
            None if flag.syntax == Syntax::Bool => "true",
            None => match rest.next() {
                Some((_, value)) => value,
                None => {
                    let sentence = format!("flag needs an argument: --{name}");
                    problems.push(Problem::refused(path, sentence));
                    continue;
                }
            },
        };
        if let Some(removed) = flag.removed
            && !profile.is_okd()
        {
            let detail = format!(
                "is gone from the kubelet ({}); {}",
                removed.meaning, removed.instead
            );
            problems.push(Problem::unknown(&path, detail));
        }
        let given = FlagValue {
            text,
            origin: Origin::flag(flag.name),
            position: Position {
                line: 1,
                column: index + 1,
            },
        };
        match occurrences
            .iter_mut()
            .find(|(known, _)| known.name == flag.name)
        {
            Some((_, texts)) => texts.push(given),
            None => occurrences.push((flag, vec![given])),
        }
    }
    occurrences
        .into_iter()
        .filter_map(|(flag, given)| {
            Some(Assignment {
                node: parse_values(flag, &given, problems)?,
                field: flag.key(),
                origin: Origin::flag(flag.name),
            })
        })
        .collect()
}

/// Name and value of `--name=value` or `--name`; one dash will do only for `-v`.
fn split(argument: &str) -> Option<(&str, Option<&str>)> {
    let body = match argument.strip_prefix("--") {
        Some(body) => body,
        None => argument
            .strip_prefix('-')
            .filter(|body| body.starts_with('v'))?,
    };
    if body.is_empty() {
        return None;
    }
    Some(match body.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (body, None),
    })
}
