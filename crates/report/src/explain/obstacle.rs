//! The details of a filter's rejection: amounts, labels and pods.

use plimsoll_core::object::selector::{Operator, Requirement, UnmetAffinity, UnmetTerm};
use plimsoll_core::resources::ResourceName;
use plimsoll_core::scheduling::cluster::NodeState;
use plimsoll_core::scheduling::plugin_names::FilterPlugin;
use plimsoll_core::scheduling::plugins::inter_pod_affinity::{Conflict, conflicts};
use plimsoll_core::scheduling::pod::AffinityTerm;

use crate::text::Unit;

use super::pending::Case;

/// The largest cluster in which conflicting pods are searched for: the search reads all pods.
const NODES_SEARCHED: usize = 32;
/// The maximum number of pods named.
const PODS_NAMED: usize = 3;

/// The amounts, labels and pods that explain a rejection.
pub(super) fn details(case: &Case<'_>, node: &NodeState, plugin: FilterPlugin) -> Vec<String> {
    let pod = case.cycle.pod;
    match plugin {
        FilterPlugin::NodeResourcesFit => {
            let lacks = shortages(case, node).into_iter();
            let mut details: Vec<String> = lacks
                .map(|lack| lack.sentence() + &holders(node, &lack))
                .collect();
            let pods = i64::try_from(node.pods().len()).unwrap_or(i64::MAX);
            if pods >= node.allowed_pods {
                details.push(format!("has {pods} of {} pods", node.allowed_pods));
            }
            details
        }
        FilterPlugin::TaintToleration => case.untolerated(node),
        FilterPlugin::NodeName => {
            let named = pod.node_name.iter();
            named.map(|name| format!("the pod names {name}")).collect()
        }
        FilterPlugin::NodePorts => {
            let wanted = pod.host_ports.iter();
            wanted
                .map(|port| format!("requires {}/{}", port.port, port.protocol))
                .collect()
        }
        FilterPlugin::NodeAffinity => affinity_details(&pod.node_rules.unmet(&node.view), node),
        FilterPlugin::InterPodAffinity => match case.cycle.cluster.node_count() {
            0..=NODES_SEARCHED => {
                let found = conflicts(pod, case.cycle.cluster, node).into_iter();
                found.map(conflict_sentence).collect()
            }
            _ => Vec::new(),
        },
        FilterPlugin::NodeUnschedulable | FilterPlugin::PodTopologySpread => Vec::new(),
    }
}

