//! Properties of thresholds and durations.

use std::collections::BTreeMap;

use plimsoll_core::quantity::{Format, Quantity};
use plimsoll_core::threshold::flag::{Separator, parse_map, render_map};
use plimsoll_core::threshold::{Duration, Statements};
use proptest::prelude::*;

/// Texts that look like numbers often enough to reach the inner branches.
fn number_like() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-+]?(0[xX])?[0-9a-f_]{0,30}[.]?[0-9a-f_]{0,30}([eEpP][-+]?[0-9_]{0,6})?%{0,2}",
        "[-+]?([0-9]{0,25}[.]?[0-9]{0,25}(ns|us|\u{b5}s|ms|s|m|h)?){0,4}",
    ]
}

proptest! {
    #[test]
    fn a_printed_duration_is_read_back(nanos in any::<i64>()) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn no_text_causes_a_duration_parser_panic(text in number_like()) {
        let _ = text.parse::<Duration>();
    }

    #[test]
    fn parsing_and_reporting_agree_on_valid_statements(
        texts in prop::array::uniform4(number_like()),
        key in prop_oneof![Just("memory.available".to_owned()), any::<String>()],
        capacity in any::<i64>(),
    ) {
        let map = |text: &String| BTreeMap::from([(key.clone(), text.clone())]);
        let statements = Statements {
            hard: map(&texts[0]),
            soft: map(&texts[1]),
            soft_grace_period: map(&texts[2]),
            minimum_reclaim: map(&texts[3]),
            enforce_node_allocatable: vec!["pods".to_owned()],
        };
        let parsed = statements.parse();
        prop_assert_eq!(parsed.is_err(), !statements.problems().is_empty());
        for threshold in parsed.into_iter().flatten() {
            let _ = threshold.value.at_capacity(&Quantity::new(capacity, Format::BinarySi));
        }
    }

    #[test]
    fn a_rendered_flag_map_is_read_back(text in "[a-z.<,= ]{0,40}") {
        if let Ok(map) = parse_map(&text, Separator::LessThan) {
            let rendered = render_map(&map, Separator::LessThan);
            prop_assert_eq!(parse_map(&rendered, Separator::LessThan), Ok(map));
        }
    }
}
