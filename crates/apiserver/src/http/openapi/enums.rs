//! The values of fields that have a closed set of them, which k8s-openapi does not know.
//!
//! Matches the enums of v1.36 pkg/generated/openapi/zz_generated.openapi.go.

use std::collections::BTreeMap;

use serde_json::{Value, json};

const SIGNALS: &str = "SIGABRT,SIGALRM,SIGBUS,SIGCHLD,SIGCLD,SIGCONT,SIGFPE,SIGHUP,SIGILL,SIGINT,SIGIO,\
    SIGIOT,SIGKILL,SIGPIPE,SIGPOLL,SIGPROF,SIGPWR,SIGQUIT,SIGRTMAX,SIGRTMAX-1,SIGRTMAX-10,\
    SIGRTMAX-11,SIGRTMAX-12,SIGRTMAX-13,SIGRTMAX-14,SIGRTMAX-2,SIGRTMAX-3,SIGRTMAX-4,\
    SIGRTMAX-5,SIGRTMAX-6,SIGRTMAX-7,SIGRTMAX-8,SIGRTMAX-9,SIGRTMIN,SIGRTMIN+1,\
    SIGRTMIN+10,SIGRTMIN+11,SIGRTMIN+12,SIGRTMIN+13,SIGRTMIN+14,SIGRTMIN+15,SIGRTMIN+2,\
    SIGRTMIN+3,SIGRTMIN+4,SIGRTMIN+5,SIGRTMIN+6,SIGRTMIN+7,SIGRTMIN+8,SIGRTMIN+9,SIGSEGV,\
    SIGSTKFLT,SIGSTOP,SIGSYS,SIGTERM,SIGTRAP,SIGTSTP,SIGTTIN,SIGTTOU,SIGURG,SIGUSR1,\
    SIGUSR2,SIGVTALRM,SIGWINCH,SIGXCPU,SIGXFSZ";

