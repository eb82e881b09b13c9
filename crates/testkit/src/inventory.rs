//! Everything on the machine that belongs to a node, by name, so that tests find leftovers.
//!
//! It is read from the kernel, never from the node's own records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup;
use crate::nftables;

/// How deep folders are listed. The levels below belong to images and volumes.
const DEPTH: usize = 6;

/// There from the first pod on.
const IGNORED: [&str; 2] = ["runtime/addresses", "runtime/addresses/last"];

/// Holds the latest decisions, and never more than so many.
const BOUNDED: &str = "kubelet/decisions";

/// Kernel settings of the machine that nodes change.
const SYSCTLS: [&str; 7] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
];

/// What a node has for itself.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder that contains all its files.
    pub folder: PathBuf,
    /// Where it keeps its data.
    pub data: PathBuf,
    /// The cgroup below which its pods are.
    pub cgroups: String,
    /// The bridge of its pods.
    pub bridge: String,
}

/// The items, of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory(BTreeMap<&'static str, BTreeSet<String>>);

impl Inventory {
    /// The items that a node, whose agent has that process id, has of its pods.
    pub fn of_pods(place: &Place, agent: u32) -> Inventory {
        Inventory(BTreeMap::from([
            ("cgroup", cgroup::below(&place.cgroups)),
            ("mount", mounts(&place.folder)),
            ("process", processes(place, Some(agent))),
            ("network card", cards(&place.bridge)),
            ("file", files(&place.data)),
        ]))
    }

    /// The items that a node has on the machine while it runs, and must not have once it is
    /// removed. Its files are not included, nor cgroups that the test has created itself.
    pub fn of_node(place: &Place) -> Inventory {
        let mut all = Inventory::of_place(place);
        let ours = ["kubepods", "kubepods.slice", "kubelet", "kubelet-walks"];
        let is_ours = |path: &String| {
            Path::new(path)
                .iter()
                .any(|part| ours.iter().any(|our| part == *our))
        };
        all.0.entry("cgroup").or_default().retain(is_ours);
        all.0.remove("file");
        all
    }

    /// Everything that is in a place.
    pub fn of_place(place: &Place) -> Inventory {
        let table = format!("plimsoll-{}", place.bridge);
        let tables = nftables::tables().into_iter().filter(|one| *one == table);
        let link = PathBuf::from("/sys/class/net").join(&place.bridge);
        let link = link.exists().then(|| place.bridge.clone());
        let mut cgroups = cgroup::below(&place.cgroups);
        if cgroup::exists(&place.cgroups) {
            cgroups.insert(place.cgroups.clone());
        }
        Inventory(BTreeMap::from([
            ("cgroup", cgroups),
            ("mount", mounts(&place.folder)),
            ("process", processes(place, None)),
            ("network card", cards(&place.bridge)),
            ("bridge", link.into_iter().collect()),
            ("nftables table", tables.collect()),
            ("file", files(&place.data)),
        ]))
    }

    /// As [`Self::of_node`], with its files and what all nodes of the machine share.
    pub fn of_machine(place: &Place) -> Inventory {
        let mut all = Inventory::of_node(place);
        let run = names(Path::new("/run")).into_iter();
        all.0.extend([
            ("file", files(&place.data)),
            ("network namespace", names(Path::new("/run/netns"))),
            ("log", names(Path::new("/var/log/pods"))),
            ("link to a log", names(Path::new("/var/log/containers"))),
            ("sysctl", SYSCTLS.iter().map(|path| sysctl(path)).collect()),
            (
                "in /run",
                run.filter(|name| name.contains("plimsoll")).collect(),
            ),
        ]);
        all
    }

    /// The items here that `other` lacks: kind and name. Of a folder and its content, the folder.
    pub fn beyond(&self, other: &Inventory) -> Vec<(&'static str, String)> {
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

    /// The kinds of which there is something.
    pub fn kinds(&self) -> BTreeSet<&'static str> {
        let found = self.0.iter().filter(|(_, names)| !names.is_empty());
        found.map(|(kind, _)| *kind).collect()
    }

    /// The network interfaces in it that the machine still has, whatever they are joined to.
    pub fn existing_interfaces(&self) -> Vec<String> {
        let cards = self.0.get("network card").into_iter().flatten();
        let there = cards.filter(|card| Path::new("/sys/class/net").join(card).exists());
        there.cloned().collect()
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

fn sysctl(path: &str) -> String {
    let value = fs::read_to_string(Path::new("/proc/sys").join(path)).unwrap_or_default();
    format!("{path} = {}", value.trim())
}

fn cards(bridge: &str) -> BTreeSet<String> {
    names(&Path::new("/sys/class/net").join(bridge).join("brif"))
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

/// Processes, other than the agent itself, that run in the cgroups, have their root in the data, or
/// hold a file of it open.
fn processes(place: &Place, agent: Option<u32>) -> BTreeSet<String> {
    let ids = names(Path::new("/proc"));
    let ids = ids.iter().filter_map(|name| name.parse::<u32>().ok());
    let others = ids.filter(|id| Some(*id) != agent && *id != std::process::id());
    let ours = others.filter_map(|id| {
        let proc = PathBuf::from(format!("/proc/{id}"));
        let is_inside = fs::read_to_string(proc.join("cgroup"))
            .is_ok_and(|text| text.lines().any(|line| is_below(line, &place.cgroups)));
        let descriptors = fs::read_dir(proc.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut links = descriptors
            .map(|entry| entry.path())
            .chain([proc.join("root"), proc.join("cwd")]);
        let is_ours = is_inside
            || links.any(|link| fs::read_link(link).is_ok_and(|to| to.starts_with(&place.data)));
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
