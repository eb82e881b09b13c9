//! The stories in `examples/stories` print what is kept beside them, and docs/stories.md shows it.
//!
//! `UPDATE_STORIES=1 cargo test -p plimsoll --test stories -- --include-ignored` writes anew what is
//! kept and shown.

mod story;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use story::{Needs, Story};

/// How many stories are told at once. They wait most of the time.
const AT_ONCE: usize = 4;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_updating() -> bool {
    std::env::var_os("UPDATE_STORIES").is_some()
}

fn stories() -> Vec<Story> {
    let folder = repository().join("examples/stories");
    let entries = std::fs::read_dir(folder).expect("there are stories");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut stories: Vec<Story> = paths
        .filter(|path| path.is_dir())
        .map(Story::read)
        .collect();
    stories.sort_by(|a, b| a.name().cmp(b.name()));
    stories
}

/// Tells all stories that need no more than that, and lists those that went otherwise.
fn tell_all(needs: Needs) {
    let waiting: Vec<Story> = stories()
        .into_iter()
        .filter(|s| s.needs() == needs)
        .collect();
    assert!(!waiting.is_empty(), "no story needs {needs:?}");
    let (waiting, wrong) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    let next = || waiting.lock().expect("nobody panics").pop();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(story) = next() {
                    let told = story.tell(is_updating());
                    wrong.lock().expect("nobody panics").extend(told.err());
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "tier: root"]
fn stories_of_real_nodes_go_as_they_are_kept() {
    tell_all(Needs::Root);
}

#[test]
#[ignore = "tier: tools"]
fn stories_of_the_api_go_as_they_are_kept() {
    tell_all(Needs::Tools);
}

#[test]
fn the_page_shows_every_story() {
    let file = repository().join("docs/stories.md");
    let page = story::page(&stories());
    if is_updating() {
        std::fs::write(&file, &page).expect("the page can be written");
    }
    let shown = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        shown == page,
        "docs/stories.md is not what stories keep; UPDATE_STORIES=1 writes it:\n{page}"
    );
}
