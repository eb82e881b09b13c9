//! Laws of selectors and of their texts.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::object::selector::{FieldSelector, LabelSelector, Operator, Requirement};
use plimsoll_core::object::syntax::{check_label_key, check_label_value};
use proptest::prelude::*;

type Labels = BTreeMap<String, String>;

fn labels() -> impl Strategy<Value = Labels> {
    prop::collection::btree_map("[a-c]", "[a-c0-3]{0,2}", 0..4)
}

/// Values as the parser leaves them: sorted, each once.
fn requirement() -> impl Strategy<Value = Requirement> {
    let key = prop_oneof!["[a-c]", "(in|notin)", "example\\.com/[a-c]"];
    let value = || prop_oneof!["[a-c0-3]{0,2}", "(in|notin)"];
    let one = value().prop_map(|value| vec![value]);
    let some = prop::collection::btree_set(value(), 1..4).prop_map(Vec::from_iter);
    let number = "[0-9]{1,3}".prop_map(|value| vec![value]);
    let set_operator = prop_oneof![Just(Operator::In), Just(Operator::NotIn)];
    let equal_operator = prop_oneof![
        Just(Operator::Equals),
        Just(Operator::DoubleEquals),
        Just(Operator::NotEquals)
    ];
    let bare_operator = prop_oneof![Just(Operator::Exists), Just(Operator::DoesNotExist)];
    let order_operator = prop_oneof![Just(Operator::GreaterThan), Just(Operator::LessThan)];
    let condition = prop_oneof![
        (set_operator, some),
        (equal_operator, one),
        (bare_operator, Just(Vec::new())),
        (order_operator, number),
    ];
    (key, condition).prop_map(|(key, (operator, values))| {
        Requirement::new("", &key, operator, Some(values)).expect("valid by construction")
    })
}

fn selects(selector: &str, labels: &Labels) -> bool {
    let selector: LabelSelector = selector.parse().expect("a valid selector");
    selector.matches(labels)
}

proptest! {
    #[test]
    fn label_selector_parser_never_panics(text in any::<String>()) {
        let _ = text.parse::<LabelSelector>().map_err(|error| error.to_string());
        let _ = (check_label_key(&text), check_label_value(&text));
    }

    #[test]
    fn rendered_selector_parses_to_the_same(text in "[a-b!=<>(), 0\0in]{0,16}") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }

    #[test]
    fn every_selector_can_be_read_back(requirements in prop::collection::vec(requirement(), 0..5)) {
        let selector = LabelSelector::new(requirements);
        prop_assert_eq!(selector.to_string().parse(), Ok(selector));
    }

    #[test]
    fn opposite_operators_select_opposite_labels(
        labels in labels(),
        key in "[a-c]",
        values in "[a-c](,[a-c]){0,2}",
    ) {
        let is_in = selects(&format!("{key} in ({values})"), &labels);
        prop_assert_ne!(is_in, selects(&format!("{key} notin ({values})"), &labels));
        prop_assert_ne!(selects(&key, &labels), selects(&format!("!{key}"), &labels));
        prop_assert!(!is_in || selects(&key, &labels));
    }

    #[test]
    fn a_selector_made_of_labels_selects_them(labels in labels(), extra in labels()) {
        let selector = LabelSelector::from_set(&labels);
        prop_assert!(selector.matches(&labels));
        let mut more = extra;
        more.extend(labels);
        prop_assert!(selector.matches(&more));
    }

    #[test]
    fn field_selector_parser_never_panics(text in any::<String>()) {
        let _ = text.parse::<FieldSelector>().map_err(|error| error.to_string());
    }

    /// `==` is rendered as `=` and so may change places: equal as sets, and stable from then on.
    #[test]
    fn rendered_field_selector_selects_the_same(text in "[a-b!=,\\\\ö]{0,16}") {
        if let Ok(selector) = text.parse::<FieldSelector>() {
            let again: FieldSelector = selector.to_string().parse().expect("what was rendered");
            let texts = |selector: &FieldSelector| -> BTreeSet<String> {
                let single = |r| FieldSelector::new(vec![r]).to_string();
                selector.requirements().iter().cloned().map(single).collect()
            };
            prop_assert_eq!(texts(&selector), texts(&again));
            prop_assert_eq!(again.to_string().parse(), Ok(again));
        }
    }
}
