use super::*;

fn q(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn input_format_is_kept_only_where_upstream_keeps_it() {
    for (text, printed) in [
        ("0500m", "0500m"),
        ("01", "01"),
        ("+1", "+1"),
        ("1E3", "1E3"),
        ("10.050", "10.050"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1024Ki", "1Mi"),
    ] {
        assert_eq!(q(text).to_string(), printed, "{text}");
    }
}

#[test]
fn binary_suffixes_cap_at_the_largest_i64_and_decimal_ones_do_not() {
    assert_eq!(q("16Ei").to_string(), "9223372036854775807");
    assert_eq!(q("10E").to_string(), "10E");
}

#[test]
fn fractions_below_a_nano_round_away_from_zero() {
    assert_eq!(q("0.1n").to_string(), "1n");
    assert_eq!(q("-0.1n").to_string(), "-1n");
}

#[test]
fn absurd_exponents_and_lengths_are_refused_instead_of_computed() {
    assert_eq!("1e999999999".parse::<Quantity>(), Err(ParseError::Number));
    assert_eq!("1e-999999999".parse::<Quantity>(), Err(ParseError::Number));
    assert_eq!(
        "9".repeat(10_000).parse::<Quantity>(),
        Err(ParseError::Number)
    );
    assert_eq!(q("1e100").to_string(), "10e99");
}

#[test]
fn zero_sum_takes_the_format_of_the_addend() {
    let mut sum = Quantity::ZERO;
    sum.add(&q("5Mi"));
    assert_eq!(sum.to_string(), "5Mi");
}

#[test]
fn sums_beyond_64_bits_stay_exact() {
    let mut sum = q("9223372036854775807");
    sum.add(&q("1"));
    assert_eq!(sum.to_string(), "9223372036854775808");
    let mut nanos = q("1n");
    nanos.add(&q("1Ei"));
    assert_eq!(nanos.to_string(), "1152921504606846976000000001n");
}
