//! Pods and workloads with a pod template.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::admission::overcommit::{Overridden, Override};
use plimsoll_core::admission::pipeline::{Review, Rules, review};
use plimsoll_core::admission::pod_security::{PodSecurity, Subject, Target};
use plimsoll_core::cgroup::oom_score_adj;
use plimsoll_core::lint::{
    Rule, lint_daemon_set, lint_host_path, lint_node_labels, lint_override, lint_units,
};
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_core::object::pod::{ContainerKind, ContainerView, Overhead, PodView};
use plimsoll_core::problem::Problem;
use plimsoll_core::resources::Bytes;
use serde_json::Value;

use crate::check::report::{
    AdmissionRow, ContainerRow, DocumentReport, FindingRow, Report, WorkloadReport, integers,
};

use super::{Source, namespace_of, typed};
use crate::check::server::Manifest;

/// A pod, or the pod of a workload's template.
#[derive(Debug)]
pub(super) struct Workload<'a> {
    kind: &'static str,
    namespace: String,
    pod: Pod,
    /// The path of the pod's fields in the manifest: empty, or `spec.template.`.
    prefix: &'static str,
    source: &'a Source<'a>,
}

/// Whether objects of the kind are pods or have a template of pods.
pub(super) fn has_pods(kind: &str) -> bool {
    KINDS.contains(&kind)
}

const KINDS: [&str; 8] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
];

impl<'a> Workload<'a> {
    /// `None` for kinds without pods, and for objects without a readable pod.
    pub(super) fn new(manifest: &dyn Manifest, source: &'a Source<'a>) -> Option<Workload<'a>> {
        let kind = manifest.kind();
        let (pod, prefix) = pod_of(kind, manifest.object())?;
        let spec = pod.spec.as_ref();
        spec.filter(|spec| !spec.containers.is_empty())?;
        Some(Workload {
            kind,
            namespace: namespace_of(pod.metadata.namespace.as_deref()),
            pod,
            prefix,
            source,
        })
    }

    /// Adds findings to `rows`, which has those of the server.
    pub(super) fn check(
        &self,
        namespace: &NamespaceView,
        limit_ranges: &[LimitRangeView],
        overcommit: Option<&Override>,
        memory: Option<Bytes>,
        rows: &mut Vec<FindingRow>,
        report: &mut Report,
    ) {
        let rules = Rules {
            namespace,
            limit_ranges,
            overcommit,
        };
        let reviewed = review(&self.pod, rules).and_then(|review| {
            let view = PodView::from_api(&review.pod)?;
            Ok((review, view))
        });
        self.report_units_and_labels(rows);
        match reviewed {
            Err(problems) => self.report_problems(&problems, rows),
            Ok((reviewed, view)) => {
                self.report_problems(&reviewed.problems, rows);
                self.report_refusal(&reviewed, rules, rows);
                self.report_pod_security(namespace, rows);
                self.report_advice(&view, rows);
                report
                    .documents
                    .push(self.document(&reviewed, &view, memory));
            }
        }
    }

    /// What admission of the template's pods leads to. The server has reported the rest.
    fn report_problems(&self, problems: &[Problem], rows: &mut Vec<FindingRow>) {
        for problem in problems {
            let row = self.row(FindingRow::from_problem(&self.source.file.name, problem));
            let is_known = |known: &FindingRow| {
                known.path == row.path && (known.message == row.message || row.message.is_empty())
            };
            if !rows.iter().any(is_known) {
                rows.push(row);
            }
        }
    }

    /// The finding at its place in the manifest.
    fn row(&self, mut row: FindingRow) -> FindingRow {
        row.path = format!("{}{}", self.prefix, row.path);
        self.source.locate(row)
    }

    fn report_units_and_labels(&self, rows: &mut Vec<FindingRow>) {
        let Some(spec) = &self.pod.spec else { return };
        let path = format!("{}spec", self.prefix);
        let units = lint_units(spec, &path);
        // The server's warning about such a unit says less.
        rows.retain(|row| {
            row.id != Rule::ServerWarning.id() || !row.message.contains("fractional byte value")
        });
        let json = serde_json::to_value(spec).unwrap_or_default();
        for finding in units.into_iter().chain(lint_node_labels(&json, &path)) {
            let row = FindingRow::new(&self.source.file.name, finding);
            rows.push(self.source.locate(row));
        }
    }

    fn report_refusal(&self, reviewed: &Review, rules: Rules<'_>, rows: &mut Vec<FindingRow>) {
        let Some(message) = reviewed.refusal_message() else {
            return;
        };
        let plain = Rules {
            overcommit: None,
            ..rules
        };
        let file = &self.source.file.name;
        let without = review(&self.pod, plain).ok();
        let path = format!("{}spec", self.prefix);
        let finding = without.and_then(|without| lint_override(reviewed, &without, &path));
        let row = match finding {
            Some(finding) => FindingRow::new(file, finding),
            None => FindingRow::from_problem(file, &Problem::refused(path, message)),
        };
        rows.push(self.source.locate(row));
    }

    /// Violations of the Pod Security labels of the namespace.
    fn report_pod_security(&self, namespace: &NamespaceView, rows: &mut Vec<FindingRow>) {
        let plugin = PodSecurity::default();
        let policy = plugin.policy_of(&namespace.labels);
        let subject = Subject::of_pod(&self.pod);
        let verdict = subject.map(|pod| plugin.judge(Target::Pod, &policy, &pod));
        let Some(reason) = verdict.and_then(|verdict| verdict.denial) else {
            return;
        };
        let problem = Problem::forbidden(format!("{}spec", self.prefix), reason);
        let row = FindingRow::from_problem(&self.source.file.name, &problem);
        rows.push(self.source.locate(row));
    }

    fn report_advice(&self, view: &PodView, rows: &mut Vec<FindingRow>) {
        let spec_path = format!("{}spec", self.prefix);
        let mut findings = Vec::new();
        if self.kind == "DaemonSet" {
            findings.extend(lint_daemon_set(view, &spec_path));
        }
        let volumes = self
            .pod
            .spec
            .iter()
            .flat_map(|spec| &spec.volumes)
            .flatten();
        for (index, volume) in volumes.enumerate() {
            if let Some(host_path) = &volume.host_path {
                let path = format!("{spec_path}.volumes[{index}].hostPath");
                findings.push(lint_host_path(&volume.name, &host_path.path, &path));
            }
        }
        for finding in findings {
            let row = FindingRow::new(&self.source.file.name, finding);
            rows.push(self.source.locate(row));
        }
    }

    fn document(&self, reviewed: &Review, view: &PodView, memory: Option<Bytes>) -> DocumentReport {
        DocumentReport {
            namespace: Some(self.namespace.clone()),
            name: self.pod.metadata.name.clone(),
            workload: Some(WorkloadReport {
                qos_class: view.qos_class().as_str(),
                requests: integers(&view.requests(Overhead::Included)),
                limits: integers(&view.limits(Overhead::Included)),
                containers: view
                    .all_containers()
                    .map(|container| container_row(view, container, memory))
                    .collect(),
                admission: AdmissionRow {
                    code: reviewed.outcome().code(),
                    changes: changes(reviewed),
                    message: reviewed.refusal_message(),
                },
            }),
            ..self.source.document(self.kind)
        }
    }
}

