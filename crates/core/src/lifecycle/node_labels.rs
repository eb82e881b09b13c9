//! Labels that a node has under an old and a new name.
//!
//! Matches v1.36 pkg/controller/nodelifecycle, reconcileNodeLabels.

use std::collections::BTreeMap;

/// New and old name of the labels that have two.
const LABEL_ALIASES: [(&str, &str); 2] = [
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
];

/// The labels to be set so that the old names have the values of the new ones.
pub fn missing_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let pairs = LABEL_ALIASES.into_iter().filter_map(|(name, old_name)| {
        let value = labels.get(name)?;
        let is_missing = labels.get(old_name) != Some(value);
        is_missing.then(|| (old_name.to_owned(), value.clone()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_follow_the_new_ones() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            owned.collect()
        };
        let given = labels(&[
            ("kubernetes.io/os", "linux"),
            ("beta.kubernetes.io/os", "windows"),
            ("kubernetes.io/arch", "amd64"),
        ]);
        let expected = labels(&[
            ("beta.kubernetes.io/os", "linux"),
            ("beta.kubernetes.io/arch", "amd64"),
        ]);
        assert_eq!(missing_labels(&given), expected);
        let alone = labels(&[("beta.kubernetes.io/os", "linux")]);
        assert!(missing_labels(&alone).is_empty());
    }
}
