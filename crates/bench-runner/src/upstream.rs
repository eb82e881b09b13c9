//! The figures of upstream v1.36.4 with the same load, on a machine like this one.

/// A figure's name, upstream's value in the same unit, and the component that was measured.
const UPSTREAM: [(&str, f64, &str); 16] = [
    ("create", 1_475.0, API_SERVER),
    ("bind, basic, 1000 nodes", 488.0, SCHEDULER),
    ("bind, node affinity, 1000 nodes", 195.0, SCHEDULER),
    ("bind, pod affinity, 1000 nodes", 232.0, SCHEDULER),
    ("bind, pod anti-affinity, 1000 nodes", 209.0, SCHEDULER),
    ("bind, spread, 1000 nodes", 143.0, SCHEDULER),
    ("bind, preferred mix, 1000 nodes", 198.0, SCHEDULER),
    ("bind, basic, 5000 nodes", 267.0, SCHEDULER),
    ("bind, pod affinity, 5000 nodes", 123.0, SCHEDULER),
    ("bind, pod anti-affinity, 5000 nodes", 183.0, SCHEDULER),
    ("bind, spread, 5000 nodes", 174.0, SCHEDULER),
    ("bind, preferred mix, 5000 nodes", 133.0, SCHEDULER),
    // At 50 to 200 MiB/s, where the kernel killed first in all of its trials.
    ("eviction, crossed to dead, median", 8.8, KUBELET),
    ("eviction, crossed to dead, max", 54.3, KUBELET),
    ("eviction, lowest signal", 94.0, KUBELET),
    ("eviction, worst stall of the Guaranteed pod", 18.3, KUBELET),
];

const API_SERVER: &str = "kube-apiserver and etcd 3.4";
const SCHEDULER: &str = "kube-apiserver, etcd 3.4 and kube-scheduler";
const KUBELET: &str = "a kubelet with containerd";

/// Upstream's value of a figure, and the component.
pub(crate) fn figure_of(name: &str) -> Option<(f64, &'static str)> {
    let row = UPSTREAM.iter().find(|(known, ..)| *known == name)?;
    Some((row.1, row.2))
}
