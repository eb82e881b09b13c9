//! The fields of plugin arguments.
//!
//! Every field of v1.36 staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go and of the
//! objects inside, all of which upstream decodes strictly.

use crate::config::shape::{Field, Shape};

/// An entry of `pluginConfig`.
pub(super) const PLUGIN_CONFIG: &[Field] = &[
    Field::new("name", Shape::Text),
    Field::new("args", Shape::Any),
];

/// The fields of the arguments of a plugin; `None` for plugins that have none.
pub(super) fn of(plugin: &str) -> Option<&'static [Field]> {
    Some(match plugin {
        "DefaultPreemption" => PREEMPTION,
        "DynamicResources" => DYNAMIC_RESOURCES,
        "InterPodAffinity" => INTER_POD_AFFINITY,
        "NodeAffinity" => NODE_AFFINITY,
        "NodeResourcesBalancedAllocation" => BALANCED,
        "NodeResourcesFit" => FIT,
        "PodTopologySpread" => SPREAD,
        "VolumeBinding" => VOLUME_BINDING,
        _ => return None,
    })
}

const API_VERSION: Field = Field::new("apiVersion", Shape::Text);
const KIND: Field = Field::new("kind", Shape::Text);

const PREEMPTION: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("minCandidateNodesPercentage", Shape::Int32),
    Field::new("minCandidateNodesAbsolute", Shape::Int32),
];

const DYNAMIC_RESOURCES: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("filterTimeout", Shape::Duration),
    Field::new("bindingTimeout", Shape::Duration),
];

const INTER_POD_AFFINITY: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("hardPodAffinityWeight", Shape::Int32),
    Field::new("ignorePreferredTermsOfExistingPods", Shape::Bool),
];

const NODE_AFFINITY: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("addedAffinity", Shape::Record(ADDED_AFFINITY)),
];

const BALANCED: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("resources", Shape::Records(RESOURCE)),
];

const FIT: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("ignoredResources", Shape::TextList),
    Field::new("ignoredResourceGroups", Shape::TextList),
    Field::new("scoringStrategy", Shape::Record(STRATEGY)),
];

const SPREAD: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("defaultConstraints", Shape::Records(CONSTRAINT)),
    Field::new("defaultingType", Shape::Text),
];

const VOLUME_BINDING: &[Field] = &[
    API_VERSION,
    KIND,
    Field::new("bindTimeoutSeconds", Shape::Int64),
    Field::new("shape", Shape::Records(POINT)),
];

const RESOURCE: &[Field] = &[
    Field::new("name", Shape::Text),
    Field::new("weight", Shape::Int64),
];

const STRATEGY: &[Field] = &[
    Field::new("type", Shape::Text),
    Field::new("resources", Shape::Records(RESOURCE)),
    Field::new("requestedToCapacityRatio", Shape::Record(RATIO)),
];

const RATIO: &[Field] = &[Field::new("shape", Shape::Records(POINT))];

const POINT: &[Field] = &[
    Field::new("utilization", Shape::Int32),
    Field::new("score", Shape::Int32),
];

const CONSTRAINT: &[Field] = &[
    Field::new("maxSkew", Shape::Int32),
    Field::new("topologyKey", Shape::Text),
    Field::new("whenUnsatisfiable", Shape::Text),
    Field::new("labelSelector", Shape::Record(LABEL_SELECTOR)),
    Field::new("minDomains", Shape::Int32),
    Field::new("nodeAffinityPolicy", Shape::Text),
    Field::new("nodeTaintsPolicy", Shape::Text),
    Field::new("matchLabelKeys", Shape::TextList),
];

const LABEL_SELECTOR: &[Field] = &[
    Field::new("matchLabels", Shape::TextMap),
    Field::new("matchExpressions", Shape::Records(REQUIREMENT)),
];

const REQUIREMENT: &[Field] = &[
    Field::new("key", Shape::Text),
    Field::new("operator", Shape::Text),
    Field::new("values", Shape::TextList),
];

const ADDED_AFFINITY: &[Field] = &[
    Field::new(
        "requiredDuringSchedulingIgnoredDuringExecution",
        Shape::Record(NODE_SELECTOR),
    ),
    Field::new(
        "preferredDuringSchedulingIgnoredDuringExecution",
        Shape::Records(PREFERRED_TERM),
    ),
];

const NODE_SELECTOR: &[Field] = &[Field::new(
    "nodeSelectorTerms",
    Shape::Records(NODE_SELECTOR_TERM),
)];

const NODE_SELECTOR_TERM: &[Field] = &[
    Field::new("matchExpressions", Shape::Records(REQUIREMENT)),
    Field::new("matchFields", Shape::Records(REQUIREMENT)),
];

const PREFERRED_TERM: &[Field] = &[
    Field::new("weight", Shape::Int32),
    Field::new("preference", Shape::Record(NODE_SELECTOR_TERM)),
];
