//! What holds for every pod and LimitRange, however odd their numbers.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, Pod};
use k8s_openapi::jiff::Timestamp;
use plimsoll_core::admission::draft::PodDraft;
use plimsoll_core::admission::limit_range::{apply_defaults, check_pod};
use plimsoll_core::admission::limit_range_validation;
use plimsoll_core::admission::overcommit::{Bound, OPT_IN_LABEL, Override, Settings, Variant};
use plimsoll_core::admission::pipeline::{Rules, review};
use plimsoll_core::admission::pod_defaults;
use plimsoll_core::admission::quota::PodCharge;
use plimsoll_core::object::limit_range::{LimitRangeView, LimitType};
use plimsoll_core::object::namespace::NamespaceView;
use plimsoll_core::object::pod::{PodView, Requirements};
use plimsoll_core::resources::{ResourceList, ResourceName};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Usual amounts.
fn usual_amount() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u32..5000).prop_map(|n| format!("{n}m")),
        (0u32..64).prop_map(|n| n.to_string()),
        (0u32..4096).prop_map(|n| format!("{n}Mi")),
        (0u32..4096).prop_map(|n| format!("{n}M")),
    ]
}

/// Unusual amounts: negative, tiny, huge, fractional.
fn odd_amount() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "Ki", "Mi", "G", "Gi", "E", "Ei", "e3", "e-9", "e18",
    ]);
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (-2000i32..2000).prop_map(|n| n.to_string()),
        (-9i32..9, 0u32..1_000_000).prop_map(|(a, b)| format!("{a}.{b}")),
    ];
    (number, suffix).prop_map(|(number, suffix)| format!("{number}{suffix}"))
}

type Amounts = BTreeMap<&'static str, String>;

fn amounts(amount: impl Strategy<Value = String>) -> impl Strategy<Value = Amounts> {
    let name = prop::sample::select(vec!["cpu", "memory", "hugepages-2Mi", "example.com/x"]);
    prop::collection::btree_map(name, amount, 0..3)
}

