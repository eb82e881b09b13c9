//! The stories in `examples/stories` print their recorded output, which docs/stories.md shows.
//!
//! Each is a test: `tools/08-overcommit` needs kubectl, `root/02-hard-eviction` has to run
//! containers, and `vm/stories` runs some of them again on cgroup v2.
//!
//! With `UPDATE_STORIES=1` what they print is kept, and what is kept is shown; examples/stories/README.md
//! has the commands.

mod story;
mod vm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use plimsoll_testkit::vm::slowness;

use story::Story;

/// Selects stories by parts of their names [default: all].
const STORIES_VARIABLE: &str = "PLIMSOLL_STORIES";

/// How many stories run at once. They wait most of the time.
const AT_ONCE: usize = 4;

/// The same on an emulated machine, where they use the cpu.
const AT_ONCE_WHERE_SLOW: usize = 2;

fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above = crate_folder.ancestors().nth(2);
    above.expect("crates are two folders down").to_owned()
}

fn stories_folder() -> PathBuf {
    repository().join("examples/stories")
}

fn is_updating() -> bool {
    std::env::var_os("UPDATE_STORIES").is_some()
}

fn stories() -> Vec<Story> {
    let entries = std::fs::read_dir(stories_folder()).expect("there are stories");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut stories: Vec<Story> = paths
        .filter(|path| path.is_dir())
        .map(Story::read)
        .collect();
    stories.sort_by(|a, b| a.name().cmp(b.name()));
    stories
}

fn is_selected(name: &str) -> bool {
    let names = std::env::var(STORIES_VARIABLE);
    names.map_or(true, |names| {
        names.split_whitespace().any(|word| name.contains(word))
    })
}

fn trial(story: Story) -> Trial {
    let name = format!("{}/{}", story.needs(), story.name());
    let tier = format!("tier: {}", story.needs());
    Trial::test(name, move || Ok(story.run(is_updating())?))
        .with_kind(tier)
        .with_ignored_flag(true)
}

fn the_page_shows_every_story() -> Result<(), Failed> {
    let file = repository().join("docs/stories.md");
    let page = story::page(&stories());
    if is_updating() {
        std::fs::write(&file, &page)?;
    }
    let shown = std::fs::read_to_string(&file).unwrap_or_default();
    match shown == page {
        true => Ok(()),
        false => Err(format!(
            "docs/stories.md is outdated; UPDATE_STORIES=1 writes it:\n{page}"
        ))?,
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let at_once = match slowness() {
        1 => AT_ONCE,
        _ => AT_ONCE_WHERE_SLOW,
    };
    arguments.test_threads.get_or_insert(at_once);
    let mut trials: Vec<Trial> = stories().into_iter().map(trial).collect();
    trials.retain(|trial| is_selected(trial.name()));
    trials.push(Trial::test(
        "the_page_shows_every_story",
        the_page_shows_every_story,
    ));
    trials.push(vm::trial());
    libtest_mimic::run(&arguments, trials).exit_code()
}
