//! Admission of an object that is not sent to a server.

use std::sync::Arc;

use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::admission::priority::PriorityClasses;
use serde_json::Value;

use crate::kinds::Kind;
use crate::machinery::admission::{self, Cluster};
use crate::machinery::write::Admission;
use crate::status::Status;

/// The built-in admission with what is known of the cluster.
pub(super) struct FileAdmission<'a> {
    pub(super) kind: &'static Kind,
    pub(super) facts: &'a Facts,
}

/// What is known of the cluster that manifests are meant for.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// PriorityClasses beside the built-in ones.
    pub priority_classes: Vec<PriorityClass>,
    /// RuntimeClasses.
    pub runtime_classes: Vec<RuntimeClass>,
    /// LimitRanges of the object's namespace and the override of requests: what they set is set
    /// before validation. What they refuse is not refused here.
    pub resources: Cluster,
}

impl Facts {
    /// The cluster as admission sees it: classes that the pod names and no file has may exist, and
    /// are those that the pod takes them for.
    fn cluster_for(&self, object: &Value) -> Cluster {
        let spec = &object["spec"];
        let named = |name: &str| ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let mut classes = self.priority_classes.clone();
        if let Some(name) = spec["priorityClassName"].as_str()
            && !name.starts_with("system-")
            && !classes
                .iter()
                .any(|class| class.metadata.name.as_deref() == Some(name))
        {
            let value = spec["priority"].as_i64().unwrap_or(0);
            classes.push(PriorityClass {
                metadata: named(name),
                value: Some(i32::try_from(value).unwrap_or(0)),
                preemption_policy: spec["preemptionPolicy"].as_str().map(str::to_owned),
                ..PriorityClass::default()
            });
        }
        let mut runtimes = self.runtime_classes.clone();
        if let Some(name) = spec["runtimeClassName"].as_str()
            && !runtimes
                .iter()
                .any(|class| class.metadata.name.as_deref() == Some(name))
        {
            let overhead = serde_json::from_value(spec["overhead"].clone()).ok();
            runtimes.push(RuntimeClass {
                metadata: named(name),
                handler: name.to_owned(),
                overhead: overhead.map(|pod_fixed| k8s_openapi::api::node::v1::Overhead {
                    pod_fixed: Some(pod_fixed),
                }),
                ..RuntimeClass::default()
            });
        }
        let runtimes = runtimes.into_iter().map(|class| {
            let name = class.metadata.name.clone().unwrap_or_default();
            (name, class)
        });
        Cluster {
            priority_classes: Arc::new(PriorityClasses::from_api(&classes)),
            runtime_classes: Arc::new(runtimes.collect()),
            ..self.resources.clone()
        }
    }
}

impl Admission for FileAdmission<'_> {
    fn admit(&mut self, object: &mut Value, _: Option<&Value>) -> Result<(), Status> {
        let cluster = self.facts.cluster_for(object);
        admission::admit_new(self.kind, object, &cluster)
            .map_err(|reason| self.forbidden(object, &reason))
    }

    fn check(&mut self, object: &Value, _: Option<&Value>) -> Result<(), Status> {
        let cluster = Cluster {
            limit_ranges: Arc::default(),
            overcommit: None,
            ..self.facts.cluster_for(object)
        };
        admission::check_new(self.kind, object, &cluster)
            .map_err(|reason| self.forbidden(object, &reason))
    }
}

impl FileAdmission<'_> {
    fn forbidden(&self, object: &Value, reason: &str) -> Status {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Status::forbidden(self.kind, name, reason)
    }
}
