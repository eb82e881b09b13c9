//! Resource lists of API objects.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};

/// Parses the quantities of an API resource list; `path` is where the list stands, printed only
/// if something is wrong.
pub fn parse_resource_list(
    path: impl fmt::Display,
    list: Option<&BTreeMap<String, ApiQuantity>>,
    problems: &mut Vec<Problem>,
) -> ResourceList {
    let mut parsed = ResourceList::new();
    for (name, ApiQuantity(text)) in list.into_iter().flatten() {
        match text.trim().parse::<Quantity>() {
            Ok(quantity) => parsed.insert(ResourceName::from(name.as_str()), quantity),
            Err(error) => problems.push(Problem::invalid(
                format!("{path}[{name}]"),
                text,
                error.to_string(),
            )),
        }
    }
    parsed
}

/// The list as an API object has it; `None` when empty. The inverse of [`parse_resource_list`].
pub fn render_resource_list(list: &ResourceList) -> Option<BTreeMap<String, ApiQuantity>> {
    if list.is_empty() {
        return None;
    }
    let rendered = list
        .iter()
        .map(|(name, quantity)| (name.to_string(), ApiQuantity(quantity.to_string())));
    Some(rendered.collect())
}
