//! The processes of a test: finding, describing and ending them.
//!
//! Every process that a test starts has a variable in its environment that names the test, and so
//! have its children, in any session and process group. Those with an environment of their own,
//! such as the processes of containers, are found as their children.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Names the run and the job that a process belongs to: `RUN/JOB`.
pub(crate) const VARIABLE: &str = "TEST_RUNNER_JOB";

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// More than these do not help to find a reason.
const MOST_PROCESSES: usize = 30;
const MOST_THREADS: usize = 12;
const MOST_OF_A_COMMAND: usize = 120;

/// Processes whose mark begins with this, and all below them.
pub(crate) fn marked(mark: &str) -> BTreeSet<i32> {
    let needle = format!("{VARIABLE}={mark}");
    let mut parents = BTreeMap::new();
    let mut found = BTreeSet::new();
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    for id in numbers(Path::new("/proc")).filter(|id| *id != own) {
        parents.insert(id, parent_of(id));
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|variable| variable.starts_with(needle.as_bytes())) {
            found.insert(id);
        }
    }
    loop {
        let is_new = |(id, parent): &(&i32, &i32)| found.contains(*parent) && !found.contains(*id);
        let new: Vec<i32> = parents.iter().filter(is_new).map(|(id, _)| *id).collect();
        if new.is_empty() {
            break;
        }
        found.extend(new);
    }
    found.retain(|id| is_alive(*id));
    found
}

/// Kills all of them, and the ones they start meanwhile; returns how many there were.
pub(crate) fn end(mark: &str) -> usize {
    let deadline = Instant::now() + GONE_WITHIN;
    let mut ended = BTreeSet::new();
    loop {
        let found = marked(mark);
        if found.is_empty() || Instant::now() > deadline {
            return ended.len();
        }
        for id in found {
            ended.insert(id);
            if let Some(id) = Pid::from_raw(id) {
                // Fails only if it has ended already.
                let _ = kill_process(id, Signal::KILL);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A line for each: its id, its parent's and its command.
pub(crate) fn names(ids: &BTreeSet<i32>) -> Vec<String> {
    let ids = ids.iter().take(MOST_PROCESSES);
    ids.map(|id| format!("{id} (child of {}) {}", parent_of(*id), command(*id)))
        .collect()
}

/// The state of each: its wait channel in the kernel, and the same of its threads.
pub(crate) fn describe(ids: &BTreeSet<i32>) -> String {
    let mut text = String::new();
    for (id, name) in ids.iter().zip(names(ids)) {
        let at = format!("/proc/{id}");
        let _ = writeln!(text, "{name}");
        let _ = writeln!(text, "    {}", waits(&at));
        let stack = fs::read_to_string(format!("{at}/stack")).unwrap_or_default();
        for line in stack.lines().take(MOST_THREADS) {
            let _ = writeln!(text, "        {line}");
        }
        let threads = numbers(Path::new(&format!("{at}/task")));
        for thread in threads.filter(|thread| thread != id).take(MOST_THREADS) {
            let at = format!("{at}/task/{thread}");
            let _ = writeln!(text, "    thread {thread} {}", waits(&at));
        }
    }
    text
}

/// `sleeping in futex_wait_queue, named tokio-rt-worker`.
fn waits(at: &str) -> String {
    let read = |file: &str| fs::read_to_string(format!("{at}/{file}")).unwrap_or_default();
    let status = read("status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("?").trim().to_owned()
    };
    let place = read("wchan");
    let place = match place.trim() {
        "" | "0" => "no wait channel",
        place => place,
    };
    format!("{:?} {} in {place}", field("Name:"), field("State:"))
}

fn numbers(folder: &Path) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fields of `/proc/ID/stat` after the name, which may contain any character.
fn stat(id: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

fn is_alive(id: i32) -> bool {
    stat(id).is_some_and(|stat| !stat.starts_with(['Z', 'X']))
}

fn parent_of(id: i32) -> i32 {
    let stat = stat(id).unwrap_or_default();
    let parent = stat.split(' ').nth(1).and_then(|word| word.parse().ok());
    parent.unwrap_or_default()
}

fn command(id: i32) -> String {
    let bytes = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    text.chars().take(MOST_OF_A_COMMAND).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn children_with_another_environment_are_ended() {
        let mark = format!("unit-{}/1", std::process::id());
        let mut child = Command::new("sh")
            .args(["-c", "env -i sleep 600 & env -i setsid sleep 600 & wait"])
            .env(VARIABLE, &mark)
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let has_three = || {
            let sleeps = names(&marked(&mark)).into_iter();
            sleeps.filter(|name| name.contains("sleep 600")).count() >= 3
        };
        while !has_three() {
            assert!(Instant::now() < deadline, "{:?}", names(&marked(&mark)));
            std::thread::sleep(LOOK_EVERY);
        }
        let described = describe(&marked(&mark));
        assert!(
            described.contains("State") || described.contains("sleeping"),
            "{described}"
        );
        assert!(end(&mark) >= 3);
        assert_eq!(marked(&mark), BTreeSet::new());
        child.wait().unwrap();
    }
}
