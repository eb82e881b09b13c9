//! The usage of objects other than pods: their number, and the resources of services and claims.
//!
//! Matches v1.36 pkg/quota/v1/evaluator/core (services.go, persistent_volume_claims.go) and the
//! generic object counts of apiserver/pkg/quota/v1/generic.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};

use crate::object::claim::ClaimView;
use crate::object::resource_quota::QuotaView;
use crate::problem::Problem;
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceList, ResourceName};

use super::check::{Refusal, charge};

/// Kinds that quotas could count before every kind could be counted, under their plain names.
const COUNTED_BY_PLAIN_NAME: [&str; 6] = [
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// The annotation that named a claim's class before there was a field for it.
const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// An object as quotas see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectCharge {
    /// Its usage of everything that quotas can limit.
    pub usage: ResourceList,
}

impl ObjectCharge {
    /// One object of a kind; `group` is empty for the core group.
    pub fn of_kind(group: &str, plural: &str) -> ObjectCharge {
        let mut charge = ObjectCharge::default();
        let name = match group {
            "" => format!("count/{plural}"),
            group => format!("count/{plural}.{group}"),
        };
        charge.add(&name, 1);
        if group.is_empty() && COUNTED_BY_PLAIN_NAME.contains(&plural) {
            charge.add(plural, 1);
        }
        charge
    }

    /// A service, with the ports of nodes and the load balancers that it takes.
    pub fn of_service(service: &Service) -> ObjectCharge {
        let mut charge = ObjectCharge::of_kind("", "services");
        let Some(spec) = &service.spec else {
            return charge;
        };
        let ports = i64::try_from(spec.ports.as_deref().unwrap_or_default().len());
        let ports = ports.unwrap_or(i64::MAX);
        let (mut node_ports, mut load_balancers) = (0, 0);
        match spec.type_.as_deref() {
            Some("NodePort") => node_ports = ports,
            Some("LoadBalancer") => {
                load_balancers = 1;
                node_ports = match spec.allocate_load_balancer_node_ports {
                    Some(false) => node_ports_given(spec.ports.as_deref().unwrap_or_default()),
                    _ => ports,
                };
            }
            _ => {}
        }
        charge.add("services.nodeports", node_ports);
        charge.add("services.loadbalancers", load_balancers);
        charge
    }

    /// A claim, with the storage that it requests, in all and of its class.
    pub fn of_claim(claim: &PersistentVolumeClaim) -> Result<ObjectCharge, Vec<Problem>> {
        let mut charge = ObjectCharge::of_kind("", "persistentvolumeclaims");
        let view = ClaimView::from_api(claim)?;
        let annotations = claim.metadata.annotations.as_ref();
        let annotated = annotations.and_then(|all| all.get(STORAGE_CLASS_ANNOTATION));
        let named = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.storage_class_name.as_ref());
        let class = annotated.or(named).filter(|class| !class.is_empty());
        let prefix = class.map(|class| format!("{class}.storageclass.storage.k8s.io/"));
        if let Some(prefix) = &prefix {
            charge.add(&format!("{prefix}persistentvolumeclaims"), 1);
        }
        if let Some(storage) = view.requests.get(&ResourceName::STORAGE) {
            let usage = &mut charge.usage;
            usage.insert(ResourceName::new("requests.storage"), storage.clone());
            if let Some(prefix) = &prefix {
                let name = ResourceName::new(format!("{prefix}requests.storage"));
                usage.insert(name, storage.clone());
            }
        }
        Ok(charge)
    }

    fn add(&mut self, name: &str, count: i64) {
        let count = Quantity::new(count, Format::DecimalSi);
        self.usage.insert(ResourceName::new(name), count);
    }

    /// Whether the quota counts the object. Scopes are about pods: a quota that has some counts
    /// nothing else.
    pub fn is_counted_by(&self, quota: &QuotaView) -> bool {
        quota.scopes.is_empty() && self.usage.names().any(|name| quota.hard.contains(name))
    }
}

fn node_ports_given(ports: &[k8s_openapi::api::core::v1::ServicePort]) -> i64 {
    let given = ports
        .iter()
        .filter(|port| port.node_port.unwrap_or_default() != 0);
    i64::try_from(given.count()).unwrap_or(i64::MAX)
}

/// The usage of each quota with the object, in the order given; or why it is refused.
/// `before` is the object that is replaced.
pub fn admit_object(
    object: &ObjectCharge,
    before: Option<&ObjectCharge>,
    quotas: &[QuotaView],
) -> Result<Vec<ResourceList>, Refusal> {
    for quota in quotas.iter().filter(|quota| object.is_counted_by(quota)) {
        let limited = object
            .usage
            .names()
            .filter(|name| quota.hard.contains(name));
        let limited: Vec<ResourceName> = limited.cloned().collect();
        if !limited.iter().all(|name| quota.used.contains(name)) {
            return Err(Refusal::StatusUnknown {
                quota: quota.name.clone(),
                resources: limited,
            });
        }
    }
    let added = object.usage.iter().map(|(name, quantity)| {
        let mut added = quantity.clone();
        if let Some(before) = before.and_then(|before| before.usage.get(name)) {
            added.sub(before);
        }
        (name.clone(), added)
    });
    let added: ResourceList = added.filter(|(_, added)| added.signum() > 0).collect();
    let charged = quotas
        .iter()
        .map(|quota| match object.is_counted_by(quota) {
            true => charge(quota, &added),
            false => Ok(quota.used.clone()),
        });
    charged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(hard: &[(&str, i64)], used: &[(&str, i64)]) -> QuotaView {
        let list = |pairs: &[(&str, i64)]| -> ResourceList {
            let pairs = pairs.iter().map(|(name, count)| {
                let count = Quantity::new(*count, Format::DecimalSi);
                (ResourceName::new(*name), count)
            });
            pairs.collect()
        };
        QuotaView {
            name: "q".to_owned(),
            hard: list(hard),
            used: list(used),
            scopes: Vec::new(),
        }
    }

    #[test]
    fn an_object_counts_under_both_of_its_names() {
        let quotas = [quota(
            &[("configmaps", 2), ("count/configmaps", 5)],
            &[("configmaps", 1), ("count/configmaps", 1)],
        )];
        let charge = ObjectCharge::of_kind("", "configmaps");
        let used = admit_object(&charge, None, &quotas).unwrap();
        assert_eq!(
            used[0]
                .get_or_zero(&ResourceName::new("configmaps"))
                .to_string(),
            "2"
        );
    }

    #[test]
    fn the_last_place_is_the_last() {
        let quotas = [quota(
            &[("count/deployments.apps", 1)],
            &[("count/deployments.apps", 1)],
        )];
        let charge = ObjectCharge::of_kind("apps", "deployments");
        let refusal = admit_object(&charge, None, &quotas).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "exceeded quota: q, requested: count/deployments.apps=1, used: \
             count/deployments.apps=1, limited: count/deployments.apps=1"
        );
        // An update adds nothing.
        assert!(admit_object(&charge, Some(&charge), &quotas).is_ok());
    }

    #[test]
    fn quota_without_a_status_refuses_all_objects() {
        let quotas = [quota(&[("secrets", 1)], &[])];
        let refusal = admit_object(&ObjectCharge::of_kind("", "secrets"), None, &quotas);
        assert_eq!(
            refusal.unwrap_err().to_string(),
            "status unknown for quota: q, resources: secrets"
        );
    }
}
