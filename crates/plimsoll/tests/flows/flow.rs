//! One flow: a cluster, a namespace of its own in it, nodes of its own, and kubectl.

use std::ops::Deref;

use plimsoll_testkit::kubectl::Kubectl;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use crate::kubelets::Kubelets;
use crate::target::Target;

/// Everything that a test of a flow needs. What it made in a cluster that is not ours goes with it.
pub(crate) struct Flow {
    pub(crate) kubelets: Kubelets,
    pub(crate) target: Target,
    /// Its namespace. Its nodes carry it as label `flow`, and its pods select that label.
    pub(crate) name: String,
    kubectl: Kubectl,
}

/// A flow is seen through kubectl.
impl Deref for Flow {
    type Target = Kubectl;

    fn deref(&self) -> &Kubectl {
        &self.kubectl
    }
}

impl Flow {
    /// A cluster with default settings.
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    /// With these flags for the controllers, where they are ours.
    pub(crate) fn start_with(name: &str, controller_flags: &[&str]) -> Self {
        let target = Target::new(controller_flags);
        let name = format!("flow-{name}");
        let flow = Flow {
            kubelets: Kubelets::start(target.kubeconfig()),
            kubectl: Kubectl::new(target.kubeconfig(), &name),
            target,
            name,
        };
        flow.kubectl(&format!("create namespace {}", flow.name));
        flow.shows("get serviceaccounts -o name", "serviceaccount/default\n");
        flow
    }

    /// A node with four cores joins. The answer is its name.
    pub(crate) fn node(&self, name: &str) -> String {
        self.node_with(name, &json!({ "cpu": "4", "memory": "8Gi", "pods": "110" }))
    }

    /// A node with these resources joins. The answer is its name.
    pub(crate) fn node_with(&self, name: &str, resources: &Value) -> String {
        let name = format!("{}-{name}", self.name);
        self.kubelets.join(&json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "labels": { "flow": self.name, "kubernetes.io/hostname": name },
            },
            "status": { "capacity": resources, "allocatable": resources },
        }));
        // A node starts with a taint, which the controllers remove when it is ready.
        let taints = format!("get node {name} -o jsonpath={{.spec.taints}}");
        self.shows(&taints, "");
        name
    }

    /// Runs kubectl, which has to fail, and gives what it complained of.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let answer = self.try_kubectl(arguments);
        assert!(
            !answer.is_fine(),
            "kubectl {arguments} worked: {}",
            answer.stdout
        );
        answer.stderr
    }

    /// Creates an object, in the namespace of the flow unless it names one.
    pub(crate) fn create(&self, manifest: &Value) {
        let namespace = manifest["metadata"]["namespace"].as_str();
        let create = format!("create -f - -n {}", namespace.unwrap_or(&self.name));
        self.kubectl_with(&create, &manifest.to_string());
    }

    /// Waits until the object is gone.
    pub(crate) fn is_gone(&self, object: &str) {
        until(&format!("{object} is gone"), || {
            let answer = self.try_kubectl(&format!("get {object} -o yaml"));
            let is_gone = answer.stderr.contains("NotFound");
            if is_gone { Ok(()) } else { Err(answer.stdout) }
        });
    }

    /// The names of the pods with this label, sorted.
    pub(crate) fn pods(&self, selector: &str) -> Vec<String> {
        let shown = self.kubectl(&format!("get pods -l {selector} -o name"));
        shown.lines().map(|line| line.replace("pod/", "")).collect()
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if self.target.is_ours() {
            return;
        }
        // Its nodes have to let its pods go before they go themselves.
        let nodes = self.try_kubectl(&format!("get nodes -l flow={} -o name", self.name));
        self.try_kubectl(&format!("delete namespace {} --timeout=60s", self.name));
        let classes = format!("delete nodes,priorityclasses -l flow={}", self.name);
        self.try_kubectl(&classes);
        let leases = nodes.stdout.replace("node/", "lease/");
        let leases = leases.split_whitespace().collect::<Vec<_>>().join(" ");
        self.try_kubectl(&format!("delete -n kube-node-lease {leases}"));
    }
}
