//! Every parser on arbitrary input: it may refuse, it may not panic or hang.
//!
//! `scripts/test fuzz` runs each on a million inputs; `PROPTEST_CASES` sets another number.

use plimsoll_core::quantity::Quantity;
use proptest::prelude::*;

/// Anything at all, and texts made of what the grammars are made of, which get further in.
fn input(alphabet: &'static str) -> impl Strategy<Value = String> {
    let near = proptest::collection::vec(
        proptest::sample::select(alphabet.chars().collect::<Vec<_>>()),
        0..24,
    );
    prop_oneof![
        1 => any::<String>(),
        3 => near.prop_map(|chars| chars.into_iter().collect()),
    ]
}

proptest! {
    #[test]
    fn quantity(text in input("0123456789.+-eEinumkKMGTP ")) {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let _ = (quantity.to_string(), quantity.value(), quantity.milli_value());
            let _ = quantity.as_approximate_f64();
        }
        let _ = Quantity::from_json_token(&text);
    }
}
