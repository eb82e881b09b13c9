//! The explanation of a pod from everything that was read.

use k8s_openapi::api::core::v1::{Event, Pod};
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::summary::PodStats;
use plimsoll_core::object::pod::is_terminal_phase;
use plimsoll_core::scheduling::configuration::Configuration;
use plimsoll_core::scheduling::filters::Cycle;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::profile::Profile;

use super::containers::{Logs, explain_containers};
use super::deleted::DELETED;
use super::ended::{explain_end, explain_oom, is_evicted, message_of};
use super::events;
use super::evicted::explain_record;
use super::pending::{self, Case};
use super::placed::explain_placed;
use super::report::{API_VERSION, Displaced, Evicted, Pending, PodReport};
use super::scheduler_traces::{DEFAULT_SCHEDULER, SchedulerTraces, Verdict};
use super::snapshot::Snapshot;

/// Everything that was read of a pod.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub namespace: String,
    pub name: String,
    /// `None` if the pod is deleted.
    pub pod: Option<Pod>,
    pub events: Vec<Event>,
    /// Decisions that evicted it, with the node; the latest last.
    pub records: Vec<(String, Record)>,
    /// Events of controllers that deleted pods of this namespace; read only for deleted pods.
    pub deletions: Vec<Event>,
    /// Its node, if that is cordoned and the pod is deleted or being deleted.
    pub cordoned_node: Option<String>,
    /// Events of pods that were preempted for it.
    pub preemptions: Vec<Event>,
    /// The last log lines of its containers.
    pub logs: Logs,
    /// The traces of its scheduler, if the pod has no node.
    pub scheduler: Option<SchedulerTraces>,
    /// The state of the cluster, if the pod has not ended.
    pub snapshot: Option<Snapshot>,
    /// Its usage.
    pub usage: Option<PodStats>,
    pub unknown: Vec<String>,
}

impl Found {
    fn uid(&self) -> Option<String> {
        let own = self.pod.as_ref().and_then(|pod| pod.metadata.uid.clone());
        let recorded = || {
            let (_, record) = self.records.last()?;
            let name = format!("{}/{}", self.namespace, self.name);
            let mut evictions = record.decision.evictions.iter();
            let own = evictions.find(|eviction| eviction.pod == name)?;
            Some(own.uid.clone())
        };
        own.or_else(recorded)
            .or_else(|| events::latest_uid(&self.events))
    }

    pub fn node(&self) -> Option<String> {
        let spec = self.pod.as_ref().and_then(|pod| pod.spec.as_ref());
        let own = spec.and_then(|spec| spec.node_name.clone());
        let recorded = || self.records.last().map(|(node, _)| node.clone());
        own.or_else(recorded)
            .or_else(|| events::node_of(&self.events))
    }
}

/// The whole explanation.
pub fn explain_pod(found: &Found, configuration: &Configuration) -> PodReport {
    let uid = found.uid();
    let pod = found.pod.as_ref();
    let status = pod.and_then(|pod| pod.status.as_ref());
    let phase = status.and_then(|status| status.phase.clone());
    // Events of other pods of the same name do not count.
    let is_own = |event: &&Event| uid.is_none() || event.involved_object.uid == uid;
    let events: Vec<Event> = found.events.iter().filter(is_own).cloned().collect();
    let mut report = PodReport {
        api_version: API_VERSION,
        kind: "PodExplanation",
        namespace: found.namespace.clone(),
        name: found.name.clone(),
        node: found.node(),
        phase,
        events: events::rows(&events),
        unknown: found.unknown.clone(),
        ..PodReport::default()
    };
    report.evicted = explain_evicted(found, uid.as_deref(), report.node.as_deref());
    if report.evicted.is_none() {
        report.ended = explain_end(found, &events);
    }
    if let Some(pod) = pod {
        report.troubles = explain_containers(pod, &events, &found.logs);
        report.displaced = found.preemptions.iter().map(displaced).collect();
        let unread = found.logs.iter().filter_map(|(container, log)| {
            let reason = log.as_ref().err()?;
            Some(format!("the log of container {container}: {reason}"))
        });
        report.unknown.extend(unread);
        report.oom_killed = explain_oom(pod, found.usage.as_ref());
        place(&mut report, found, pod, &events, configuration);
    }
    report.uid = uid;
    report.headline = headline(&report, pod);
    report
}

