//! The decisions of Plimsoll: what fits on a node, what a pod may use, what is refused and why.
//!
//! Everything here is a function of its arguments. There is no clock, file, socket, thread,
//! randomness or async in this crate: time and observations are passed in, decisions and their
//! reasons come back as data. That is what lets the simulator run the production code.
//!
//! Reading order, which is also the order in which modules may import each other (a module uses
//! only those above it; the tidy test checks this):
//!
//! 1. [`quantity`] – Kubernetes' numbers: parse, print, compare, round.
//! 2. [`resources`] – typed amounts (`Millicores`, `Bytes`, `Count`) and lists of them.
//! 3. [`problem`] – what is wrong with an input: field, value, rule.
//! 4. [`object`] – views of API objects: pods, nodes, selectors, taints.
//! 5. [`duration`] – Go durations: parse, print, add.
//! 6. [`threshold`] – eviction signals and their thresholds.
//! 7. [`config`] – node configuration from kubelet and OKD files and flags.
//! 8. [`allocatable`] – capacity minus reservations minus hard lines, term by term.
//! 9. [`devices`] – devices of device plugins, and the containers that have them.
//! 10. [`cgroup`] – the desired cgroup tree as data, v1 and v2.
//! 11. [`user_namespaces`] – which ids of the node the users of a pod have.
//! 12. [`admission`] – what is filled in, changed or refused before an object is stored.
//! 13. [`scheduling`] – which node a pod goes to, and why not the others.
//! 14. [`eviction`] – which pod leaves a node that runs short, and when.
//! 15. [`lifecycle`] – what becomes of nodes, pods and their records as time passes.
//! 16. [`lint`] – advice on configurations and manifests.
//! 17. [`cron`] – schedules of CronJobs: parse, the next time, in a time zone.

pub mod admission;
pub mod allocatable;
pub mod cgroup;
pub mod config;
pub mod cron;
pub mod devices;
pub mod duration;
pub mod eviction;
pub mod lifecycle;
pub mod lint;
pub mod object;
pub mod problem;
pub mod quantity;
pub mod resources;
pub mod scheduling;
pub mod threshold;
pub mod user_namespaces;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