/// The pods with the largest requests of the missing resource.
fn holders(node: &NodeState, lack: &Shortage) -> String {
    let amount =
        |pod: &plimsoll_core::scheduling::pod::SchedulingPod| pod.requests.on_node.get(&lack.name);
    let mut pods: Vec<_> = node.pods().iter().filter(|pod| amount(pod) > 0).collect();
    if pods.is_empty() {
        return String::new();
    }
    pods.sort_by(|a, b| {
        amount(b)
            .cmp(&amount(a))
            .then_with(|| a.pod_ref.cmp(&b.pod_ref))
    });
    let named = pods.iter().take(PODS_NAMED).map(|pod| {
        let amount = lack.amount(amount(pod));
        format!("{} requests {amount}", pod.pod_ref)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match pods.len().saturating_sub(PODS_NAMED) {
        0 => format!(": {named}"),
        more => format!(": {named}, and {more} more"),
    }
}

/// The labels that the pod requires, and the node's values.
fn affinity_details(unmet: &UnmetAffinity, node: &NodeState) -> Vec<String> {
    let selector = unmet.node_selector.iter();
    let mut details: Vec<String> = selector
        .map(|requirement| required(requirement, node))
        .collect();
    let alternatives = unmet.alternatives.iter();
    let alternatives: Vec<String> = alternatives
        .map(|term| {
            let labels = term.labels.iter().map(|one| required(one, node));
            let fields = term.fields.iter().map(|field| {
                let operator = field.operator.as_str();
                format!("requires {}{operator}{}", field.field, field.value)
            });
            labels.chain(fields).collect::<Vec<_>>().join(" and ")
        })
        .collect();
    if !alternatives.is_empty() {
        details.push(alternatives.join("; or "));
    }
    details
}

fn required(requirement: &Requirement, node: &NodeState) -> String {
    match node.label(requirement.key()) {
        Some(value) => format!("requires {requirement}, the node has {value}"),
        None => format!("requires {requirement}"),
    }
}

/// The labels that would make the node match, if adding them is harmless: the node has none of
/// them, and none identifies the node.
pub(super) fn labels_to_add(unmet: &UnmetAffinity, node: &NodeState) -> Option<Vec<String>> {
    let nothing = UnmetTerm::default();
    let alternative = match &*unmet.alternatives {
        [] => &nothing,
        [one] if one.fields.is_empty() => one,
        _ => return None,
    };
    let requirements = unmet.node_selector.iter().chain(&alternative.labels);
    let labels: Option<Vec<String>> = requirements
        .map(|requirement| {
            let is_plain = matches!(
                requirement.operator(),
                Operator::In | Operator::Equals | Operator::DoubleEquals
            );
            let value = requirement.values().first().filter(|_| is_plain)?;
            let is_free = node.label(requirement.key()).is_none();
            (is_free && !is_identity(requirement.key()))
                .then(|| format!("{}={value}", requirement.key()))
        })
        .collect();
    labels.filter(|labels| !labels.is_empty())
}

/// Whether a label identifies a node or its location. The kubelet or the cloud provider sets such
/// labels; those of `node-restriction.kubernetes.io` are the administrator's.
fn is_identity(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    let is_in = |domain: &str| {
        let rest = prefix.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_administrators = is_in("node-restriction.kubernetes.io");
    !is_administrators && (is_in("kubernetes.io") || is_in("k8s.io"))
}

fn conflict_sentence(conflict: Conflict) -> String {
    let place = |term: &AffinityTerm| match &*term.topology_key {
        "kubernetes.io/hostname" => "on this node".to_owned(),
        key => format!("in the same {key}"),
    };
    match conflict {
        Conflict::Missing(term) => {
            format!("requires a pod with {} {}", term.selector, place(&term))
        }
        Conflict::Unwanted(term, pods) => {
            let named = pods.iter().take(PODS_NAMED).map(ToString::to_string);
            let mut named = named.collect::<Vec<_>>().join(", ");
            if pods.len() > PODS_NAMED {
                named += &format!(" and {} more", pods.len() - PODS_NAMED);
            }
            let verb = if pods.len() == 1 { "is" } else { "are" };
            format!(
                "allows no pod with {} {}, where {named} {verb}",
                term.selector,
                place(&term)
            )
        }
        Conflict::UnwantedBy(pod, term) => {
            format!(
                "{pod} allows no pod with {} {}",
                term.selector,
                place(&term)
            )
        }
    }
}

/// A resource of which a node has too little free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    pub(super) name: ResourceName,
    pub(super) wanted: i64,
    pub(super) free: i64,
    pub(super) allocatable: i64,
}

impl Shortage {
    pub(super) fn unit(&self) -> Unit {
        match &self.name {
            name if *name == ResourceName::CPU => Unit::Millicores,
            name if name.is_in_bytes() => Unit::Bytes,
            _ => Unit::Count,
        }
    }

    pub(super) fn amount(&self, value: i64) -> String {
        self.unit().about(value)
    }

    /// The missing amount.
    pub(super) fn lack(&self) -> i64 {
        self.wanted.saturating_sub(self.free)
    }

    fn sentence(&self) -> String {
        let (wanted, free) = (self.amount(self.wanted), self.amount(self.free.max(0)));
        let allocatable = self.amount(self.allocatable);
        format!(
            "requests {} {wanted}, {free} of {allocatable} free",
            self.name
        )
    }
}

/// The resources that the node lacks for the pod.
pub(super) fn shortages(case: &Case<'_>, node: &NodeState) -> Vec<Shortage> {
    let request = &case.cycle.pod.requests.incoming;
    let scalars = request.scalars.keys().cloned();
    let names = [
        ResourceName::CPU,
        ResourceName::MEMORY,
        ResourceName::EPHEMERAL_STORAGE,
    ];
    let all = names.into_iter().chain(scalars).map(|name| Shortage {
        wanted: request.get(&name),
        free: node
            .allocatable
            .get(&name)
            .saturating_sub(node.requested().get(&name)),
        allocatable: node.allocatable.get(&name),
        name,
    });
    all.filter(|shortage| shortage.wanted > 0 && shortage.lack() > 0)
        .collect()
}
