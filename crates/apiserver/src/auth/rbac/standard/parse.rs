//! The grammar of the tables.
//!
//! ```text
//! # a comment
//! role NAME [in NAMESPACE] [part-of LABEL]… [gathers LABEL]…
//!     VERBS  GROUPS  RESOURCES  [named NAMES]
//!     VERBS  urls    PATHS
//! binding NAME [in NAMESPACE] [to ROLE]
//!     user NAME
//!     group NAME
//!     account NAMESPACE/NAME
//! ```
//!
//! Lists are separated by commas. `READ` and `WRITE` stand for several verbs, `core` for the group
//! without a name; a binding without a role binds the role of its own name.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
    Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::Standard;
use crate::auth::rbac::GROUP;

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// A line of a table that does not follow the grammar.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of a default policy table is invalid")]
pub(super) struct WrongLine {
    line: usize,
}

/// The words of a heading.
#[derive(Debug, Default)]
struct Heading<'a> {
    name: &'a str,
    namespace: Option<&'a str>,
    role: Option<&'a str>,
    part_of: Vec<&'a str>,
    gathers: Vec<&'a str>,
}

/// Adds the contents of a table.
pub(super) fn parse(table: &str, standard: &mut Standard) -> Result<(), WrongLine> {
    let mut lines = table.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.starts_with('#') {
            continue;
        }
        let wrong = |number: usize| WrongLine { line: number + 1 };
        let (sort, words) = line.split_once(' ').ok_or_else(|| wrong(number))?;
        let heading = heading(words).ok_or_else(|| wrong(number))?;
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|(_, line)| line.starts_with(' ')) {
            body.push(line);
        }
        match sort {
            "role" => {
                let rules = body
                    .iter()
                    .map(|(n, line)| rule(line).ok_or_else(|| wrong(*n)));
                standard.add_role(&heading, rules.collect::<Result<_, _>>()?);
            }
            "binding" => {
                let subjects = body
                    .iter()
                    .map(|(n, line)| subject(line).ok_or_else(|| wrong(*n)));
                standard.add_binding(&heading, subjects.collect::<Result<_, _>>()?);
            }
            _ => return Err(wrong(number)),
        }
    }
    Ok(())
}

impl Standard {
    fn add_role(&mut self, heading: &Heading<'_>, rules: Vec<PolicyRule>) {
        let metadata = metadata(heading.name, heading.namespace, &heading.part_of);
        if heading.namespace.is_some() {
            let rules = Some(rules);
            self.roles.push(Role { metadata, rules });
            return;
        }
        let selectors = heading.gathers.iter().map(|label| LabelSelector {
            match_labels: Some([gathering_label(label)].into()),
            ..LabelSelector::default()
        });
        let selectors: Vec<LabelSelector> = selectors.collect();
        self.cluster_roles.push(ClusterRole {
            metadata,
            aggregation_rule: (!selectors.is_empty()).then_some(AggregationRule {
                cluster_role_selectors: Some(selectors),
            }),
            rules: (!rules.is_empty()).then_some(rules),
        });
    }

    fn add_binding(&mut self, heading: &Heading<'_>, subjects: Vec<Subject>) {
        let role = heading.role.unwrap_or(heading.name);
        if heading.namespace.is_none() {
            let binding = cluster_role_binding(heading.name, role, subjects);
            self.cluster_role_bindings.push(binding);
            return;
        }
        self.role_bindings.push(RoleBinding {
            metadata: metadata(heading.name, heading.namespace, &[]),
            role_ref: role_ref("Role", role),
            subjects: Some(subjects),
        });
    }
}

fn heading(words: &str) -> Option<Heading<'_>> {
    let mut words = words.split(' ');
    let mut heading = Heading {
        name: words.next()?,
        ..Heading::default()
    };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word {
            "in" => heading.namespace = Some(value),
            "to" => heading.role = Some(value),
            "part-of" => heading.part_of.push(value),
            "gathers" => heading.gathers.push(value),
            _ => return None,
        }
    }
    Some(heading)
}

fn rule(line: &str) -> Option<PolicyRule> {
    let list = |text: &str| Some(text.split(',').map(str::to_owned).collect());
    let mut columns = line.split("  ").filter(|column| !column.is_empty());
    let verbs = verbs(columns.next()?);
    let groups = columns.next()?;
    let things = columns.next()?;
    if groups == "urls" {
        return Some(PolicyRule {
            non_resource_urls: list(things),
            verbs,
            ..PolicyRule::default()
        });
    }
    let names = match columns.next() {
        Some(names) => list(names.strip_prefix("named ")?),
        None => None,
    };
    let group = |name: &str| if name == "core" { "" } else { name }.to_owned();
    Some(PolicyRule {
        api_groups: Some(groups.split(',').map(group).collect()),
        resources: list(things),
        resource_names: names,
        verbs,
        ..PolicyRule::default()
    })
}

fn verbs(column: &str) -> Vec<String> {
    let mut verbs = Vec::new();
    for word in column.split(',') {
        match word {
            "READ" => verbs.extend(READ.map(str::to_owned)),
            "WRITE" => verbs.extend(WRITE.map(str::to_owned)),
            verb => verbs.push(verb.to_owned()),
        }
    }
    verbs.sort();
    verbs
}

fn subject(line: &str) -> Option<Subject> {
    let (sort, name) = line.trim_start().split_once(' ')?;
    let kind = match sort {
        "user" => "User",
        "group" => "Group",
        "account" => {
            let (namespace, name) = name.split_once('/')?;
            return Some(account(namespace, name));
        }
        _ => return None,
    };
    Some(Subject {
        api_group: Some(GROUP.to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: None,
    })
}

/// A service account as a subject.
pub(super) fn account(namespace: &str, name: &str) -> Subject {
    Subject {
        api_group: None,
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()),
    }
}

/// A default binding of a cluster role.
pub(super) fn cluster_role_binding(
    name: &str,
    role: &str,
    subjects: Vec<Subject>,
) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: metadata(name, None, &[]),
        role_ref: role_ref("ClusterRole", role),
        subjects: (!subjects.is_empty()).then_some(subjects),
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: Some(GROUP.to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn metadata(name: &str, namespace: Option<&str>, part_of: &[&str]) -> ObjectMeta {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut labels = BTreeMap::from([pair("kubernetes.io/bootstrapping", "rbac-defaults")]);
    labels.extend(part_of.iter().map(|label| gathering_label(label)));
    let annotations = [pair("rbac.authorization.kubernetes.io/autoupdate", "true")];
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels),
        annotations: Some(annotations.into()),
        ..ObjectMeta::default()
    }
}

/// The label that aggregates roles into the one called `name`.
fn gathering_label(name: &str) -> (String, String) {
    (format!("{GROUP}/aggregate-to-{name}"), "true".to_owned())
}
