//! Roles, bindings and service accounts.

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::View;

pub(super) const SERVICE_ACCOUNT: Printer = Printer {
    columns: &[NAME, AGE],
    row: |object| row![object.name(), object.age()],
};

pub(super) const ROLE_BINDING: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Role", "api.rbac.v1.RoleBinding", "roleRef"),
        AGE,
        Column::text("Users", "Users in the roleBinding").wide(),
        Column::text("Groups", "Groups in the roleBinding").wide(),
        Column::text("ServiceAccounts", "ServiceAccounts in the roleBinding").wide(),
    ],
    row: binding,
};

pub(super) const CLUSTER_ROLE_BINDING: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Role", "api.rbac.v1.ClusterRoleBinding", "roleRef"),
        AGE,
        Column::text("Users", "Users in the clusterRoleBinding").wide(),
        Column::text("Groups", "Groups in the clusterRoleBinding").wide(),
        Column::text(
            "ServiceAccounts",
            "ServiceAccounts in the clusterRoleBinding",
        )
        .wide(),
    ],
    row: binding,
};

fn binding(object: View<'_>) -> Row {
    let role = format!(
        "{}/{}",
        object.text("/roleRef/kind"),
        object.text("/roleRef/name")
    );
    let subjects = |kind: &str| {
        let subjects = object
            .items("/subjects")
            .filter(|s| s.text("/kind") == kind);
        let names = subjects.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", subject.text("/namespace"), subject.text("/name")),
            _ => subject.text("/name").to_owned(),
        });
        names.collect::<Vec<String>>().join(", ")
    };
    row![
        object.name(),
        role,
        object.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
