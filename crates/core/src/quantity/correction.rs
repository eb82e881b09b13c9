//! What was probably meant by a text that is no quantity.

use super::Quantity;

/// The longest text that is looked at.
const MAX_LENGTH: usize = 40;

/// Units as people write them, in lower case, and Kubernetes' suffixes for them.
const UNITS: [(&[&str], &[&str]); 13] = [
    (
        &[
            "b", "byte", "bytes", "core", "cores", "cpu", "cpus", "vcpu", "vcpus",
        ],
        &[""],
    ),
    (&["kib", "ki"], &["Ki"]),
    (&["mib", "mi"], &["Mi"]),
    (&["gib", "gi"], &["Gi"]),
    (&["tib", "ti"], &["Ti"]),
    (&["pib", "pi"], &["Pi"]),
    (&["kb", "k"], &["Ki", "k"]),
    (&["mb", "meg", "megabytes"], &["Mi", "M"]),
    (&["gb", "g", "gig", "gigabytes"], &["Gi", "G"]),
    (&["tb", "t"], &["Ti", "T"]),
    (&["pb", "p"], &["Pi", "P"]),
    (
        &[
            "millicore",
            "millicores",
            "mcore",
            "mcores",
            "mcpu",
            "milli",
        ],
        &["m"],
    ),
    (&["ms", "mc"], &["m"]),
];

/// Quantities that may have been meant by a text that is none: `100Mi` and `100M` for `100MB`.
pub fn corrections(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_LENGTH || !text.is_ascii() {
        return Vec::new();
    }
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-');
    let end = text.find(|c: char| !is_number(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.replace(',', ".");
    let unit = unit.trim().to_ascii_lowercase();
    let known = UNITS
        .iter()
        .find(|(names, _)| names.contains(&unit.as_str()));
    let suffixes: &[&str] = match known {
        Some((_, suffixes)) => suffixes,
        None if unit.is_empty() => &[""],
        None => return Vec::new(),
    };
    let meant = suffixes.iter().map(|suffix| format!("{number}{suffix}"));
    meant
        .filter(|meant| *meant != text && meant.parse::<Quantity>().is_ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_are_corrected() {
        for (text, meant) in [
            ("100MB", &["100Mi", "100M"][..]),
            ("1GB", &["1Gi", "1G"]),
            ("512 Mi", &["512Mi"]),
            ("512mb", &["512Mi", "512M"]),
            ("1gi", &["1Gi"]),
            ("2GiB", &["2Gi"]),
            ("0,5", &["0.5"]),
            ("2 cores", &["2"]),
            ("500millicores", &["500m"]),
            ("64K", &["64Ki", "64k"]),
            ("ten", &[]),
            ("1.2.3", &[]),
            ("", &[]),
        ] {
            assert_eq!(corrections(text), meant, "{text}");
        }
    }
}
