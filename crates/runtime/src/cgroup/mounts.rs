//! The mounts of a process, as far as they are cgroup file systems.

use std::path::PathBuf;

/// A mounted cgroup file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CgroupMount {
    /// Where it is mounted.
    pub(super) point: PathBuf,
    /// What it holds.
    pub(super) kind: MountKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MountKind {
    /// A tree of cgroup v1 and its controllers; `systemd` for the one with that name.
    V1(Vec<String>),
    /// The tree of cgroup v2.
    V2,
}

/// Controllers of cgroup v1. Other words among the options of a mount are flags.
const V1_CONTROLLERS: [&str; 14] = [
    "cpuset",
    "cpu",
    "cpuacct",
    "blkio",
    "memory",
    "devices",
    "freezer",
    "net_cls",
    "perf_event",
    "net_prio",
    "hugetlb",
    "pids",
    "rdma",
    "misc",
];

/// Reads the text of `/proc/<pid>/mountinfo`; see proc_pid_mountinfo(5).
pub(super) fn parse_mountinfo(text: &str) -> Vec<CgroupMount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<CgroupMount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let point = mount.split(' ').nth(4)?;
    let mut fields = file_system.split(' ');
    let kind = match fields.next()? {
        "cgroup2" => MountKind::V2,
        "cgroup" => {
            let options = fields.nth(1)?.split(',');
            let controllers = options.filter_map(|option| match option.strip_prefix("name=") {
                Some(name) => Some(name.to_owned()),
                None => V1_CONTROLLERS.contains(&option).then(|| option.to_owned()),
            });
            MountKind::V1(controllers.collect())
        }
        _ => return None,
    };
    Some(CgroupMount {
        point: PathBuf::from(unescaped(point)),
        kind,
    })
}

/// The kernel writes blanks and backslashes in paths as `\` and three octal digits.
fn unescaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).map(|digits| u8::from_str_radix(digits, 8));
        match code {
            Some(Ok(code)) => {
                out.push(char::from(code));
                rest = &after[3..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cgroup_mounts_are_read_and_flags_are_no_controllers() {
        let text = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct,xattr
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /a\\040b rw,relatime - cgroup2 cgroup2 rw,nsdelegate
broken
";
        let v1 = |point: &str, controllers: &[&str]| CgroupMount {
            point: PathBuf::from(point),
            kind: MountKind::V1(controllers.iter().map(|name| (*name).to_owned()).collect()),
        };
        assert_eq!(
            parse_mountinfo(text),
            [
                v1("/sys/fs/cgroup/cpu,cpuacct", &["cpu", "cpuacct"]),
                v1("/sys/fs/cgroup/systemd", &["systemd"]),
                CgroupMount {
                    point: PathBuf::from("/a b"),
                    kind: MountKind::V2
                },
            ]
        );
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescaped(r"a\b\0401\04"), r"a\b 1\04");
    }
}
