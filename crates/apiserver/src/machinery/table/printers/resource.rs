//! Devices and resource claims.

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, row};
use super::super::view::View;

pub(super) const DEVICE_CLASS: Printer = Printer {
    columns: &[NAME, AGE],
    row: |object| row![object.name(), object.age()],
};

pub(super) const RESOURCE_CLAIM: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "State",
            "A summary of the current state (allocated, pending, reserved, etc.).",
        ),
        AGE,
    ],
    row: |object| row![object.name(), claim_state(object), object.age()],
};

fn claim_state(claim: View<'_>) -> &'static str {
    let is_allocated = claim.has("/status/allocation");
    let is_reserved = claim.items("/status/reservedFor").len() > 0;
    match (claim.is_being_deleted(), is_allocated, is_reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}

pub(super) const RESOURCE_SLICE: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Node", "api.resource.v1.ResourceSliceSpec", "nodeName"),
        Column::field("Driver", "api.resource.v1.ResourceSliceSpec", "driver"),
        Column::field("Pool", "api.resource.v1.ResourcePool", "name"),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            object.text("/spec/nodeName"),
            object.text("/spec/driver"),
            object.text("/spec/pool/name"),
            object.age(),
        ]
    },
};
