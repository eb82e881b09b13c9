//! Everything on the machine that belongs to a cluster, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_testkit::cgroup;

use crate::cluster::Cluster;

/// How deep folders are looked at. What is below belongs to images and volumes.
const DEPTH: usize = 6;

/// There from the first pod on.
const IGNORED: [&str; 2] = ["runtime/addresses", "runtime/addresses/last"];

/// Holds the latest decisions, and never more than so many.
const BOUNDED: &str = "kubelet/decisions";

/// What there is, of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory(BTreeMap<&'static str, BTreeSet<String>>);

impl Inventory {
    /// Of a cluster as it is now.
    pub(crate) fn take(cluster: &Cluster) -> Inventory {
        let folder = cluster.folder();
        let mut told = cluster.arguments.iter();
        let bridge = told
            .find(|word| *word == "--bridge")
            .and_then(|_| told.next());
        let bridge = Path::new("/sys/class/net").join(bridge.expect("a bridge of its own"));
        Inventory(BTreeMap::from([
            ("cgroup", cgroup::below(cluster.cgroup_root())),
            ("mount", mounts(folder)),
            (
                "process",
                processes(folder, cluster.cgroup_root(), cluster.up.id()),
            ),
            ("network card", names(&bridge.join("brif"))),
            ("file", files(&cluster.data_dir())),
        ]))
    }

    /// What is here and not there: kind and name. Of a folder and what is in it, the folder.
    pub(crate) fn beyond(&self, other: &Inventory) -> Vec<(&'static str, String)> {
        let mut beyond = Vec::new();
        for (kind, names) in &self.0 {
            let known = other.0.get(kind);
            let is_new = |name: &str| {
                names.contains(name) && !known.is_some_and(|known| known.contains(name))
            };
            let outermost = names.iter().filter(|name| {
                let above = Path::new(name).parent().and_then(Path::to_str);
                is_new(name) && !above.is_some_and(is_new)
            });
            beyond.extend(outermost.map(|name| (*kind, name.clone())));
        }
        beyond
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

fn mounts(folder: &Path) -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let places = table.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = places.filter(|place| Path::new(place).starts_with(folder));
    ours.map(str::to_owned).collect()
}

fn files(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(root, root, DEPTH, &mut found);
    found
}

fn collect(root: &Path, folder: &Path, depth: usize, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let below = path.strip_prefix(root).unwrap_or(&path);
        let is_ignored = IGNORED.iter().any(|ignored| below == Path::new(ignored));
        if !is_ignored {
            found.insert(below.display().to_string());
        }
        let is_bounded = below == Path::new(BOUNDED);
        if depth > 1 && !is_bounded && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(root, &path, depth - 1, found);
        }
    }
}

/// Processes, other than the agent itself, that run in the cgroups, have their root in the folder,
/// or hold a file of it open.
fn processes(folder: &Path, cgroups: &str, agent: u32) -> BTreeSet<String> {
    let ids = names(Path::new("/proc"));
    let ids = ids.iter().filter_map(|name| name.parse::<u32>().ok());
    let others = ids.filter(|id| *id != agent && *id != std::process::id());
    let ours = others.filter_map(|id| {
        let proc = PathBuf::from(format!("/proc/{id}"));
        let is_inside = fs::read_to_string(proc.join("cgroup"))
            .is_ok_and(|text| text.lines().any(|line| is_below(line, cgroups)));
        let descriptors = fs::read_dir(proc.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut links = descriptors
            .map(|entry| entry.path())
            .chain([proc.join("root"), proc.join("cwd")]);
        let is_ours = is_inside
            || links.any(|link| fs::read_link(link).is_ok_and(|to| to.starts_with(folder)));
        let words = fs::read(proc.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        is_ours.then_some(words)
    });
    // An agent that was started again has a helper of another id.
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let numbered = ours.map(|words| {
        let count = counts.entry(words.clone()).or_default();
        *count += 1;
        format!("{words}({count})")
    });
    numbered.collect()
}

fn is_below(line: &str, cgroups: &str) -> bool {
    let path = line.rsplit(':').next().unwrap_or_default();
    Path::new(path).starts_with(cgroups)
}