fn resources(amount: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = Value> {
    (amounts(amount.clone()), amounts(amount))
        .prop_map(|(requests, limits)| json!({"requests": requests, "limits": limits}))
}

fn pod(amount: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = Pod> {
    let containers = prop::collection::vec(resources(amount.clone()), 1..3);
    let init = prop::collection::vec((resources(amount.clone()), any::<bool>()), 0..3);
    let own = prop::option::of(resources(amount));
    (containers, init, own).prop_map(|(containers, init, own)| {
        let containers = containers.into_iter().enumerate();
        let containers: Vec<Value> = containers
            .map(|(i, r)| json!({"name": format!("c{i}"), "resources": r}))
            .collect();
        let init = init.into_iter().enumerate();
        let init: Vec<Value> = init
            .map(|(i, (r, is_sidecar))| {
                let policy = is_sidecar.then_some("Always");
                json!({"name": format!("i{i}"), "resources": r, "restartPolicy": policy})
            })
            .collect();
        let spec = json!({"containers": containers, "initContainers": init, "resources": own});
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    })
}

fn limit_range(
    amount: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = LimitRangeView> {
    let lists = prop::collection::vec(amounts(amount), 5);
    let kind = prop::sample::select(vec!["Container", "Pod"]);
    let item = (kind, lists).prop_map(|(kind, lists)| {
        json!({
            "type": kind, "min": lists[0], "max": lists[1], "default": lists[2],
            "defaultRequest": lists[3], "maxLimitRequestRatio": lists[4],
        })
    });
    prop::collection::vec(item, 0..3).prop_map(|items| {
        let object: LimitRange =
            serde_json::from_value(json!({"spec": {"limits": items}})).unwrap();
        let mut view = LimitRangeView::from_api(&object).unwrap();
        view.apply_defaults();
        view
    })
}

/// A plain statement of what a LimitRange promises, in whole thousandths.
fn keeps_within(
    resources: &Requirements,
    min: &ResourceList,
    max: &ResourceList,
    ratio: &ResourceList,
) -> bool {
    let milli = |list: &ResourceList, name: &ResourceName| {
        list.get(name).map(|q| i128::from(q.milli_value()))
    };
    let request = |name: &ResourceName| milli(&resources.requests, name);
    let limit = |name: &ResourceName| milli(&resources.limits, name);
    let above = |bound: i128, value: Option<i128>| value.is_none_or(|value| value >= bound);
    let below = |bound: i128, value: Option<i128>| value.is_none_or(|value| value <= bound);
    let every = |list: &ResourceList, holds: &dyn Fn(&ResourceName, i128) -> bool| {
        list.iter()
            .all(|(name, bound)| holds(name, i128::from(bound.milli_value())))
    };
    every(min, &|name, least| {
        request(name).is_some() && above(least, request(name)) && above(least, limit(name))
    }) && every(max, &|name, most| {
        limit(name).is_some() && below(most, limit(name)) && below(most, request(name))
    }) && every(ratio, &|name, most| {
        let (Some(request), Some(limit)) = (request(name), limit(name)) else {
            return false;
        };
        // Floats are exact to fifteen digits; these numbers are far below that.
        limit * 1000 <= most * request + 1
    })
}

/// The same for all that the items of a LimitRange apply to. Sums are made only for pods without
/// init containers and pod-level resources, where they are plain.
fn satisfies(pod: &PodView, limit_range: &LimitRangeView) -> bool {
    limit_range.items.iter().all(|item| {
        let keeps =
            |r: &Requirements| keeps_within(r, &item.min, &item.max, &item.max_limit_request_ratio);
        match item.limit_type {
            LimitType::Container => pod.all_containers().all(|c| keeps(&c.resources)),
            LimitType::Pod if pod.init_containers.is_empty() && pod.resources.is_none() => {
                let mut sum = Requirements::default();
                for container in &pod.containers {
                    sum.requests.add(&container.resources.requests);
                    sum.limits.add(&container.resources.limits);
                }
                keeps(&sum)
            }
            _ => true,
        }
    })
}

proptest! {
    #[test]
    fn an_allowed_pod_keeps_within_the_limit_range(
        pod in pod(usual_amount().boxed()),
        range in limit_range(usual_amount().boxed()),
    ) {
        let mut draft = PodDraft::from_api(&pod).unwrap();
        pod_defaults::apply(&mut draft.pod);
        apply_defaults(&mut draft, std::slice::from_ref(&range));
        let is_allowed = check_pod(&draft.pod, std::slice::from_ref(&range)).is_ok();
        if is_allowed {
            prop_assert!(satisfies(&draft.pod, &range));
        }
    }

    #[test]
    fn without_ratios_a_pod_is_allowed_exactly_if_it_keeps_within_the_bounds(
        mut pod in pod(usual_amount().boxed()),
        mut range in limit_range(usual_amount().boxed()),
    ) {
        // Sums over init containers have a test of their own; here the plain statement is plain.
        let spec = pod.spec.as_mut().unwrap();
        spec.init_containers = None;
        spec.resources = None;
        for item in &mut range.items {
            item.max_limit_request_ratio = ResourceList::new();
        }
        let mut draft = PodDraft::from_api(&pod).unwrap();
        pod_defaults::apply(&mut draft.pod);
        apply_defaults(&mut draft, std::slice::from_ref(&range));
        let is_allowed = check_pod(&draft.pod, std::slice::from_ref(&range)).is_ok();
        prop_assert_eq!(is_allowed, satisfies(&draft.pod, &range));
    }

    #[test]
    fn defaults_are_applied_once(
        pod in pod(odd_amount().boxed()),
        ranges in prop::collection::vec(limit_range(odd_amount().boxed()), 0..3),
    ) {
        let mut draft = PodDraft::from_api(&pod).unwrap();
        pod_defaults::apply(&mut draft.pod);
        apply_defaults(&mut draft, &ranges);
        let once = draft.clone();
        prop_assert!(apply_defaults(&mut draft, &ranges).is_empty());
        let written = |draft: &PodDraft| {
            let mut written = pod.clone();
            draft.write_to(&mut written);
            written
        };
        prop_assert_eq!(written(&once), written(&draft));
    }

    #[test]
    fn api_defaults_are_applied_once(pod in pod(odd_amount().boxed())) {
        let mut draft = PodDraft::from_api(&pod).unwrap();
        pod_defaults::apply(&mut draft.pod);
        let once = draft.pod.clone();
        pod_defaults::apply(&mut draft.pod);
        for (a, b) in once.all_containers().zip(draft.pod.all_containers()) {
            prop_assert_eq!(&a.resources, &b.resources);
        }
        prop_assert_eq!(once.resources, draft.pod.resources);
    }

    #[test]
    fn overridden_request_is_at_most_the_limit_unless_a_floor_raises_it(
        pod in pod(usual_amount().boxed()),
        cpu in 0i64..=100, memory in 0i64..=100, ratio in 0i64..400,
        variant in prop::sample::select(vec![Variant::Okd36, Variant::Okd39, Variant::Modern]),
    ) {
        let settings = Settings {
            limit_cpu_to_memory_percent: ratio,
            cpu_request_to_limit_percent: cpu,
            memory_request_to_limit_percent: memory,
            ..Settings::default()
        };
        let mut draft = PodDraft::from_api(&pod).unwrap();
        pod_defaults::apply(&mut draft.pod);
        for change in Override::new(variant, settings).apply(&mut draft, &[]) {
            let (resource, _) = change.rule.target();
            let mut containers = draft.pod.all_containers();
            let container = containers.find(|c| c.name == change.place.name).unwrap();
            let limit = container.resources.limits.get(&resource).unwrap();
            prop_assert!(change.to <= *limit || change.bound == Some(Bound::Floor));
        }
    }

    #[test]
    fn no_number_causes_a_panic(
        pod in pod(odd_amount().boxed()),
        ranges in prop::collection::vec(limit_range(odd_amount().boxed()), 0..3),
        percents in prop::array::uniform4(-10i64..1000),
        variant in prop::sample::select(vec![Variant::Okd36, Variant::Okd39, Variant::Modern]),
    ) {
        let settings = Settings {
            limit_cpu_to_memory_percent: percents[0],
            cpu_request_to_limit_percent: percents[1],
            memory_request_to_limit_percent: percents[2],
            cpu_request_to_request_percent: percents[3],
            floor: None,
        };
        let namespace = NamespaceView {
            labels: [(OPT_IN_LABEL.to_owned(), "true".to_owned())].into(),
            ..NamespaceView::default()
        };
        let configured = Override::new(variant, settings);
        let rules = Rules {
            namespace: &namespace,
            limit_ranges: &ranges,
            overcommit: Some(&configured),
        };
        let review = review(&pod, rules).unwrap();
        prop_assert!(review.overridden.is_some());
        prop_assert!([201, 403, 422].contains(&review.outcome().code()));
        PodCharge::from_api(&review.pod, Timestamp::UNIX_EPOCH).unwrap();
        for range in &ranges {
            limit_range_validation::validate(range);
        }
    }

    #[test]
    fn no_settings_file_causes_a_panic(text in "[ -~\n]{0,80}|[a-zA-Z]{1,30}: ?[-0-9a-z]{0,9}\n?") {
        let _ = Settings::from_yaml(&text, Variant::Modern);
    }
}
