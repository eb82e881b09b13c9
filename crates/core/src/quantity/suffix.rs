//! The letters after the number.

use std::borrow::Cow;

/// The three ways of writing a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12M`: powers of 1000.
    DecimalSi,
    /// `12Mi`: powers of 1024.
    BinarySi,
    /// `12e6`.
    DecimalExponent,
}

impl Format {
    /// Upstream's name of the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::DecimalSi => "DecimalSI",
            Format::BinarySi => "BinarySI",
            Format::DecimalExponent => "DecimalExponent",
        }
    }
}

/// The meaning of a suffix: a power of ten or of two.
pub(super) enum Meaning {
    TenToThe(i32),
    TwoToThe(u32),
}

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// Reads a suffix; `None` if there is no such one.
///
/// An exponent wraps at 32 bits as upstream's does; `parse` refuses absurd ones.
pub(super) fn interpret(suffix: &str) -> Option<(Meaning, Format)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(text, _)| *text == suffix) {
        return Some((Meaning::TenToThe(*exponent), Format::DecimalSi));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(text, _)| *text == suffix) {
        return Some((Meaning::TwoToThe(*exponent), Format::BinarySi));
    }
    let digits = suffix.strip_prefix(['e', 'E'])?;
    let exponent: i64 = digits.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "wraps as upstream does")]
    let exponent = exponent as i32;
    Some((Meaning::TenToThe(exponent), Format::DecimalExponent))
}

/// The suffix for ten to the `exponent`.
///
/// Exponents outside the SI letters have none upstream, so the number is printed bare.
pub(super) fn decimal(exponent: i32, format: Format) -> Cow<'static, str> {
    if format == Format::DecimalExponent {
        return match exponent {
            0 => Cow::Borrowed(""),
            _ => Cow::Owned(format!("e{exponent}")),
        };
    }
    let found = DECIMAL.iter().find(|(_, known)| *known == exponent);
    Cow::Borrowed(found.map_or("", |(text, _)| text))
}

/// The suffix for 1024 to the `exponent`; none beyond `Ei`, as upstream.
pub(super) fn binary(exponent: u32) -> Cow<'static, str> {
    let found = BINARY.iter().find(|(_, bits)| *bits == exponent * 10);
    Cow::Borrowed(found.map_or("", |(text, _)| text))
}
