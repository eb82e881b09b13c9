//! Validation of LimitRanges.
//!
//! Matches v1.36 pkg/apis/core/validation/validation.go, `ValidateLimitRange`, without the checks
//! of metadata. The LimitRange must carry its API defaults.

use std::collections::BTreeSet;

use crate::object::limit_range::{LimitItem, LimitRangeView, LimitType};
use crate::object::resource_rules::{check_container_resource_name, check_resource_name};
use crate::object::syntax::check_label_key;
use crate::problem::Problem;
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceList, ResourceName};

use super::ratio::{MAX_MILLI_VALUE, float};

/// Upstream's name for `defaultRequest` beside `default`.
const REQUEST: &str = "default request";
const LIMIT: &str = "default limit";

/// All that is wrong with the items.
pub fn validate(limit_range: &LimitRangeView) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, item) in limit_range.items.iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        let earlier = &limit_range.items[..index];
        check_type(item, earlier, &path, &mut problems);
        let check = ItemCheck { item, path };
        check.check_names(&mut problems);
        for name in check.names() {
            check.check_order(name, &mut problems);
            check.check_ratio(name, &mut problems);
            check.check_overcommit(name, &mut problems);
        }
    }
    problems
}

fn check_type(item: &LimitItem, earlier: &[LimitItem], path: &str, problems: &mut Vec<Problem>) {
    let path = format!("{path}.type");
    let name = item.limit_type.as_str();
    let mistakes = check_label_key(name);
    let is_unknown = matches!(&item.limit_type, LimitType::Other(name) if !name.contains('/'));
    if mistakes.is_empty() && is_unknown {
        let detail = "must be a standard limit type or fully qualified";
        problems.push(Problem::invalid(&path, name, detail));
    }
    for mistake in mistakes {
        problems.push(Problem::invalid(&path, name, mistake));
    }
    if earlier
        .iter()
        .any(|other| other.limit_type == item.limit_type)
    {
        problems.push(Problem::duplicate(&path, name));
    }
}

struct ItemCheck<'a> {
    item: &'a LimitItem,
    path: String,
}

impl ItemCheck<'_> {
    /// The lists that count. Defaults of a Pod item are refused as a whole and then left out.
    fn lists(&self) -> Vec<(&'static str, &ResourceList)> {
        let item = self.item;
        let mut lists = vec![("max", &item.max), ("min", &item.min)];
        if item.limit_type != LimitType::Pod {
            lists.push(("default", &item.default));
            lists.push(("defaultRequest", &item.default_request));
        }
        lists.push(("maxLimitRequestRatio", &item.max_limit_request_ratio));
        lists
    }

    fn names(&self) -> BTreeSet<&ResourceName> {
        let lists = self.lists().into_iter();
        lists.flat_map(|(_, list)| list.names()).collect()
    }

    fn value(&self, field: &str, name: &ResourceName) -> Option<&Quantity> {
        let lists = self.lists();
        let (_, list) = lists.into_iter().find(|(other, _)| *other == field)?;
        list.get(name)
    }

    fn check_names(&self, problems: &mut Vec<Problem>) {
        let item = self.item;
        let check_name = match item.limit_type {
            LimitType::Pod | LimitType::Container => check_container_resource_name,
            LimitType::PersistentVolumeClaim | LimitType::Other(_) => check_resource_name,
        };
        for (field, list) in self.lists() {
            for name in list.names() {
                check_name(name, &self.key(field, name), problems);
            }
        }
        for (field, list) in [
            ("default", &item.default),
            ("defaultRequest", &item.default_request),
        ] {
            if item.limit_type == LimitType::Pod && !list.is_empty() {
                let detail = "may not be specified when `type` is 'Pod'";
                let path = format!("{}.{field}", self.path);
                problems.push(Problem::forbidden(path, detail));
            }
        }
        let storage = &ResourceName::STORAGE;
        let has_bound = item.min.contains(storage) || item.max.contains(storage);
        if item.limit_type == LimitType::PersistentVolumeClaim && !has_bound {
            problems.push(Problem::required(
                format!("{}.limits", self.path),
                "either minimum or maximum storage value is required, but neither was provided",
            ));
        }
    }

    /// min <= defaultRequest <= default <= max, each pair by itself.
    fn check_order(&self, name: &ResourceName, problems: &mut Vec<Problem>) {
        let [min, max, limit, request] =
            ["min", "max", "default", "defaultRequest"].map(|field| self.value(field, name));
        // The field that is blamed, the two values with their names, and the value that is shown,
        // which upstream does not always take from the field it blames.
        for (field, (low_name, low), (high_name, high), shown) in [
            ("min", ("min", min), ("max", max), min),
            ("defaultRequest", ("min", min), (REQUEST, request), request),
            ("defaultRequest", (REQUEST, request), ("max", max), request),
            (
                "defaultRequest",
                (REQUEST, request),
                (LIMIT, limit),
                request,
            ),
            ("default", ("min", min), ("default", limit), min),
            ("default", ("default", limit), ("max", max), max),
        ] {
            if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
                && low > high
            {
                let key = self.key(field, name);
                let detail =
                    format!("{low_name} value {low} is greater than {high_name} value {high}");
                problems.push(Problem::invalid(key, &shown.to_string(), detail));
            }
        }
    }

    /// A ratio is at least one, and no greater than `max` divided by `min` can be.
    fn check_ratio(&self, name: &ResourceName, problems: &mut Vec<Problem>) {
        let Some(ratio) = self.item.max_limit_request_ratio.get(name) else {
            return;
        };
        let mut refuse = |detail: String| {
            let key = self.key("maxLimitRequestRatio", name);
            problems.push(Problem::invalid(key, &ratio.to_string(), detail));
        };
        if *ratio < Quantity::new(1, Format::DecimalSi) {
            refuse(format!("ratio {ratio} is less than 1"));
        }
        if let (Some(min), Some(max)) = (self.item.min.get(name), self.item.max.get(name)) {
            let (ratio_value, greatest) = comparable_ratios(ratio, min, max);
            if ratio_value > greatest {
                let greatest = render_float(greatest);
                refuse(format!(
                    "ratio {ratio} is greater than max/min = {greatest}"
                ));
            }
        }
    }

    fn check_overcommit(&self, name: &ResourceName, problems: &mut Vec<Problem>) {
        let (Some(default), Some(request)) = (
            self.value("default", name),
            self.value("defaultRequest", name),
        ) else {
            return;
        };
        if !name.allows_overcommit() && default != request {
            problems.push(Problem::invalid(
                self.key("defaultRequest", name),
                &request.to_string(),
                format!(
                    "default value {default} must equal to defaultRequest value {request} in {name}"
                ),
            ));
        }
    }

    fn key(&self, field: &str, name: &ResourceName) -> String {
        format!("{}.{field}[{name}]", self.path)
    }
}

