//! Cluster policies: namespaces, quotas, priorities, budgets, leases.

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::View;

pub(super) const NAMESPACE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "The status of the namespace"),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            object.text_or("/status/phase", "Active"),
            object.age()
        ]
    },
};

pub(super) const RESOURCE_QUOTA: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Request",
            "Request represents a minimum amount of cpu/memory that a container may consume.",
        ),
        Column::text(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use \
             independent of contention on the node.",
        ),
        AGE,
    ],
    row: resource_quota,
};

fn resource_quota(quota: View<'_>) -> Row {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = quota.entries("/status/hard").into_iter().flatten();
    let mut resources: Vec<&String> = hard.map(|(resource, _)| resource).collect();
    resources.sort_unstable();
    for resource in resources {
        let [used, hard] =
            ["used", "hard"].map(|list| quota.quantity(&format!("/status/{list}"), resource));
        let column = match resource.starts_with("limits.") {
            true => &mut limits,
            false => &mut requests,
        };
        column.push(format!("{resource}: {used}/{hard}"));
    }
    row![
        quota.name(),
        requests.join(", "),
        limits.join(", "),
        quota.age()
    ]
}

const PRIORITY_CLASS_TYPE: &str = "api.scheduling.v1.PriorityClass";

pub(super) const PRIORITY_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Value", PRIORITY_CLASS_TYPE, "value").integer(),
        Column::field("Global-Default", PRIORITY_CLASS_TYPE, "globalDefault").boolean(),
        AGE,
        Column::field("PreemptionPolicy", PRIORITY_CLASS_TYPE, "preemptionPolicy"),
    ],
    row: |object| {
        row![
            object.name(),
            object.integer("/value"),
            object.flag("/globalDefault"),
            object.age(),
            object.text_or("/preemptionPolicy", "PreemptLowerPriority"),
        ]
    },
};

pub(super) const POD_DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Min Available",
            "The minimum number of pods that must be available.",
        ),
        Column::text(
            "Max Unavailable",
            "The maximum number of pods that may be unavailable.",
        ),
        Column::text(
            "Allowed Disruptions",
            "Calculated number of pods that may be disrupted at this time.",
        )
        .integer(),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            number_or_percentage(object, "/spec/minAvailable"),
            number_or_percentage(object, "/spec/maxUnavailable"),
            object.integer("/status/disruptionsAllowed"),
            object.age(),
        ]
    },
};

fn number_or_percentage(object: View<'_>, pointer: &str) -> String {
    match (object.has(pointer), object.text(pointer)) {
        (false, _) => "N/A".to_owned(),
        (true, "") => object.integer(pointer).to_string(),
        (true, text) => text.to_owned(),
    }
}

pub(super) const LEASE: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Holder", "api.coordination.v1.LeaseSpec", "holderIdentity"),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            object.text("/spec/holderIdentity"),
            object.age()
        ]
    },
};

pub(super) const RUNTIME_CLASS: Printer = Printer {
    // Upstream looks the description up in the wrong type and finds none.
    columns: &[NAME, Column::text("Handler", ""), AGE],
    row: |object| row![object.name(), object.text("/handler"), object.age()],
};
