//! Attacks of hostile containers. Each runs as root with the capabilities that every container has, in
//! a pod of its own.

use serde_json::{Value, json};

use super::program::{answer, call, number};

/// An attempt at an action that must fail or be bounded.
pub(super) struct Attempt {
    /// The name in the table; with dashes, the pod's name.
    pub(super) name: &'static str,
    /// A shell script.
    pub(super) script: String,
    pub(super) expected: Expected,
    /// Changes the pod, whose container is the first.
    pub(super) change: fn(&mut Value, &Places),
}

/// Directories of the node that pods of these tests mount.
pub(super) struct Places {
    /// The logs of all pods.
    pub(super) logs: String,
}

/// How an attempt must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Each of the script's lines fails.
    Refused,
    /// The script prints how many MiB it could fill, and that is no more than this.
    Bounded(u64),
    /// It reaches its process limit, and no more.
    Processes,
    /// The pod is evicted.
    Evicted,
    /// The kernel kills it inside its own limit.
    OomKilled,
    /// It keeps running, and must only end on SIGTERM.
    Runs,
}

use Expected::{Bounded, Evicted, OomKilled, Processes, Refused, Runs};

/// Of the attempt of a root with all rights in a user namespace of its own.
pub(super) const USER_NAMESPACE: &str = "user namespace";

/// The process limit of a pod of these tests.
pub(super) const MAX_PIDS: u64 = 48;

/// The content of a file beside the logs of pods, which no pod may read.
pub(super) const SECRET: &str = "plimsoll-secret-of-the-node";

