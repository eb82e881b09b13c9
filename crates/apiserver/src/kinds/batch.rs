//! `batch/v1`.

use super::Group;
use super::kind::{Kind, Subresource};
use super::selectable::{Read, Selectable};
use super::strategy::{Cascade, Generation};

const V1: (&str, &str) = ("batch", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::namespaced(V1, "CronJob", "cronjobs", "cronjob")
            .short(&["cj"])
            .in_all()
            .with(&[Subresource::view("status", "CronJob")])
            .generation(Generation::SPEC),
        Kind::namespaced(V1, "Job", "jobs", "job")
            .in_all()
            .with(&[Subresource::view("status", "Job")])
            .selectable(
                Selectable::fields(&[("status.successful", Read::Count("/status/succeeded"))])
                    .refused_for("Job"),
            )
            .generation(Generation::SPEC)
            .cascade(Cascade::Orphan),
    ],
};
