//! Workloads: sets and deployments.

use plimsoll_core::object::selector::LabelSelector;

use super::super::column::{AGE, CONTAINERS, Column, IMAGES, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::{NONE, View};

const TEMPLATE: &str = "/spec/template/spec";

pub(super) const POD_TEMPLATE: Printer = Printer {
    columns: &[
        NAME,
        CONTAINERS.narrow(),
        IMAGES.narrow(),
        Column::text("Pod Labels", "The labels for the pod template."),
    ],
    row: |object| {
        let (names, images) = object.containers("/template/spec");
        row![
            object.name(),
            names,
            images,
            object.labels("/template/metadata/labels"),
        ]
    },
};

pub(super) const REPLICATION_CONTROLLER: Printer = Printer {
    columns: &[
        NAME,
        Column::field(
            "Desired",
            "api.core.v1.ReplicationControllerSpec",
            "replicas",
        )
        .integer(),
        Column::field(
            "Current",
            "api.core.v1.ReplicationControllerStatus",
            "replicas",
        )
        .integer(),
        Column::field(
            "Ready",
            "api.core.v1.ReplicationControllerStatus",
            "readyReplicas",
        )
        .integer(),
        AGE,
        CONTAINERS,
        IMAGES,
        Column::field(
            "Selector",
            "api.core.v1.ReplicationControllerSpec",
            "selector",
        )
        .wide(),
    ],
    row: |object| replicas(object, object.labels("/spec/selector")),
};

pub(super) const REPLICA_SET: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Desired", "api.apps.v1.ReplicaSetSpec", "replicas").integer(),
        Column::field("Current", "api.apps.v1.ReplicaSetStatus", "replicas").integer(),
        Column::field("Ready", "api.apps.v1.ReplicaSetStatus", "readyReplicas").integer(),
        AGE,
        CONTAINERS,
        IMAGES,
        Column::field("Selector", "api.apps.v1.ReplicaSetSpec", "selector").wide(),
    ],
    row: |object| replicas(object, object.selector("/spec/selector")),
};

fn replicas(object: View<'_>, selector: String) -> Row {
    let (names, images) = object.containers(TEMPLATE);
    row![
        object.name(),
        object.integer_or("/spec/replicas", 1),
        object.integer("/status/replicas"),
        object.integer("/status/readyReplicas"),
        object.age(),
        names,
        images,
        selector,
    ]
}

const DAEMON_SET_STATUS: &str = "api.apps.v1.DaemonSetStatus";

pub(super) const DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Desired", DAEMON_SET_STATUS, "desiredNumberScheduled").integer(),
        Column::field("Current", DAEMON_SET_STATUS, "currentNumberScheduled").integer(),
        Column::field("Ready", DAEMON_SET_STATUS, "numberReady").integer(),
        Column::field("Up-to-date", DAEMON_SET_STATUS, "updatedNumberScheduled").integer(),
        Column::field("Available", DAEMON_SET_STATUS, "numberAvailable").integer(),
        Column::field("Node Selector", "api.core.v1.PodSpec", "nodeSelector"),
        AGE,
        CONTAINERS,
        IMAGES,
        Column::field("Selector", "api.apps.v1.DaemonSetSpec", "selector").wide(),
    ],
    row: |object| {
        let (names, images) = object.containers(TEMPLATE);
        row![
            object.name(),
            object.integer("/status/desiredNumberScheduled"),
            object.integer("/status/currentNumberScheduled"),
            object.integer("/status/numberReady"),
            object.integer("/status/updatedNumberScheduled"),
            object.integer("/status/numberAvailable"),
            object.labels("/spec/template/spec/nodeSelector"),
            object.age(),
            names,
            images,
            object.selector("/spec/selector"),
        ]
    },
};

pub(super) const STATEFUL_SET: Printer = Printer {
    columns: &[NAME, READY, AGE, CONTAINERS, IMAGES],
    row: |object| {
        let (names, images) = object.containers(TEMPLATE);
        row![
            object.name(),
            ready_of_desired(object),
            object.age(),
            names,
            images
        ]
    },
};

const READY: Column = Column::text("Ready", "Number of the pod with ready state");

fn ready_of_desired(object: View<'_>) -> String {
    let ready = object.integer("/status/readyReplicas");
    format!("{ready}/{}", object.integer_or("/spec/replicas", 1))
}

pub(super) const DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        READY,
        Column::field(
            "Up-to-date",
            "api.apps.v1.DeploymentStatus",
            "updatedReplicas",
        ),
        Column::field(
            "Available",
            "api.apps.v1.DeploymentStatus",
            "availableReplicas",
        ),
        AGE,
        CONTAINERS,
        IMAGES,
        Column::field("Selector", "api.apps.v1.DeploymentSpec", "selector").wide(),
    ],
    row: deployment,
};

fn deployment(object: View<'_>) -> Row {
    let (names, images) = object.containers(TEMPLATE);
    // Unlike elsewhere, an empty selector is shown as nothing and an invalid one as invalid.
    let selector = match object.api_selector("/spec/selector") {
        Ok(selector) => LabelSelector::from_api(selector.as_ref()).ok(),
        Err(_) => None,
    };
    row![
        object.name(),
        ready_of_desired(object),
        object.integer("/status/updatedReplicas"),
        object.integer("/status/availableReplicas"),
        object.age(),
        names,
        images,
        selector.map_or_else(|| "<invalid>".to_owned(), |selector| selector.to_string()),
    ]
}

pub(super) const CONTROLLER_REVISION: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Controller", "Controller of the object"),
        Column::field("Revision", "api.apps.v1.ControllerRevision", "revision"),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            controller(object),
            object.integer("/revision"),
            object.age()
        ]
    },
};

/// `daemonset.apps/name`.
fn controller(object: View<'_>) -> String {
    let mut owners = object.items("/metadata/ownerReferences");
    let Some(owner) = owners.find(|owner| owner.flag("/controller")) else {
        return NONE.to_owned();
    };
    let (kind, name) = (owner.text("/kind").to_lowercase(), owner.text("/name"));
    match owner.text("/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None if kind.is_empty() => name.to_owned(),
        None => format!("{kind}/{name}"),
    }
}

pub(super) const SCALE: Printer = Printer {
    columns: &[
        Column::field("Name", "apimachinery.pkg.apis.meta.v1.ObjectMeta", "name"),
        Column::field("Desired", "api.autoscaling.v1.ScaleSpec", "replicas").integer(),
        Column::field("Available", "api.autoscaling.v1.ScaleStatus", "replicas").integer(),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            object.integer("/spec/replicas"),
            object.integer("/status/replicas"),
            object.age(),
        ]
    },
};
