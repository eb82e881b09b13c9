//! Upstream's internal types, which errors show: they have no JSON names.

use k8s_openapi::api::core::v1 as api;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Taint<'a> {
    key: &'a str,
    value: &'a str,
    effect: &'a str,
    time_added: Option<String>,
}

impl<'a> From<&'a api::Taint> for Taint<'a> {
    fn from(taint: &'a api::Taint) -> Taint<'a> {
        let time = taint.time_added.as_ref();
        Taint {
            key: &taint.key,
            value: super::text(&taint.value),
            effect: &taint.effect,
            time_added: time
                .and_then(|time| serde_json::to_value(time).ok()?.as_str().map(str::to_owned)),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NodeSelectorTerm<'a> {
    match_expressions: Option<Vec<NodeSelectorRequirement<'a>>>,
    match_fields: Option<Vec<NodeSelectorRequirement<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeSelectorRequirement<'a> {
    key: &'a str,
    operator: &'a str,
    values: Option<&'a [String]>,
}

impl<'a> From<&'a api::NodeSelectorTerm> for NodeSelectorTerm<'a> {
    fn from(term: &'a api::NodeSelectorTerm) -> NodeSelectorTerm<'a> {
        let requirements = |list: &'a Option<Vec<api::NodeSelectorRequirement>>| {
            let list = list.as_deref()?;
            let shown = list.iter().map(|requirement| NodeSelectorRequirement {
                key: &requirement.key,
                operator: &requirement.operator,
                values: requirement.values.as_deref(),
            });
            Some(shown.collect())
        };
        NodeSelectorTerm {
            match_expressions: requirements(&term.match_expressions),
            match_fields: requirements(&term.match_fields),
        }
    }
}

/// The update strategy of a Deployment, DaemonSet or StatefulSet.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Strategy<'a, R: Serialize> {
    pub(super) r#type: &'a str,
    pub(super) rolling_update: Option<R>,
}

/// The rolling update of a Deployment or DaemonSet.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RollingUpdate<'a> {
    pub(super) max_unavailable: &'a IntOrString,
    pub(super) max_surge: &'a IntOrString,
}

/// The rolling update of a StatefulSet.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StatefulSetRollingUpdate<'a> {
    pub(super) partition: i32,
    pub(super) max_unavailable: Option<&'a IntOrString>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SeccompProfile<'a> {
    pub(super) r#type: &'a str,
    pub(super) localhost_profile: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PodResourceClaim<'a> {
    pub(super) name: &'a str,
    pub(super) resource_claim_name: Option<&'a str>,
    pub(super) resource_claim_template_name: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Address<'a> {
    #[serde(rename = "IP")]
    pub(super) ip: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NodeAddress<'a> {
    pub(super) r#type: &'a str,
    pub(super) address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CsiNodeDriver<'a> {
    name: &'a str,
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    topology_keys: Option<&'a [String]>,
    allocatable: Option<()>,
}

/// Limits may change and are left out before drivers are compared.
impl<'a> From<&'a storage::CSINodeDriver> for CsiNodeDriver<'a> {
    fn from(driver: &'a storage::CSINodeDriver) -> CsiNodeDriver<'a> {
        CsiNodeDriver {
            name: &driver.name,
            node_id: &driver.node_id,
            topology_keys: driver.topology_keys.as_deref(),
            allocatable: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct VolumeAttachmentSpec<'a> {
    attacher: &'a str,
    source: VolumeAttachmentSource<'a>,
    node_name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct VolumeAttachmentSource<'a> {
    persistent_volume_name: Option<&'a str>,
    inline_volume_spec: Option<&'a api::PersistentVolumeSpec>,
}

impl<'a> From<&'a storage::VolumeAttachmentSpec> for VolumeAttachmentSpec<'a> {
    fn from(spec: &'a storage::VolumeAttachmentSpec) -> VolumeAttachmentSpec<'a> {
        VolumeAttachmentSpec {
            attacher: &spec.attacher,
            source: VolumeAttachmentSource {
                persistent_volume_name: spec.source.persistent_volume_name.as_deref(),
                inline_volume_spec: spec.source.inline_volume_spec.as_ref(),
            },
            node_name: &spec.node_name,
        }
    }
}