/// Values, separated by commas, and the fields that have them.
const VALUES: &[(&str, &[&str])] = &[
    (
        "OnDelete,RollingUpdate",
        &[
            "apps.v1.DaemonSetUpdateStrategy.type",
            "apps.v1.StatefulSetUpdateStrategy.type",
        ],
    ),
    (
        "Recreate,RollingUpdate",
        &["apps.v1.DeploymentStrategy.type"],
    ),
    (
        "OrderedReady,Parallel",
        &["apps.v1.StatefulSetSpec.podManagementPolicy"],
    ),
    (
        "Allow,Forbid,Replace",
        &["batch.v1.CronJobSpec.concurrencyPolicy"],
    ),
    ("Indexed,NonIndexed", &["batch.v1.JobSpec.completionMode"]),
    (
        "Failed,TerminatingOrFailed",
        &["batch.v1.JobSpec.podReplacementPolicy"],
    ),
    (
        "In,NotIn",
        &["batch.v1.PodFailurePolicyOnExitCodesRequirement.operator"],
    ),
    (
        "Count,FailIndex,FailJob,Ignore",
        &["batch.v1.PodFailurePolicyRule.action"],
    ),
    (
        "any,cert sign,client auth,code signing,content commitment,crl sign,data encipherment,decipher only,digital signature,email protection,encipher only,ipsec end system,ipsec tunnel,ipsec user,key agreement,key encipherment,microsoft sgc,netscape sgc,ocsp signing,s/mime,server auth,signing,timestamping",
        &["certificates.v1.CertificateSigningRequestSpec.usages"],
    ),
    (
        "Localhost,RuntimeDefault,Unconfined",
        &[
            "core.v1.AppArmorProfile.type",
            "core.v1.SeccompProfile.type",
        ],
    ),
    (
        "None,ReadOnly,ReadWrite",
        &["core.v1.AzureDiskVolumeSource.cachingMode"],
    ),
    (
        "Dedicated,Managed,Shared",
        &["core.v1.AzureDiskVolumeSource.kind"],
    ),
    (
        "Always,IfNotPresent,Never",
        &[
            "core.v1.Container.imagePullPolicy",
            "core.v1.EphemeralContainer.imagePullPolicy",
            "core.v1.ImageVolumeSource.pullPolicy",
        ],
    ),
    (
        "FallbackToLogsOnError,File",
        &[
            "core.v1.Container.terminationMessagePolicy",
            "core.v1.EphemeralContainer.terminationMessagePolicy",
        ],
    ),
    (
        "SCTP,TCP,UDP",
        &[
            "core.v1.ContainerPort.protocol",
            "core.v1.PortStatus.protocol",
            "core.v1.ServicePort.protocol",
        ],
    ),
    (
        SIGNALS,
        &[
            "core.v1.ContainerStatus.stopSignal",
            "core.v1.Lifecycle.stopSignal",
        ],
    ),
    ("HTTP,HTTPS", &["core.v1.HTTPGetAction.scheme"]),
    (
        ",BlockDevice,CharDevice,Directory,DirectoryOrCreate,File,FileOrCreate,Socket",
        &["core.v1.HostPathVolumeSource.type"],
    ),
    (
        "InProgress,Infeasible,Pending",
        &["core.v1.ModifyVolumeStatus.status"],
    ),
    ("Active,Terminating", &["core.v1.NamespaceStatus.phase"]),
    (
        "DoesNotExist,Exists,Gt,In,Lt,NotIn",
        &["core.v1.NodeSelectorRequirement.operator"],
    ),
    ("Pending,Running,Terminated", &["core.v1.NodeStatus.phase"]),
    (
        "ReadOnlyMany,ReadWriteMany,ReadWriteOnce,ReadWriteOncePod",
        &[
            "core.v1.PersistentVolumeClaimSpec.accessModes",
            "core.v1.PersistentVolumeClaimStatus.accessModes",
            "core.v1.PersistentVolumeSpec.accessModes",
        ],
    ),
    (
        "Block,Filesystem",
        &[
            "core.v1.PersistentVolumeClaimSpec.volumeMode",
            "core.v1.PersistentVolumeSpec.volumeMode",
        ],
    ),
    (
        "ControllerResizeInProgress,ControllerResizeInfeasible,NodeResizeInProgress,NodeResizeInfeasible,NodeResizePending",
        &["core.v1.PersistentVolumeClaimStatus.allocatedResourceStatuses"],
    ),
    (
        "Bound,Lost,Pending",
        &["core.v1.PersistentVolumeClaimStatus.phase"],
    ),
    (
        "Delete,Recycle,Retain",
        &[
            "core.v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy",
            "storage.v1.StorageClass.reclaimPolicy",
        ],
    ),
    (
        "Available,Bound,Failed,Pending,Released",
        &["core.v1.PersistentVolumeStatus.phase"],
    ),
    (
        "Always,OnRootMismatch",
        &["core.v1.PodSecurityContext.fsGroupChangePolicy"],
    ),
    (
        "Merge,Strict",
        &["core.v1.PodSecurityContext.supplementalGroupsPolicy"],
    ),
    (
        "ClusterFirst,ClusterFirstWithHostNet,Default,None",
        &["core.v1.PodSpec.dnsPolicy"],
    ),
    (
        "Never,PreemptLowerPriority",
        &[
            "core.v1.PodSpec.preemptionPolicy",
            "scheduling.v1.PriorityClass.preemptionPolicy",
        ],
    ),
    ("Always,Never,OnFailure", &["core.v1.PodSpec.restartPolicy"]),
    (
        "Failed,Pending,Running,Succeeded,Unknown",
        &["core.v1.PodStatus.phase"],
    ),
    (
        "BestEffort,Burstable,Guaranteed",
        &["core.v1.PodStatus.qosClass"],
    ),
    (
        "BestEffort,CrossNamespacePodAffinity,NotBestEffort,NotTerminating,PriorityClass,Terminating,VolumeAttributesClass",
        &[
            "core.v1.ResourceQuotaSpec.scopes",
            "core.v1.ScopedResourceSelectorRequirement.scopeName",
        ],
    ),
    (
        "DoesNotExist,Exists,In,NotIn",
        &["core.v1.ScopedResourceSelectorRequirement.operator"],
    ),
    ("Default,Unmasked", &["core.v1.SecurityContext.procMount"]),
    (
        "Cluster,Local",
        &[
            "core.v1.ServiceSpec.externalTrafficPolicy",
            "core.v1.ServiceSpec.internalTrafficPolicy",
        ],
    ),
    (",IPv4,IPv6", &["core.v1.ServiceSpec.ipFamilies"]),
    (
        "PreferDualStack,RequireDualStack,SingleStack",
        &["core.v1.ServiceSpec.ipFamilyPolicy"],
    ),
    ("ClientIP,None", &["core.v1.ServiceSpec.sessionAffinity"]),
    (
        "ClusterIP,ExternalName,LoadBalancer,NodePort",
        &["core.v1.ServiceSpec.type"],
    ),
    (
        "NoExecute,NoSchedule,PreferNoSchedule",
        &["core.v1.Taint.effect", "core.v1.Toleration.effect"],
    ),
    ("Equal,Exists,Gt,Lt", &["core.v1.Toleration.operator"]),
    (
        "Honor,Ignore",
        &[
            "core.v1.TopologySpreadConstraint.nodeAffinityPolicy",
            "core.v1.TopologySpreadConstraint.nodeTaintsPolicy",
        ],
    ),
    (
        "DoNotSchedule,ScheduleAnyway",
        &["core.v1.TopologySpreadConstraint.whenUnsatisfiable"],
    ),
    (
        "Bidirectional,HostToContainer,None",
        &["core.v1.VolumeMount.mountPropagation"],
    ),
    (
        "AlwaysAllow,IfHealthyBudget",
        &["policy.v1.PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy"],
    ),
    (
        "FromClaim,FromClass",
        &["resource.v1.DeviceAllocationConfiguration.source"],
    ),
    (
        "All,ExactCount",
        &[
            "resource.v1.DeviceSubRequest.allocationMode",
            "resource.v1.ExactDeviceRequest.allocationMode",
        ],
    ),
    (
        "NoExecute,NoSchedule,None",
        &[
            "resource.v1.DeviceTaint.effect",
            "resource.v1.DeviceToleration.effect",
        ],
    ),
    ("Equal,Exists", &["resource.v1.DeviceToleration.operator"]),
    (
        "Immediate,WaitForFirstConsumer",
        &["storage.v1.StorageClass.volumeBindingMode"],
    ),
];