fn explain_evicted(found: &Found, uid: Option<&str>, node: Option<&str>) -> Option<Evicted> {
    let records = found.records.iter().rev();
    let mut recorded =
        records.filter_map(|(node, record)| explain_record(record, node, uid.unwrap_or_default()));
    if let Some(evicted) = recorded.next() {
        return Some(evicted);
    }
    let by_status = found.pod.as_ref().filter(|pod| is_evicted(pod));
    let message = by_status
        .map(|pod| message_of(pod).to_owned())
        .or_else(|| {
            let event = events::latest(&found.events, super::ended::EVICTED);
            let is_gone = found.pod.is_none();
            event.filter(|_| is_gone)?.message.clone()
        })?;
    Some(Evicted {
        node: node.unwrap_or_default().to_owned(),
        at: events::latest(&found.events, super::ended::EVICTED).and_then(events::time_of),
        message: message.trim().to_owned(),
        ..Evicted::default()
    })
}

/// Why the pod is pending, or why it was placed on its node.
fn place(
    report: &mut PodReport,
    found: &Found,
    pod: &Pod,
    events: &[Event],
    configuration: &Configuration,
) {
    let is_over = report.phase.as_deref().is_some_and(is_terminal_phase);
    let Some(snapshot) = found.snapshot.as_ref().filter(|_| !is_over) else {
        return;
    };
    let Some(profile) = profile(report, pod, configuration) else {
        return;
    };
    let seeking = match SchedulingPod::from_api(&unplaced(pod)) {
        Ok(seeking) => seeking,
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let text = format!("the verdict of the scheduler: {}", problems.join("; "));
            report.unknown.push(text);
            return;
        }
    };
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let cluster = snapshot.cluster_without(uid);
    let spec = pod.spec.as_ref();
    let own = scheduler_of(pod);
    let is_known = configuration
        .profiles
        .iter()
        .any(|own_profile| own_profile.scheduler_name == own);
    let case = Case {
        cycle: Cycle {
            cluster: &cluster,
            profile,
            pod: &seeking,
        },
        is_of_other_scheduler: !is_known,
    };
    match spec.and_then(|spec| spec.node_name.as_deref()) {
        Some(node) => report.placed = Some(explain_placed(pod, node, events, Some(&case))),
        None => {
            let mut pending = pending::explain(&case);
            own.clone_into(&mut pending.scheduler);
            if let Some(traces) = &found.scheduler {
                judge(&mut pending, traces);
            }
            report.pending = Some(pending);
        }
    }
}

/// Adds whether the scheduler runs, and the resulting advice.
fn judge(pending: &mut Pending, traces: &SchedulerTraces) {
    let Verdict { runs, sentences } = traces.verdict();
    let feasible = pending.nodes.iter();
    let feasible = feasible.filter(|node| node.rejections.is_empty()).count();
    if pending.is_of_other_scheduler {
        let name = &pending.scheduler;
        pending.fixes = match runs {
            Some(true) => Vec::new(),
            Some(false) | None => vec![format!(
                "start scheduler {name}, or create the pod again without spec.schedulerName {name}: \
                 it cannot be changed"
            )],
        };
    } else if feasible == 0 {
        // The reasons why no node fits matter more than whether the scheduler runs.
        if runs != Some(false) {
            return;
        }
    } else if runs == Some(false) {
        pending.fixes = vec!["start the scheduler".to_owned()];
    }
    (pending.scheduler_runs, pending.scheduler_signs) = (runs, sentences);
}

fn displaced(event: &Event) -> Displaced {
    let victim = &event.involved_object;
    let message = event.message.as_deref().unwrap_or_default();
    Displaced {
        pod: format!(
            "{}/{}",
            victim.namespace.as_deref().unwrap_or_default(),
            victim.name.as_deref().unwrap_or_default()
        ),
        // `Preempted by pod UID on node NODE`
        node: message
            .rsplit_once(" on node ")
            .map(|(_, node)| node.to_owned()),
        at: events::time_of(event),
    }
}

/// The scheduler of a pod.
pub fn scheduler_of(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    let name = spec.and_then(|spec| spec.scheduler_name.as_deref());
    name.unwrap_or(DEFAULT_SCHEDULER)
}

