//! Laws of tolerations.

use plimsoll_core::object::taint::{
    ComparisonOperators, Effect, Taint, TaintFilter, Toleration, TolerationOperator,
    TolerationTime, first_untolerated, is_tolerated, min_toleration_time,
};
use proptest::prelude::*;

fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![
        Just(Effect::NoSchedule),
        Just(Effect::PreferNoSchedule),
        Just(Effect::NoExecute)
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[a-b]?", "-?[0-9]{1,2}"]
}

fn taint() -> impl Strategy<Value = Taint> {
    ("[a-b]", value(), effect()).prop_map(|(key, value, effect)| Taint { key, value, effect })
}

fn toleration() -> impl Strategy<Value = Toleration> {
    let operator = prop_oneof![
        Just(TolerationOperator::Equal),
        Just(TolerationOperator::Exists),
        Just(TolerationOperator::Lt),
        Just(TolerationOperator::Gt),
        Just(TolerationOperator::Unknown)
    ];
    (
        prop::option::of("[a-b]"),
        operator,
        value(),
        prop::option::of(effect()),
        prop::option::of(-1..100i64),
    )
        .prop_map(|(key, operator, value, effect, seconds)| Toleration {
            key,
            operator,
            value,
            effect,
            seconds,
        })
}

fn comparison() -> impl Strategy<Value = ComparisonOperators> {
    prop_oneof![
        Just(ComparisonOperators::Disabled),
        Just(ComparisonOperators::Enabled)
    ]
}

proptest! {
    #[test]
    fn an_unrestricted_exists_tolerates_everything(taint in taint(), comparison in comparison()) {
        let all = Toleration {
            key: None,
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect: None,
            seconds: None,
        };
        prop_assert!(all.tolerates(&taint, comparison));
    }

    #[test]
    fn enabling_comparisons_only_adds(taint in taint(), toleration in toleration()) {
        let before = toleration.tolerates(&taint, ComparisonOperators::Disabled);
        prop_assert!(!before || toleration.tolerates(&taint, ComparisonOperators::Enabled));
    }

    #[test]
    fn no_taint_is_both_below_and_above(taint in taint(), toleration in toleration()) {
        let with = |operator| Toleration { operator, ..toleration.clone() };
        let is_tolerated = |operator| {
            with(operator).tolerates(&taint, ComparisonOperators::Enabled)
        };
        prop_assert!(!(is_tolerated(TolerationOperator::Lt) && is_tolerated(TolerationOperator::Gt)));
    }

    #[test]
    fn first_untolerated_taint_follows_only_tolerated_ones(
        taints in prop::collection::vec(taint(), 0..4),
        tolerations in prop::collection::vec(toleration(), 0..4),
        comparison in comparison(),
    ) {
        for filter in [
            TaintFilter::NoScheduleOrNoExecute,
            TaintFilter::PreferNoSchedule,
            TaintFilter::NoExecute,
        ] {
            let first = first_untolerated(&taints, &tolerations, filter, comparison);
            for taint in taints.iter().filter(|taint| filter.includes(taint)) {
                if first.is_some_and(|first| std::ptr::eq(first, taint)) {
                    prop_assert!(!is_tolerated(taint, &tolerations, comparison));
                    break;
                }
                prop_assert!(is_tolerated(taint, &tolerations, comparison));
            }
        }
    }

    #[test]
    fn pod_stays_unless_a_taint_evicts_it(
        taints in prop::collection::vec(taint(), 0..4),
        tolerations in prop::collection::vec(toleration(), 0..4),
        comparison in comparison(),
    ) {
        let untolerated = first_untolerated(&taints, &tolerations, TaintFilter::NoExecute, comparison);
        let stay = min_toleration_time(&taints, &tolerations, comparison);
        if untolerated.is_some() {
            prop_assert_eq!(stay, TolerationTime::Seconds(0));
        } else if tolerations.iter().all(|toleration| toleration.seconds.is_none()) {
            prop_assert_eq!(stay, TolerationTime::Unlimited);
        }
    }
}
