//! The fields of a pod that the scheduler reads, parsed once.
//!
//! A [`SchedulingPod`] is made when the pod is first seen and shared from then on: everything that
//! would have to be parsed (quantities, selectors) is parsed here. It serves both as the pod that
//! is looking for a node and as one of those that are on a node already.
//!
//! Reading order: `request` (its requests, in three variants), `ports`, `images`, `node_rules`
//! (which nodes), `spread` (topology spread constraints), `affinity` (other pods), `view`.

mod affinity;
mod images;
mod node_rules;
mod ports;
mod request;
mod spread;
mod view;

pub use affinity::{AffinityTerm, PodAffinity, WeightedTerm};
pub use images::{PodImages, normalized_image_name};
pub use node_rules::{NamedNodes, NodeRules};
pub use ports::{HostPort, UsedPorts};
pub use request::{PodRequests, Request, is_scalar_resource_name};
pub use spread::{InclusionPolicy, SpreadConstraint, SpreadConstraints};
pub use view::{ControllerRef, PreemptionPolicy, SchedulingPod};