/// The profile of the pod's scheduler; the first profile for schedulers without one.
fn profile<'a>(
    report: &mut PodReport,
    pod: &Pod,
    configuration: &'a Configuration,
) -> Option<&'a Profile> {
    let name = scheduler_of(pod);
    let profiles = &configuration.profiles;
    let own = profiles.iter().find(|own| own.scheduler_name == name);
    if own.is_none() && report.node.is_some() {
        report.unknown.push(format!(
            "how scheduler {name} decides: verdicts are those of the default plugins \
             (pass its configuration with --scheduler-config)"
        ));
    }
    own.or_else(|| profiles.first())
}

/// The pod as it was before it was bound.
fn unplaced(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    if let Some(spec) = &mut pod.spec {
        spec.node_name = None;
    }
    if let Some(status) = &mut pod.status {
        status.nominated_node_name = None;
        status.phase = None;
    }
    pod
}

fn headline(report: &PodReport, pod: Option<&Pod>) -> String {
    let from = |node: &str| match node {
        "" => String::new(),
        node => format!(" from node {node}"),
    };
    let on = match &report.node {
        Some(node) => format!(" on node {node}"),
        None => String::new(),
    };
    if let Some(evicted) = &report.evicted {
        return format!("was evicted{}", from(&evicted.node));
    }
    if let Some(ended) = &report.ended {
        let is_gone = pod.is_none();
        return match ended.reason.as_str() {
            "PreemptionByScheduler" => "was preempted by a pod of higher priority".to_owned(),
            DELETED if is_gone => format!("was deleted{on}"),
            DELETED => format!("is being deleted{on}"),
            reason if pod.is_some_and(|pod| is_phase(pod, "Failed")) => {
                format!("failed: {reason}")
            }
            reason => format!("is being deleted: {reason}"),
        };
    }
    if let Some(killed) = report.oom_killed.first() {
        let times = match killed.restarts {
            0 => String::new(),
            1 => ", restarted once".to_owned(),
            restarts => format!(", restarted {restarts} times"),
        };
        let name = &killed.container;
        return format!("has a container that was OOMKilled: {name}{times}");
    }
    if let Some(trouble) = report.troubles.first() {
        let summary = &trouble.summary;
        return match pod {
            Some(pod) if is_phase(pod, "Failed") => format!("has failed{on}: {summary}"),
            Some(pod) if is_phase(pod, "Succeeded") => format!("has succeeded{on}: {summary}"),
            Some(pod) if is_ready(pod) => format!("is Running{on}, but {summary}"),
            _ => format!("is not ready{on}: {summary}"),
        };
    }
    if let Some(pending) = &report.pending {
        return pending_headline(pending, pod, !report.displaced.is_empty());
    }
    let waits = match pod.and_then(waiting) {
        Some(why) => format!(": {why}"),
        None => String::new(),
    };
    match &report.phase {
        None => "is gone".to_owned(),
        Some(phase) => format!("is {phase}{on}{waits}"),
    }
}

fn pending_headline(pending: &Pending, pod: Option<&Pod>, has_displaced: bool) -> String {
    let feasible = pending.nodes.iter();
    let feasible = feasible.filter(|node| node.rejections.is_empty()).count();
    let status = pod.and_then(|pod| pod.status.as_ref());
    let nominated = status.and_then(|status| status.nominated_node_name.as_deref());
    let scheduler = &pending.scheduler;
    if !pending.gates.is_empty() {
        let gates = pending.gates.join(", ");
        return format!("is pending: it waits for {gates} to be removed");
    }
    if pending.is_of_other_scheduler {
        return match pending.scheduler_runs {
            Some(false) => {
                format!("is pending: its scheduler {scheduler} does not seem to run")
            }
            _ => format!("is pending: it waits for scheduler {scheduler}"),
        };
    }
    match (feasible, nominated) {
        (_, Some(node)) if has_displaced => {
            format!("is pending: it waits for pods that make room for it on {node} to end")
        }
        (0, _) => "is pending: no node fits".to_owned(),
        (_, _) if pending.scheduler_runs == Some(false) => {
            "is pending: the scheduler does not run".to_owned()
        }
        (1, _) => "is pending, though it fits on one node".to_owned(),
        (count, _) => format!("is pending, though it fits on {count} nodes"),
    }
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The waiting reason of its first container that does not run.
fn waiting(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        let name = &container.name;
        Some(match waiting.message.as_deref().unwrap_or_default() {
            "" => format!("container {name} waits, {reason}"),
            message => format!("container {name} waits, {reason} ({message})"),
        })
    })
}

fn is_phase(pod: &Pod, phase: &str) -> bool {
    let status = pod.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some(phase)
}