fn container_row(pod: &PodView, container: &ContainerView, memory: Option<Bytes>) -> ContainerRow {
    ContainerRow {
        name: container.name.clone(),
        kind: match container.kind {
            ContainerKind::App => "app",
            ContainerKind::Init => "init",
            ContainerKind::Sidecar => "sidecar",
        },
        requests: integers(&container.resources.requests),
        limits: integers(&container.resources.limits),
        oom_score_adj: memory.map(|memory| oom_score_adj(pod, container, memory)),
    }
}

/// The changes of admission in order, one line each.
fn changes(reviewed: &Review) -> Vec<String> {
    let defaulted = reviewed.defaulted.iter().map(|set| {
        format!(
            "{}: {} {} set to {} by LimitRange {}",
            set.place, set.resource, set.part, set.quantity, set.limit_range
        )
    });
    let overridden = reviewed.overridden.iter().flatten();
    let overridden = overridden
        .filter(|set| set.from.as_ref() != Some(&set.to))
        .map(override_line);
    defaulted.chain(overridden).collect()
}

fn override_line(set: &Overridden) -> String {
    let (resource, part) = set.rule.target();
    let was = match &set.from {
        Some(from) => format!(", was {from}"),
        None => String::new(),
    };
    let bound = if set.bound.is_some() {
        ", held by a bound"
    } else {
        ""
    };
    format!(
        "{}: {resource} {part} set to {} by the override{was}{bound}",
        set.place, set.to
    )
}

/// The pod of a manifest and the path of its fields.
fn pod_of(kind: &str, json: &Value) -> Option<(Pod, &'static str)> {
    const TEMPLATE: &str = "spec.template.";
    let (meta, template) = match kind {
        "Pod" => return typed::<Pod>(json).map(|pod| (pod, "")),
        "Deployment" => {
            let object: Deployment = typed(json)?;
            (object.metadata, object.spec.map(|spec| spec.template))
        }
        "ReplicaSet" => {
            let object: ReplicaSet = typed(json)?;
            (object.metadata, object.spec.and_then(|spec| spec.template))
        }
        "StatefulSet" => {
            let object: StatefulSet = typed(json)?;
            (object.metadata, object.spec.map(|spec| spec.template))
        }
        "DaemonSet" => {
            let object: DaemonSet = typed(json)?;
            (object.metadata, object.spec.map(|spec| spec.template))
        }
        "ReplicationController" => {
            let object: ReplicationController = typed(json)?;
            (object.metadata, object.spec.and_then(|spec| spec.template))
        }
        "Job" => {
            let object: Job = typed(json)?;
            (object.metadata, object.spec.map(|spec| spec.template))
        }
        "CronJob" => {
            let object: CronJob = typed(json)?;
            let job = object.spec.job_template.spec;
            let pod = template_pod(object.metadata, job?.template);
            return Some((pod, "spec.jobTemplate.spec.template."));
        }
        _ => return None,
    };
    Some((template_pod(meta, template?), TEMPLATE))
}

/// A pod as the workload would create it, under the workload's name.
fn template_pod(owner: ObjectMeta, template: PodTemplateSpec) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: owner.name,
            namespace: owner.namespace,
            ..template.metadata.unwrap_or_default()
        },
        spec: template.spec,
        status: None,
    }
}
