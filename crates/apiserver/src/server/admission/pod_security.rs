//! PodSecurity in the server: the namespace's policy, the pod or template in the request, and the
//! effect of the verdict. The rules are core's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodTemplateSpec};
use plimsoll_core::admission::pod_security::namespace::{
    Candidate, MAX_MILLISECONDS, MAX_PODS, NamespaceVerdict, Survey,
};
use plimsoll_core::admission::pod_security::{
    LevelVersion, NamespacePolicy, PREFIX, Subject, Target, Verdict, is_significant_update,
    template_of,
};
use plimsoll_core::problem::quoted;
use serde::Deserialize;
use serde_json::Value;

use super::Gate;
use crate::cache::Object;
use crate::kinds;
use crate::machinery::write::Part;
use crate::server::metrics::PodSecurityRequest;
use crate::server::objects::write::{name_of, namespace_of};
use crate::server::request::blocking::run_blocking;
use crate::status::Status;

/// Time limit for evaluating a namespace's existing pods.
const EVALUATION_TIMEOUT: Duration = Duration::from_millis(MAX_MILLISECONDS);

impl Gate<'_> {
    /// Rejects pods, warns about workloads, validates the labels of namespaces.
    pub(in crate::server) fn check_pod_security(
        &mut self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let kind = self.kind();
        match (kind.group, kind.kind, self.part) {
            ("", "Namespace", Part::Main) => self.check_labels(object, old),
            ("", "Pod", Part::Main | Part::Resize | Part::EphemeralContainers) => {
                self.check_pod(object, old)
            }
            (group, kind, Part::Main) => {
                if let Some(path) = template_of(group, kind) {
                    self.check_template(object, path, old.is_some());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_pod(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        let request = self.pod_security_request("pod", old.is_some());
        match self.evaluate_pod(object, old) {
            Ok(Some(verdict)) => self.apply_verdict(object, &request, verdict),
            Ok(None) => Ok(()),
            Err(status) => {
                let metrics = &self.call.server.metrics;
                metrics.pod_security.error(&request, true);
                self.annotate("error", status.message.clone());
                Err(status)
            }
        }
    }

    /// `None` for an update of a pod that is not evaluated.
    fn evaluate_pod(&self, object: &Value, old: Option<&Value>) -> Result<Option<Verdict>, Status> {
        let plugin = &self.call.server.options.pod_security;
        let (namespace, user) = (self.namespace_of(object), &self.call.user.name);
        if let Some(exemption) = plugin.exemption(namespace, user) {
            return Ok(Some(Verdict::exempt(exemption)));
        }
        let Some(policy) = self.namespace_policy(namespace) else {
            let what = format!("failed to lookup namespace {}", quoted(namespace));
            return Err(Status::internal_error(&what));
        };
        let unseen = plugin.verdict_unseen(Target::Pod, namespace, user, &policy);
        if unseen.is_some() {
            return Ok(unseen);
        }
        let pod = Pod::deserialize(object);
        let pod = pod.map_err(|_| Status::bad_request("failed to decode pod"))?;
        let spec = pod.spec.unwrap_or_default();
        if let Some(old) = old {
            let old = PodSpec::deserialize(&old["spec"]);
            let old = old.map_err(|_| Status::bad_request("failed to decode old pod"))?;
            if !is_significant_update(&spec, &old) {
                return Ok(None);
            }
        }
        let subject = Subject {
            annotations: pod.metadata.annotations.as_ref(),
            spec: &spec,
        };
        Ok(Some(plugin.judge(Target::Pod, &policy, &subject)))
    }

    /// A workload is stored regardless: its pods are evaluated when they are created.
    fn check_template(&mut self, object: &Value, path: &[&str], is_update: bool) {
        let request = self.pod_security_request("controller", is_update);
        match self.evaluate_template(object, path) {
            Ok(Some(verdict)) => {
                // A verdict on a template never rejects it.
                let _ = self.apply_verdict(object, &request, verdict);
            }
            Ok(None) => {}
            Err(error) => {
                let metrics = &self.call.server.metrics;
                metrics.pod_security.error(&request, true);
                self.annotate("error", error);
            }
        }
    }

    /// `None` for an object without its template.
    fn evaluate_template(&self, object: &Value, path: &[&str]) -> Result<Option<Verdict>, String> {
        let plugin = &self.call.server.options.pod_security;
        let (namespace, user) = (self.namespace_of(object), &self.call.user.name);
        if let Some(exemption) = plugin.exemption(namespace, user) {
            return Ok(Some(Verdict::exempt(exemption)));
        }
        let Some(policy) = self.namespace_policy(namespace) else {
            let name = quoted(namespace);
            return Err(format!(
                "failed to lookup namespace {name}: namespaces {name} not found"
            ));
        };
        let unseen = plugin.verdict_unseen(Target::Template, namespace, user, &policy);
        if unseen.is_some() {
            return Ok(unseen);
        }
        let template = path
            .iter()
            .try_fold(object, |value, field| value.get(field));
        let Some(template) = template.filter(|template| !template.is_null()) else {
            return Ok(None);
        };
        let template = PodTemplateSpec::deserialize(template);
        let template = template.map_err(|error| format!("failed to decode object: {error}"))?;
        let subject = Subject::of_template(&template);
        Ok(subject.map(|subject| plugin.judge(Target::Template, &policy, &subject)))
    }

    /// Counts, audits, warns and rejects.
    fn apply_verdict(
        &mut self,
        object: &Value,
        request: &PodSecurityRequest,
        verdict: Verdict,
    ) -> Result<(), Status> {
        let metrics = &self.call.server.metrics.pod_security;
        if verdict.exemption.is_some() {
            metrics.exemption(request);
        }
        if verdict.has_malformed_policy {
            metrics.error(request, false);
        }
        for evaluation in &verdict.evaluations {
            metrics.evaluation(request, evaluation);
        }
        for (key, value) in verdict.annotations {
            self.annotate(key, value);
        }
        self.warnings.extend(verdict.warnings);
        match verdict.denial {
            Some(reason) => Err(self.forbidden(object, &reason)),
            None => Ok(()),
        }
    }

    fn check_labels(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        let name = name_of(object);
        let old = old.map(labels_of);
        let plugin = &self.call.server.options.pod_security;
        match plugin.judge_namespace(name, &labels_of(object), old.as_ref()) {
            NamespaceVerdict::Allowed => Ok(()),
            NamespaceVerdict::Invalid(problems) => {
                Err(Status::invalid(self.kind(), name, &problems))
            }
            NamespaceVerdict::Warned(warning) => {
                self.warnings.push(warning);
                Ok(())
            }
            NamespaceVerdict::Tightened(enforce) => {
                let found = run_blocking(|| self.evaluate_existing_pods(name, enforce));
                self.warnings.extend(found);
                Ok(())
            }
        }
    }

    /// Pods of the namespace that the policy would reject, as warnings. Bounded in pods and time:
    /// the warning says if pods were left out.
    fn evaluate_existing_pods(&self, namespace: &str, enforce: LevelVersion) -> Vec<String> {
        let deadline = Instant::now() + EVALUATION_TIMEOUT;
        let server = self.call.server;
        let row = kinds::by_resource("", "v1", "pods");
        let pods = row.and_then(|row| server.cache.collection(row));
        let pods = pods.map(|pods| pods.list(&format!("{namespace}/"), None));
        let pods = pods.unwrap_or_default();
        let mut candidates = Vec::with_capacity(pods.len());
        for pod in &pods {
            if Instant::now() > deadline {
                return vec![
                    "failed to list pods while checking new PodSecurity enforce level".to_owned(),
                ];
            }
            candidates.push(candidate(pod));
        }
        let order = server.options.pod_security.survey_order(&candidates);
        let mut survey = Survey::new(enforce);
        for index in order.iter().take(MAX_PODS) {
            let pod = &pods[*index];
            // An object that cannot be decoded as a pod does not run anywhere.
            let read: Pod = serde_json::from_slice(pod.json()).unwrap_or_default();
            let spec = read.spec.unwrap_or_default();
            let subject = Subject {
                annotations: read.metadata.annotations.as_ref(),
                spec: &spec,
            };
            survey.look_at(pod.name(), &subject);
            if Instant::now() > deadline {
                break;
            }
        }
        survey.warnings(namespace, order.len())
    }

    fn annotate(&self, key: &str, value: String) {
        if self.call.server.audit.is_some() {
            self.call.annotations.set(format!("{PREFIX}{key}"), value);
        }
    }

    fn namespace_policy(&self, namespace: &str) -> Option<Arc<NamespacePolicy>> {
        let server = self.call.server;
        let plugin = &server.options.pod_security;
        server.facts.pod_security(&server.cache, namespace, plugin)
    }

    fn namespace_of<'o>(&'o self, object: &'o Value) -> &'o str {
        match namespace_of(object) {
            "" => &self.call.target.namespace,
            namespace => namespace,
        }
    }

    fn pod_security_request(&self, resource: &'static str, is_update: bool) -> PodSecurityRequest {
        PodSecurityRequest {
            request_operation: if is_update { "update" } else { "create" },
            resource,
            subresource: self.part.subresource(),
        }
    }
}

fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    labels.collect()
}

/// The fields that decide about the order, parsed without the rest of the pod.
fn candidate(pod: &Object) -> Candidate {
    #[derive(Default, Deserialize)]
    struct Head {
        #[serde(default)]
        metadata: Metadata,
        #[serde(default)]
        spec: Spec,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        owner_references: Vec<Owner>,
    }
    #[derive(Deserialize)]
    struct Owner {
        #[serde(default)]
        uid: String,
        #[serde(default)]
        controller: Option<bool>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        runtime_class_name: Option<String>,
    }
    let head: Head = serde_json::from_slice(pod.json()).unwrap_or_default();
    let mut owners = head.metadata.owner_references.into_iter();
    let controller = owners.find(|owner| owner.controller == Some(true));
    Candidate {
        runtime_class: head.spec.runtime_class_name,
        controller: controller.map(|owner| owner.uid),
    }
}
