//! A story: a script and its output.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_testkit::inventory::{Inventory, Place};

/// What a story needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// kubectl.
    Tools,
    /// To run containers.
    Root,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Needs::Tools => "tools",
            Needs::Root => "root",
        })
    }
}

/// A folder with a script `run` and its `output`.
pub(crate) struct Story {
    folder: PathBuf,
    script: String,
}

impl Story {
    pub(crate) fn read(folder: PathBuf) -> Story {
        let script = std::fs::read_to_string(folder.join("run"));
        let script = script.unwrap_or_else(|e| panic!("{} has no run: {e}", folder.display()));
        Story { folder, script }
    }

    /// The name of its folder.
    pub(crate) fn name(&self) -> &str {
        let name = self.folder.file_name().and_then(|name| name.to_str());
        name.expect("folders of stories have plain names")
    }

    pub(crate) fn needs(&self) -> Needs {
        match self
            .script
            .lines()
            .any(|line| line.starts_with("start_node"))
        {
            true => Needs::Root,
            false => Needs::Tools,
        }
    }

    /// Its first comment.
    fn gist(&self) -> &str {
        let comment = self.script.lines().nth(1);
        let comment = comment.and_then(|line| line.strip_prefix("# "));
        comment.unwrap_or_else(|| panic!("{} does not begin with a comment", self.name()))
    }

    fn output_file(&self) -> PathBuf {
        self.folder.join("output")
    }

    fn kept(&self) -> String {
        std::fs::read_to_string(self.output_file()).unwrap_or_default()
    }

    /// Runs the script and compares, or keeps what it prints. `Err` has the difference.
    pub(crate) fn run(&self, keeps: bool) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{} does not start: {error}", self.name());
        let work = tempfile::tempdir().map_err(failed)?;
        let reported = Command::new(self.folder.join("run"))
            .env("PLIMSOLL", Path::new(env!("CARGO_BIN_EXE_plimsoll")))
            .env("TMPDIR", work.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let place = place(work.path(), reported.id());
        let output = reported.wait_with_output().map_err(failed)?;
        let printed = trimmed(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            let complaints = String::from_utf8_lossy(&output.stderr);
            let name = self.name();
            return Err(format!("--- {name} failed:\n{printed}\n{complaints}"));
        }
        let left = Inventory::of_place(&place).beyond(&Inventory::default());
        if !left.is_empty() {
            return Err(format!("--- {} leaves behind: {left:#?}", self.name()));
        }
        if keeps {
            let written = std::fs::write(self.output_file(), &printed);
            return written.map_err(|error| error.to_string());
        }
        let kept = self.kept();
        match blurred(&printed) == blurred(&kept) {
            true => Ok(()),
            false => Err(format!(
                "--- {} printed:\n{printed}\n--- and not:\n{kept}",
                self.name()
            )),
        }
    }
}

/// What a story has for itself, by the id of its process; `lib.bash` says the same.
fn place(work: &Path, id: u32) -> Place {
    Place {
        folder: work.to_owned(),
        data: work.to_owned(),
        cgroups: format!("/plimsoll-story-{id}"),
        bridge: format!("pls{id}"),
    }
}

/// Without white space at the ends of lines, and with one line end at the end.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Without the amounts that were measured, which are never the same twice; now and then one is a
/// round number in a larger unit.
fn blurred(text: &str) -> String {
    let mut blurred = text.to_owned();
    for before in ["available:", "using"] {
        let mut parts = blurred.split(before);
        let mut rest = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let amount = part.trim_start();
            let space = &part[..part.len() - amount.len()];
            let after = amount.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
            let is_measured = amount.starts_with(|letter: char| letter.is_ascii_digit());
            rest += before;
            rest += space;
            rest += if is_measured { "…" } else { amount };
            rest += if is_measured { after } else { "" };
        }
        blurred = rest;
    }
    blurred
}

/// The page that shows all of them.
pub(crate) fn page(stories: &[Story]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for story in stories {
        let (name, gist, output) = (story.name(), story.gist(), story.kept());
        let title = title(name);
        let output = output.trim();
        write!(
            page,
            "\n## {title}\n\n{gist} [`{name}`](../examples/stories/{name})\n\n```console\n{output}\n```\n"
        )
        .expect("text can be written to");
    }
    page
}

const INTRODUCTION: &str = "\
# Stories

Scripts that show what happens when pods request or use more than a node has. Each story is a script in
[`examples/stories`](../examples/stories) with the manifests it uses; it starts a cluster of its own, shows what happens
with `kubectl`, and leaves nothing behind. Those that run containers need root:

```console
# cargo build --release
# examples/stories/02-hard-eviction/run
```

Below is their output, with cgroup v1 and v2. Tests run every one of them and compare, so that this page stays
true; only measured amounts of memory and disk differ from run to run. `busybox`, `jq` and `kubectl` have to be installed.
";

/// `02-hard-eviction` becomes `Hard eviction`.
fn title(name: &str) -> String {
    let words = name.split_once('-').map_or(name, |(_, words)| words);
    let words = words.replace('-', " ");
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}
