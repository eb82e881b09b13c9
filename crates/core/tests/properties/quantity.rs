//! Laws of quantities, checked against plain fractions.

use std::cmp::Ordering;

use num_bigint::BigInt;
use plimsoll_core::quantity::Quantity;
use proptest::prelude::*;

/// Texts that are quantities: digits, an optional fraction, any suffix.
///
/// The larger the suffix, the fewer the digits: binary suffixes are capped at 2^63-1, and from
/// 10^21 up no SI letter is left and upstream prints bare digits, so that neither is comparable
/// with plain fractions.
fn quantity_text() -> impl Strategy<Value = String> {
    let small = ["", "n", "u", "m", "k", "M", "Ki", "Mi", "e3", "E-2"];
    let large = ["G", "T", "Gi", "Ti", "e12", "P"];
    let number_and_suffix = prop_oneof![
        ("-?[0-9]{1,12}", proptest::sample::select(small.to_vec())),
        ("-?[0-9]{1,5}", proptest::sample::select(large.to_vec())),
        ("-?[0-9]{1,3}", Just("E")),
    ];
    (number_and_suffix, "(\\.[0-9]{1,9})?")
        .prop_map(|((whole, suffix), fraction)| format!("{whole}{fraction}{suffix}"))
}

/// The number times ten to the 30, which makes every generated text a whole number of units.
/// Fractions below one nano are rounded away from zero, as the parser promises.
fn exact(text: &str) -> BigInt {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let ten = BigInt::from(10);
    let mut value: BigInt = format!("{whole}{fraction}").parse().expect("digits");
    let mut exponent = 30 - i32::try_from(fraction.len()).expect("few digits");
    match suffix {
        "Ki" => value *= 1u64 << 10,
        "Mi" => value *= 1u64 << 20,
        "Gi" => value *= 1u64 << 30,
        "Ti" => value *= 1u64 << 40,
        _ => {
            exponent += match suffix {
                "n" => -9,
                "u" => -6,
                "m" => -3,
                "k" => 3,
                "M" => 6,
                "G" => 9,
                "T" => 12,
                "P" => 15,
                "E" => 18,
                "" => 0,
                e => e[1..].parse::<i32>().expect("an exponent"),
            }
        }
    }
    value *= ten.pow(exponent.unsigned_abs());
    let nano = BigInt::from(10).pow(21);
    let remainder = &value % &nano;
    if remainder == BigInt::ZERO {
        return value;
    }
    let sign = if value < BigInt::ZERO { -1 } else { 1 };
    value - remainder + nano * sign
}

fn parse(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

proptest! {
    #[test]
    fn printing_and_parsing_keeps_number_and_text(text in quantity_text()) {
        let quantity = parse(&text);
        let printed = quantity.to_string();
        let again = parse(&printed);
        prop_assert_eq!(&again, &quantity);
        prop_assert_eq!(again.to_string(), printed);
        let canonical = quantity.canonical();
        prop_assert_eq!(parse(&canonical).canonical(), canonical);
    }

    #[test]
    fn order_is_that_of_the_numbers(a in quantity_text(), b in quantity_text()) {
        prop_assert_eq!(parse(&a).cmp(&parse(&b)), exact(&a).cmp(&exact(&b)));
        prop_assert_eq!(parse(&b).cmp(&parse(&a)), exact(&b).cmp(&exact(&a)));
    }

    #[test]
    fn order_is_transitive(a in quantity_text(), b in quantity_text(), c in quantity_text()) {
        let mut sorted = [parse(&a), parse(&b), parse(&c)];
        sorted.sort();
        prop_assert!(sorted[0].cmp(&sorted[2]) != Ordering::Greater);
    }

    #[test]
    fn sums_and_differences_are_exact(a in quantity_text(), b in quantity_text()) {
        let mut sum = parse(&a);
        sum.add(&parse(&b));
        let mut back = sum.clone();
        back.sub(&parse(&b));
        prop_assert_eq!(back, parse(&a));
        let mut other_way = parse(&b);
        other_way.add(&parse(&a));
        prop_assert_eq!(sum, other_way);
    }

    #[test]
    fn whole_values_round_away_from_zero(n in -1_000_000_000i64..1_000_000_000) {
        let quantity = parse(&format!("{n}m"));
        let towards_zero = n / 1000;
        let expected = if n % 1000 == 0 { towards_zero } else { towards_zero + n.signum() };
        prop_assert_eq!(quantity.value(), expected);
        prop_assert_eq!(quantity.milli_value(), n);
    }
}
