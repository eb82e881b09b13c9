//! What the API says about its types: the schemas of k8s-openapi for the kinds that are served.
//!
//! They are made once, when first asked for, and stay: about three megabytes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::{
    apps, authentication, authorization, autoscaling, batch, certificates, coordination, core,
    events, node, policy, rbac, resource, scheduling, storage,
};
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// All schemas by their names, such as `io.k8s.api.core.v1.Pod`. References between them are
/// `{"$ref": "#/components/schemas/<name>"}`.
pub(crate) fn definitions() -> &'static BTreeMap<String, Value> {
    static DEFINITIONS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(generate);
    &DEFINITIONS
}

/// The description of a field. `ty` is the name of a schema without `io.k8s.`.
pub(crate) fn description(ty: &str, field: &str) -> &'static str {
    let schema = definitions().get(&format!("io.k8s.{ty}"));
    let description = schema.and_then(|schema| schema["properties"][field]["description"].as_str());
    description.unwrap_or_default()
}

macro_rules! generate_for {
    ($generator:ident: $($ty:ty),* $(,)?) => {
        $(let _ = $generator.subschema_for::<$ty>();)*
    };
}

fn generate() -> BTreeMap<String, Value> {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.transforms.clear();
    });
    let mut generator = settings.into_generator();
    generate_for!(generator:
        core::v1::Binding, core::v1::ConfigMap, core::v1::Event, core::v1::LimitRange,
        core::v1::Namespace, core::v1::Node, core::v1::PersistentVolume,
        core::v1::PersistentVolumeClaim, core::v1::Pod, core::v1::ReplicationController,
        core::v1::ResourceQuota, core::v1::Secret, core::v1::Service, core::v1::ServiceAccount,
        apps::v1::ControllerRevision, apps::v1::DaemonSet, apps::v1::Deployment,
        apps::v1::ReplicaSet, apps::v1::StatefulSet,
        authentication::v1::SelfSubjectReview, authentication::v1::TokenRequest,
        authentication::v1::TokenReview,
        authorization::v1::LocalSubjectAccessReview, authorization::v1::SelfSubjectAccessReview,
        authorization::v1::SelfSubjectRulesReview, authorization::v1::SubjectAccessReview,
        autoscaling::v1::Scale,
        batch::v1::CronJob, batch::v1::Job,
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        events::v1::Event,
        node::v1::RuntimeClass,
        policy::v1::Eviction, policy::v1::PodDisruptionBudget,
        rbac::v1::ClusterRole, rbac::v1::ClusterRoleBinding, rbac::v1::Role, rbac::v1::RoleBinding,
        resource::v1::DeviceClass, resource::v1::ResourceClaim, resource::v1::ResourceSlice,
        scheduling::v1::PriorityClass,
        storage::v1::CSIDriver, storage::v1::CSINode, storage::v1::CSIStorageCapacity,
        storage::v1::StorageClass, storage::v1::VolumeAttachment,
        meta::v1::DeleteOptions, meta::v1::ListMeta, meta::v1::Patch, meta::v1::Status,
    );
    generator.take_definitions(false).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_groups_has_a_schema() {
        for kind in super::super::all().filter(|kind| kind.group != "metrics.k8s.io") {
            assert!(
                definitions().contains_key(&kind.definition()),
                "{}",
                kind.kind
            );
        }
    }

    #[test]
    fn fields_have_their_descriptions() {
        let text = description("api.core.v1.NodeSystemInfo", "kubeletVersion");
        assert_eq!(text, "Kubelet Version reported by the node.");
        assert_eq!(description("api.core.v1.Nothing", "x"), "");
    }
}
