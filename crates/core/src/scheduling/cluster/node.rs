//! One node with the pods on it.

use std::sync::Arc;

use crate::object::node::NodeView;
use crate::scheduling::pod::{Request, SchedulingPod, UsedPorts};

/// A node, its pods, and sums over them.
///
/// Cloning one is how a preemption is tried out.
#[derive(Clone, Debug)]
pub struct NodeState {
    /// The node.
    pub view: Arc<NodeView>,
    /// The resources that its pods may use.
    pub allocatable: Request,
    /// How many pods it may have; a node that does not say may have none.
    pub allowed_pods: i64,
    pods: Vec<Arc<SchedulingPod>>,
    requested: Request,
    non_zero_milli_cpu: i64,
    non_zero_memory: i64,
    used_ports: UsedPorts,
}

impl NodeState {
    /// A node without pods.
    pub fn new(view: Arc<NodeView>) -> NodeState {
        let mut node = NodeState {
            view: Arc::clone(&view),
            allocatable: Request::default(),
            allowed_pods: 0,
            pods: Vec::new(),
            requested: Request::default(),
            non_zero_milli_cpu: 0,
            non_zero_memory: 0,
            used_ports: UsedPorts::default(),
        };
        node.set_view(view);
        node
    }

    /// Replaces the node; its pods stay.
    pub(super) fn set_view(&mut self, view: Arc<NodeView>) {
        self.allocatable = Request::from_list(&view.allocatable.list);
        self.allowed_pods = view.allocatable.typed.pods.0;
        self.view = view;
    }

    /// Its pods. The order is upstream's: new ones last, the last takes the place of one that goes.
    pub fn pods(&self) -> &[Arc<SchedulingPod>] {
        &self.pods
    }

    /// The sum of the requests of its pods.
    pub fn requested(&self) -> &Request {
        &self.requested
    }

    /// The sum of the cpu requests, with 100m for each container that states none.
    pub fn non_zero_milli_cpu(&self) -> i64 {
        self.non_zero_milli_cpu
    }

    /// The sum of the memory requests, with 200Mi for each container that states none.
    pub fn non_zero_memory(&self) -> i64 {
        self.non_zero_memory
    }

    /// The ports that its pods hold.
    pub fn used_ports(&self) -> &UsedPorts {
        &self.used_ports
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.view.labels.get(key).map(String::as_str)
    }

    /// Puts a pod on the node.
    pub fn add_pod(&mut self, pod: Arc<SchedulingPod>) {
        let requests = &pod.requests;
        self.requested.add(&requests.on_node);
        self.non_zero_milli_cpu = self
            .non_zero_milli_cpu
            .wrapping_add(requests.non_zero_milli_cpu);
        self.non_zero_memory = self.non_zero_memory.wrapping_add(requests.non_zero_memory);
        self.used_ports.add(&pod.host_ports);
        self.pods.push(pod);
    }

    /// Takes a pod off the node; false if it is not there.
    pub fn remove_pod(&mut self, pod: &SchedulingPod) -> bool {
        let Some(index) = self.pods.iter().rposition(|own| own.uid == pod.uid) else {
            return false;
        };
        let pod = self.pods.swap_remove(index);
        let requests = &pod.requests;
        self.requested.sub(&requests.on_node);
        self.non_zero_milli_cpu = self
            .non_zero_milli_cpu
            .wrapping_sub(requests.non_zero_milli_cpu);
        self.non_zero_memory = self.non_zero_memory.wrapping_sub(requests.non_zero_memory);
        self.used_ports.remove(&pod.host_ports);
        true
    }
}
