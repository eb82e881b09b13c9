//! The fields of a LimitRange that decisions read.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::problem::Problem;
use crate::resources::ResourceList;

use super::{parse_resource_list, render_resource_list};

/// A LimitRange, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRangeView {
    /// Its name; its namespace is that of the objects it limits.
    pub name: String,
    /// The limits, in the order written.
    pub items: Vec<LimitItem>,
}

/// The limits for one type of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitItem {
    /// The type of the limited object.
    pub limit_type: LimitType,
    /// Least request, and least limit where one is stated.
    pub min: ResourceList,
    /// Greatest limit, and greatest request.
    pub max: ResourceList,
    /// Limits for containers that state none.
    pub default: ResourceList,
    /// Requests for containers that state none.
    pub default_request: ResourceList,
    /// Greatest quotient of limit and request.
    pub max_limit_request_ratio: ResourceList,
}

/// The type of object that a LimitRange item limits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitType {
    /// Each container by itself.
    Container,
    /// All containers of a pod together.
    Pod,
    /// Volume claims.
    PersistentVolumeClaim,
    /// Third-party objects, such as `openshift.io/Image` and `openshift.io/ImageStream`. Such items
    /// are kept and checked for form, and never limit a pod or a claim.
    Other(String),
}

impl LimitType {
    /// The type of that name; unknown ones are kept as they are.
    pub fn from_name(name: &str) -> LimitType {
        match name {
            "Container" => LimitType::Container,
            "Pod" => LimitType::Pod,
            "PersistentVolumeClaim" => LimitType::PersistentVolumeClaim,
            other => LimitType::Other(other.to_owned()),
        }
    }

    /// The name in the API.
    pub fn as_str(&self) -> &str {
        match self {
            LimitType::Container => "Container",
            LimitType::Pod => "Pod",
            LimitType::PersistentVolumeClaim => "PersistentVolumeClaim",
            LimitType::Other(name) => name,
        }
    }
}

impl fmt::Display for LimitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl LimitRangeView {
    /// Parses a LimitRange as written; all its malformed quantities are reported.
    pub fn from_api(limit_range: &LimitRange) -> Result<LimitRangeView, Vec<Problem>> {
        let mut problems = Vec::new();
        let written = limit_range.spec.iter().flat_map(|spec| &spec.limits);
        let items = written
            .enumerate()
            .map(|(index, item)| {
                LimitItem::from_api(&format!("spec.limits[{index}]"), item, &mut problems)
            })
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let name = limit_range.metadata.name.clone().unwrap_or_default();
        Ok(LimitRangeView { name, items })
    }

    /// Fills in what the API server would when the object is stored.
    ///
    /// For containers a missing `default` is taken from `max`, a missing `defaultRequest` from
    /// `default` and then from `min`. Matches v1.36 pkg/apis/core/v1/defaults.go,
    /// `SetDefaults_LimitRangeItem`.
    pub fn apply_defaults(&mut self) {
        for item in &mut self.items {
            if item.limit_type == LimitType::Container {
                item.default.fill_from(&item.max);
                item.default_request.fill_from(&item.default);
                item.default_request.fill_from(&item.min);
            }
            for list in [
                &mut item.max,
                &mut item.min,
                &mut item.default,
                &mut item.default_request,
                &mut item.max_limit_request_ratio,
            ] {
                list.round_up_to_milli();
            }
        }
    }

    /// Writes the items into an API object.
    pub fn write_to(&self, limit_range: &mut LimitRange) {
        let spec = limit_range.spec.get_or_insert_default();
        spec.limits = self.items.iter().map(LimitItem::to_api).collect();
    }
}

impl LimitItem {
    fn from_api(path: &str, item: &LimitRangeItem, problems: &mut Vec<Problem>) -> LimitItem {
        let mut parse = |field: &str, list: &Option<BTreeMap<String, ApiQuantity>>| {
            parse_resource_list(format_args!("{path}.{field}"), list.as_ref(), problems)
        };
        LimitItem {
            limit_type: LimitType::from_name(&item.type_),
            min: parse("min", &item.min),
            max: parse("max", &item.max),
            default: parse("default", &item.default),
            default_request: parse("defaultRequest", &item.default_request),
            max_limit_request_ratio: parse("maxLimitRequestRatio", &item.max_limit_request_ratio),
        }
    }

    fn to_api(&self) -> LimitRangeItem {
        LimitRangeItem {
            type_: self.limit_type.to_string(),
            min: render_resource_list(&self.min),
            max: render_resource_list(&self.max),
            default: render_resource_list(&self.default),
            default_request: render_resource_list(&self.default_request),
            max_limit_request_ratio: render_resource_list(&self.max_limit_request_ratio),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn defaulted(item: Value) -> Value {
        let mut object: LimitRange =
            serde_json::from_value(json!({"spec": {"limits": [item]}})).unwrap();
        let mut view = LimitRangeView::from_api(&object).unwrap();
        view.apply_defaults();
        view.write_to(&mut object);
        serde_json::to_value(&object.spec.unwrap().limits[0]).unwrap()
    }

    #[test]
    fn container_defaults_are_max_then_default_then_min() {
        let item =
            json!({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}});
        assert_eq!(
            defaulted(item),
            json!({
                "type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"},
                "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2", "memory": "1Mi"},
            })
        );
    }

    #[test]
    fn other_types_get_no_defaults() {
        let item = json!({"type": "openshift.io/Image", "max": {"storage": "1Gi"}});
        assert_eq!(defaulted(item.clone()), item);
    }

    #[test]
    fn every_malformed_quantity_is_reported_with_its_path() {
        let object: LimitRange = serde_json::from_value(json!({"spec": {"limits": [
            {"type": "Pod", "max": {"cpu": "1x"}}, {"type": "Container", "default": {"memory": "x"}},
        ]}}))
        .unwrap();
        let problems = LimitRangeView::from_api(&object).unwrap_err();
        let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(
            paths,
            ["spec.limits[0].max[cpu]", "spec.limits[1].default[memory]"]
        );
    }
}