/// Programs of the image, by name and mode, which make one system call each.
pub(super) fn programs() -> [(&'static str, u32, Vec<u8>); 7] {
    const PACKET: i32 = 17;
    const RAW: i32 = 3;
    const SESSION: i32 = -3;
    let socket = call(number::SOCKET, [PACKET, RAW, 0, 0]);
    [
        ("keyctl", 0o755, call(number::KEYCTL, [0, SESSION, 0, 0])),
        ("packet-socket", 0o755, socket),
        ("syslog", 0o755, call(number::SYSLOG, [3, 0, 0, 0])),
        ("bpf", 0o755, call(number::BPF, [0; 4])),
        ("kexec", 0o755, call(number::KEXEC_LOAD, [0; 4])),
        ("userfaultfd", 0o755, call(number::USERFAULTFD, [0; 4])),
        // Ends with the number of its effective user, and belongs to root.
        ("effective-user", 0o4755, answer(number::GETEUID)),
    ]
}

/// What scripts begin with. `try` runs a line and prints whether it succeeded; `allowed` runs a
/// program and succeeds unless the kernel forbids its call or does not have it for the container.
pub(super) const PRELUDE: &str = "
try() {
    if output=$(eval \"$1\" 2>&1); then echo \"succeeded: $1: $output\"; else echo \"refused: $1: $output\"; fi
}
allowed() { \"$@\"; code=$?; [ $code != 1 ] && [ $code != 38 ]; }
";

/// All attempts.
pub(super) fn all() -> Vec<Attempt> {
    let lines = |lines: &[&str]| -> String {
        let tries = lines.iter().map(|line| format!("try '{line}'\n"));
        tries.collect()
    };
    let refused = |name, tried: &[&str]| Attempt {
        name,
        script: lines(tried),
        expected: Refused,
        change: |_, _| {},
    };
    let with = |attempt: Attempt, change: fn(&mut Value, &Places)| Attempt { change, ..attempt };
    let other = |name, script: &str, expected| Attempt {
        name,
        script: script.to_owned(),
        expected,
        change: |_, _| {},
    };
    vec![
        refused(
            "cgroup limits",
            &[
                "echo -1 > $(find /sys/fs/cgroup -name memory.limit_in_bytes -o -name memory.max | head -n 1)",
                "echo 100000 > $(find /sys/fs/cgroup -name cpu.shares -o -name cpu.weight | head -n 1)",
                "echo max > $(find /sys/fs/cgroup -name pids.max | head -n 1)",
                "find /sys/fs/cgroup -type f | while read file; do (: >> $file) 2> /dev/null && echo $file; done | grep .",
            ],
        ),
        refused(
            "cgroup processes",
            &[
                "echo 1 > $(find /sys/fs/cgroup -name cgroup.procs | head -n 1)",
                "mkdir $(dirname $(find /sys/fs/cgroup -name cgroup.procs | head -n 1))/own",
                "echo /bin/sh > $(find /sys/fs/cgroup -name release_agent | grep . || echo /proc/none)",
            ],
        ),
        refused(
            "cgroup mounts",
            &[
                "mount -o remount,rw /sys/fs/cgroup",
                "mount -o remount,bind,rw $(dirname $(find /sys/fs/cgroup -name cgroup.procs | head -n 1))",
                "umount /sys/fs/cgroup",
                "mkdir /tmp/c && mount -t cgroup2 none /tmp/c",
                "mkdir /tmp/d && mount -t cgroup -o memory none /tmp/d",
            ],
        ),
        refused(
            "self-freeze",
            &[
                "echo FROZEN > $(find /sys/fs/cgroup -name freezer.state | grep . || echo /proc/none)",
                "mkdir /sys/fs/cgroup/freezer/own",
                "echo 1 > $(find /sys/fs/cgroup -name cgroup.freeze | grep . || echo /proc/none)",
            ],
        ),
        other("frozen", "", Runs),
        other("frozen inside", "", Runs),
        other(
            "deaf",
            "trap \"\" TERM INT; while :; do sleep 1; done",
            Runs,
        ),
        other(
            "fork bomb",
            "while :; do (while :; do sleep 1000 & done) 2> /dev/null; done",
            Processes,
        ),
        other(
            "/dev/shm",
            "dd if=/dev/zero of=/dev/shm/fill bs=1M count=80; \
             echo bound $(du -m /dev/shm | cut -f 1)",
            Bounded(64),
        ),
        with(
            other(
                "tmpfs",
                "dd if=/dev/zero of=/memory/fill bs=1M count=40; \
                 echo bound $(du -m /memory | cut -f 1)",
                Bounded(8),
            ),
            |pod, _| {
                mount(
                    pod,
                    "memory",
                    &json!({ "emptyDir": { "medium": "Memory", "sizeLimit": "8Mi" } }),
                    &json!({ "mountPath": "/memory" }),
                );
            },
        ),
        other(
            "memory",
            "x=$(head -c 200000000 /dev/zero | tr \"\\0\" x); echo succeeded",
            OomKilled,
        ),
        other(
            "logs",
            "while :; do head -c 500000 /dev/zero | tr \"\\0\" x | fold -w 1000; sleep 0.2; done",
            Evicted,
        ),
        other(
            "writable layer",
            "n=0; while :; do n=$((n + 1)); head -c 1000000 /dev/zero > /tmp/fill$n; sleep 0.2; done",
            Evicted,
        ),
        refused(
            "mount",
            &[
                "mount -t tmpfs none /tmp",
                "mount --bind / /tmp",
                "mount -t proc proc /tmp",
                "mount -o remount,rw /sys",
                "umount /proc",
                "unshare -m true",
                "unshare -r true",
            ],
        ),
        refused(
            "mknod",
            &[
                "mknod /tmp/memory c 1 1 && head -c 1 /tmp/memory",
                "mknod /tmp/kernel c 1 11 && echo x > /tmp/kernel",
                "for disk in $(seq 0 16); do mknod /tmp/d$disk b 254 $disk; \
                 head -c 1 /tmp/d$disk && exit 0; done; false",
            ],
        ),
        refused(
            "other pods",
            &[
                // The pattern does not match itself.
                "cat /proc/[0-9]*/cmdline | grep -q \"neighbour-secre[t]\"",
                "cat /proc/[0-9]*/environ | grep -q \"neighbour-secre[t]\"",
            ],
        ),
        refused("keys", &["grep . /proc/keys", "allowed keyctl"]),
        refused(
            "kernel calls",
            &[
                "allowed syslog",
                "allowed bpf",
                "allowed kexec",
                "allowed userfaultfd",
            ],
        ),
        with(
            refused(
                USER_NAMESPACE,
                &[
                    "mknod /tmp/memory c 1 1 && head -c 1 /tmp/memory",
                    "mount -t cgroup -o memory none /mnt",
                    "cgroup=$(dirname $(find /sys/fs/cgroup -name cgroup.procs | head -n 1)); \
                     mount -o remount,bind,rw $cgroup; echo 1 > $cgroup/cgroup.procs",
                    "mount -o remount,rw /sys; echo 0 > /sys/kernel/mm/ksm/run",
                    "umount /proc/sys; echo 0 > /proc/sys/kernel/panic",
                    "umount /proc/sysrq-trigger; echo h > /proc/sysrq-trigger",
                    "echo -1000 > /proc/self/oom_score_adj",
                    "for disk in $(seq 0 16); do mknod /tmp/d$disk b 254 $disk; \
                     head -c 1 /tmp/d$disk && exit 0; done; false",
                ],
            ),
            |pod, _| {
                pod["spec"]["hostUsers"] = json!(false);
                // Its volume is in memory, which older kernels cannot map.
                pod["spec"]["automountServiceAccountToken"] = json!(false);
                pod["spec"]["containers"][0]["securityContext"] = json!({ "capabilities": { "add": [
                    "SYS_ADMIN", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_MODULE", "NET_ADMIN",
                    "DAC_READ_SEARCH",
                ] } });
            },
        ),
        with(refused("raw sockets", &["packet-socket"]), |pod, _| {
            pod["spec"]["containers"][0]["securityContext"] =
                json!({ "capabilities": { "drop": ["ALL"] } });
        }),
        with(refused("setuid", &["effective-user"]), |pod, _| {
            pod["spec"]["containers"][0]["securityContext"] =
                json!({ "allowPrivilegeEscalation": false, "runAsUser": 1000 });
        }),
        refused(
            "/proc and /sys",
            &[
                "echo h > /proc/sysrq-trigger",
                "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
                "cat /proc/sys/vm/overcommit_memory > /proc/sys/vm/overcommit_memory",
                "echo -1000 > /proc/self/oom_score_adj",
                "head -c 1 /proc/kcore | grep .",
                "echo > /sys/kernel/uevent_helper",
                "echo 0 > /sys/kernel/mm/ksm/run",
                "for file in /sys/module/*/parameters/*; do (: >> $file) 2> /dev/null && exit 0; done; false",
            ],
        ),
        with(
            Attempt {
                script: "while :; do rm -rf /all/x; mkdir /all/x; rmdir /all/x; \
                         ln -s / /all/x; rm /all/x; done"
                    .to_owned(),
                ..other("subPath race", "", Runs)
            },
            |pod, _| {
                mount(
                    pod,
                    "shared",
                    &json!({ "emptyDir": {} }),
                    &json!({ "mountPath": "/all" }),
                );
                for number in 0..4 {
                    let mut looks = pod["spec"]["containers"][0].clone();
                    looks["name"] = json!(format!("looks-{number}"));
                    let look = "[ ! -e /part/proc/1 ] || echo succeeded; sleep 1";
                    looks["command"] = json!(["sh", "-c", look]);
                    looks["volumeMounts"] =
                        json!([{ "name": "shared", "mountPath": "/part", "subPath": "x" }]);
                    let containers = pod["spec"]["containers"].as_array_mut();
                    containers.expect("a pod has containers").push(looks);
                }
            },
        ),
        with(
            other(
                "log link race",
                "log=$(ls -d /logs/*_log-link-race_*/main/0.log); echo done; \
                 while :; do ln -s ../../../secret $log.new; mv $log $log.old; \
                 mv $log.new $log; sleep 0.01; mv $log.old $log; done",
                Runs,
            ),
            |pod, places| {
                mount(
                    pod,
                    "logs",
                    &json!({ "hostPath": { "path": places.logs } }),
                    &json!({ "mountPath": "/logs" }),
                );
            },
        ),
    ]
}

/// Adds a volume to a pod's container.
fn mount(pod: &mut Value, name: &str, source: &Value, place: &Value) {
    let mut volume = source.clone();
    volume["name"] = json!(name);
    pod["spec"]["volumes"] = json!([volume]);
    let mut place = place.clone();
    place["name"] = json!(name);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([place]);
}
