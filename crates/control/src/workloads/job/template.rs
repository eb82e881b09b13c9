//! The pods of a job.

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use crate::workloads::pod_template::pod_from_template;

use super::context::Context;
use super::indexed_pod::{COMPLETION_INDEX, FAILURE_COUNT, IGNORED_FAILURE_COUNT, failures_with};
use super::{KIND, TRACKING_FINALIZER};

const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// A generated name is at most 63 characters, five of them random.
const LONGEST_PREFIX: usize = 58;

/// A pod to be created, for an index or for none.
pub(super) fn pod(context: &Context<'_>, index: Option<i64>) -> Pod {
    let job = context.view.job;
    let template = job.spec.as_ref().map(|spec| spec.template.clone());
    let mut pod = pod_from_template(
        &template.unwrap_or_default(),
        KIND.reference_to(&job.metadata),
    );
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers
        .iter()
        .any(|finalizer| finalizer == TRACKING_FINALIZER)
    {
        finalizers.push(TRACKING_FINALIZER.to_owned());
    }
    if let Some(index) = index {
        add_index(context, &mut pod, index);
    }
    pod
}

fn add_index(context: &Context<'_>, pod: &mut Pod, index: i64) {
    let job = context
        .view
        .job
        .metadata
        .name
        .as_deref()
        .unwrap_or_default();
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(COMPLETION_INDEX.to_owned(), index.to_string());
    if context.rules.backoff_limit_per_index.is_some() {
        let replaced = context.awaiting.get(&index);
        let (counted, ignored) = replaced.map_or((0, 0), |pod| failures_with(&context.rules, pod));
        annotations.insert(FAILURE_COUNT.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURE_COUNT.to_owned(), ignored.to_string());
        }
    }
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(COMPLETION_INDEX.to_owned(), index.to_string());
    pod.metadata.generate_name = Some(name_prefix(job, index));
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{job}-{index}"));
    for container in spec.init_containers.iter_mut().flatten() {
        add_variable(container);
    }
    for container in &mut spec.containers {
        add_variable(container);
    }
}

/// Job and index; a long name is cut to leave room for the index.
fn name_prefix(job: &str, index: i64) -> String {
    let end = format!("-{index}-");
    let room = LONGEST_PREFIX.saturating_sub(end.len());
    let cut = job.floor_char_boundary(room.min(job.len()));
    format!("{}{end}", &job[..cut])
}

/// The variable is read from the pod's label, so that the template stays the same for all indexes.
fn add_variable(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables
        .iter()
        .any(|variable| variable.name == INDEX_VARIABLE)
    {
        return;
    }
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: None,
                field_path: format!("metadata.labels['{COMPLETION_INDEX}']"),
            }),
            ..EnvVarSource::default()
        }),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_job_names_are_cut_for_the_index() {
        assert_eq!(name_prefix("sum", 3), "sum-3-");
        let prefix = name_prefix(&"a".repeat(63), 12);
        assert_eq!(prefix.len(), LONGEST_PREFIX);
        assert!(prefix.ends_with("a-12-"));
    }
}