/// The ratio, and `max` by `min`, both as floats; in thousandths where those fit.
fn comparable_ratios(ratio: &Quantity, min: &Quantity, max: &Quantity) -> (f64, f64) {
    let is_small = [ratio, min, max]
        .iter()
        .all(|quantity| quantity.value() < MAX_MILLI_VALUE);
    if is_small {
        let greatest = float(max.milli_value()) / float(min.milli_value());
        return (float(ratio.milli_value()) / 1000.0, greatest);
    }
    let greatest = float(max.value()) / float(min.value());
    (float(ratio.value()), greatest)
}

/// With six digits. A negative `max` over a `min` of zero is `-Inf` in upstream's spelling.
fn render_float(value: f64) -> String {
    if value == f64::NEG_INFINITY {
        return "-Inf".to_owned();
    }
    format!("{value:.6}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::LimitRange;
    use serde_json::{Value, json};

    use super::*;

    fn problems(items: Value) -> Vec<String> {
        let object: LimitRange =
            serde_json::from_value(json!({"spec": {"limits": items}})).unwrap();
        let mut view = LimitRangeView::from_api(&object).unwrap();
        view.apply_defaults();
        validate(&view).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_must_be_in_order() {
        let items = json!([{
            "type": "Container", "min": {"cpu": "3"}, "max": {"cpu": "500m"},
            "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"},
        }]);
        assert_eq!(
            problems(items),
            [
                "spec.limits[0].min[cpu]: Invalid value: \"3\": min value 3 is greater than max value 500m",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"2\": min value 3 is greater than default request value 2",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"2\": default request value 2 is greater than max value 500m",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"2\": default request value 2 is greater than default limit value 1",
                "spec.limits[0].default[cpu]: Invalid value: \"3\": min value 3 is greater than default value 1",
                "spec.limits[0].default[cpu]: Invalid value: \"500m\": default value 1 is greater than max value 500m",
            ]
        );
    }

    #[test]
    fn ratios_are_possible_and_at_least_one() {
        let ratio = |ratio: &str| {
            problems(json!([{
                "type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": ratio},
            }]))
        };
        assert_eq!(
            ratio("5"),
            [
                "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"5\": ratio 5 is greater than max/min = 2.000000"
            ]
        );
        assert_eq!(
            ratio("500m"),
            [
                "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less than 1"
            ]
        );
    }

    #[test]
    fn types_are_known_or_qualified_and_unique() {
        let items = json!([{"type": "Node"}, {"type": "openshift.io/Image"}, {"type": "Pod"}, {"type": "Pod"}]);
        assert_eq!(
            problems(items),
            [
                "spec.limits[0].type: Invalid value: \"Node\": must be a standard limit type or fully qualified",
                "spec.limits[3].type: Duplicate value: \"Pod\"",
            ]
        );
        assert_eq!(problems(json!([{"type": ""}])).len(), 2);
    }

    #[test]
    fn each_type_has_its_own_fields() {
        let items = json!([
            {"type": "Pod", "default": {"cpu": "1"}},
            {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
        ]);
        assert_eq!(
            problems(items),
            [
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[1].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
            ]
        );
    }

    #[test]
    fn devices_are_defaulted_in_full() {
        let items = json!([{
            "type": "Container", "default": {"example.com/x": "2"}, "defaultRequest": {"example.com/x": "1"},
        }]);
        assert_eq!(
            problems(items),
            [
                "spec.limits[0].defaultRequest[example.com/x]: Invalid value: \"1\": default value 2 must equal to defaultRequest value 1 in example.com/x"
            ]
        );
    }
}
