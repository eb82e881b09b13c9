//! Which tests an executable has, and their tiers.
//!
//! libtest's list does not contain why a test is ignored. libtest prints that when it runs that
//! very test without `--ignored`, so all ignored tests are run this way at once, which executes
//! none of them. libtest-mimic lists a trial's kind.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use crate::executables::Executable;
use crate::tier::Tier;

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) tier: Tier,
}

impl Test {
    /// Whether it runs only with `--ignored`.
    pub(crate) fn is_ignored(&self) -> bool {
        self.tier > Tier::Unit
    }
}

/// All tests of an executable, in the order in which it runs them.
///
/// # Errors
///
/// If it cannot be run, or if an ignored test has no tier.
pub(crate) fn tests_of(executable: &Executable) -> Result<Vec<Test>, String> {
    let all = listed(&ask(executable, &["--list", "--format", "terse"])?);
    let ignored = ask(executable, &["--list", "--format", "terse", "--ignored"])?;
    let ignored: BTreeSet<String> = names(&listed(&ignored)).collect();
    let has_no_kind = |(kind, name): &&(Option<String>, String)| {
        ignored.contains(name) && kind.as_deref().and_then(Tier::in_reason).is_none()
    };
    let unknown: Vec<&str> = all
        .iter()
        .filter(has_no_kind)
        .map(|(_, name)| name.as_str())
        .collect();
    let reasons = match unknown.is_empty() {
        true => BTreeMap::new(),
        false => reasons(&ask(executable, &[&["--exact"], &unknown[..]].concat())?),
    };
    let tier_of = |(kind, name): (Option<String>, String)| {
        if !ignored.contains(&name) {
            let tier = Tier::Unit;
            return Ok(Test { name, tier });
        }
        let reason = kind.as_deref().and_then(Tier::in_reason);
        match reason.or_else(|| reasons.get(&name).copied()) {
            Some(tier) => Ok(Test { name, tier }),
            None => Err(format!(
                "{} {name}: the test is ignored and names no tier; \
                 write #[ignore = \"tier: tools\"], root or vm, or a trial of kind \"tier: …\"",
                executable.name
            )),
        }
    };
    all.into_iter().map(tier_of).collect()
}

fn ask(executable: &Executable, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(&executable.path)
        .args(arguments)
        .current_dir(&executable.folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", executable.path.display()))?;
    // Some do not know several filters, and say so; their tests then have no reasons.
    if !output.status.success() && arguments.contains(&"--list") {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{} does not list its tests: {error}",
            executable.name
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Kinds and names in lines like `a::b: test` and `[tier: root] a/b: test`.
fn listed(list: &str) -> Vec<(Option<String>, String)> {
    let lines = list.lines().filter_map(|line| line.strip_suffix(": test"));
    lines
        .map(|line| {
            let kind = line
                .strip_prefix('[')
                .and_then(|line| line.split_once("] "));
            match kind {
                Some((kind, name)) => (Some(kind.to_owned()), name.to_owned()),
                None => (None, line.to_owned()),
            }
        })
        .collect()
}

fn names(listed: &[(Option<String>, String)]) -> impl Iterator<Item = String> {
    listed.iter().map(|(_, name)| name.clone())
}

/// Tiers in lines like `test a::b ... ignored, tier: root`.
fn reasons(output: &str) -> BTreeMap<String, Tier> {
    let lines = output.lines().filter_map(|line| {
        let (name, reason) = line.strip_prefix("test ")?.split_once(" ... ignored, ")?;
        let name = name.trim_end().trim_end_matches(" - should panic");
        Some((name.to_owned(), Tier::in_reason(reason)?))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_and_without_kinds() {
        let list = "a::b: test\n[tier: root] c/d: test\nspeed: benchmark\n\n3 tests, 1 benchmark\n";
        let expected = [
            (None, "a::b".to_owned()),
            (Some("tier: root".to_owned()), "c/d".to_owned()),
        ];
        assert_eq!(listed(list), expected);
    }

    #[test]
    fn reasons_are_read_from_ignored_tests() {
        let output = "\nrunning 3 tests\ntest a ... ignored, tier: tools\n\
            test b - should panic ... ignored, tier: vm\ntest c ... ignored\n";
        let tiers: Vec<(String, Tier)> = reasons(output).into_iter().collect();
        let expected = [("a".to_owned(), Tier::Tools), ("b".to_owned(), Tier::Vm)];
        assert_eq!(tiers, expected);
    }
}