/// Writes the values to the fields of the schemas; to their items or values if the field is a list
/// or a map.
pub(super) fn add(schemas: &mut BTreeMap<String, Value>) {
    for (values, fields) in VALUES {
        let values: Vec<&str> = values.split(',').collect();
        for field in *fields {
            if let Some(place) = place(schemas, field) {
                place["enum"] = json!(values);
            }
        }
    }
}

fn place<'a>(schemas: &'a mut BTreeMap<String, Value>, field: &str) -> Option<&'a mut Value> {
    let (definition, name) = field.rsplit_once('.')?;
    let schema = schemas.get_mut(&format!("io.k8s.api.{definition}"))?;
    let mut place = schema.get_mut("properties")?.get_mut(name)?;
    for inner in ["items", "additionalProperties"] {
        if place.get(inner).is_some() {
            place = place.get_mut(inner)?;
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::schemas::definitions;

    #[test]
    fn every_field_of_the_table_exists_in_a_schema() {
        let mut schemas = definitions().clone();
        for (_, fields) in VALUES {
            for field in *fields {
                assert!(place(&mut schemas, field).is_some(), "{field}");
            }
        }
    }

    #[test]
    fn enums_of_lists_are_on_their_items() {
        let mut schemas = definitions().clone();
        add(&mut schemas);
        let modes =
            &schemas["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"]["accessModes"];
        assert_eq!(modes["items"]["enum"][0], "ReadOnlyMany");
        let effect = &schemas["io.k8s.api.core.v1.Taint"]["properties"]["effect"];
        assert_eq!(
            effect["enum"],
            json!(["NoExecute", "NoSchedule", "PreferNoSchedule"])
        );
    }
}
