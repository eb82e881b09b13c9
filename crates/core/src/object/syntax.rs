//! The syntax of names, label keys and label values.
//!
//! Each function returns the rules that are broken, none if the text is fine. Matches v1.36
//! staging/src/k8s.io/apimachinery/pkg/api/validate/content.

const LABEL_MAX_BYTES: usize = 63;
const SUBDOMAIN_MAX_BYTES: usize = 253;

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
/// The rule for lower-case RFC 1123 subdomains.
pub const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The rule for lower-case RFC 1123 labels.
pub const DNS_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case \
    alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. \
    'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Validates a label key: an optional DNS prefix and `/`, then a name.
pub fn check_label_key(key: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {LABEL_KEY_RULE} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            broken.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let rules = check_dns_subdomain(prefix);
            broken.extend(rules.iter().map(|rule| format!("prefix part {rule}")));
            name
        }
    };
    if name.is_empty() {
        broken.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX_BYTES {
        broken.push(format!("name part {}", at_most(LABEL_MAX_BYTES)));
    }
    if !is_label_name(name) {
        broken.push(format!("name part {LABEL_KEY_RULE}"));
    }
    broken
}

/// Validates a label value.
pub fn check_label_value(value: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if value.len() > LABEL_MAX_BYTES {
        broken.push(at_most(LABEL_MAX_BYTES));
    }
    if !value.is_empty() && !is_label_name(value) {
        broken.push(LABEL_VALUE_RULE.to_owned());
    }
    broken
}

/// Validates a lower-case RFC 1123 subdomain, the form of most object names.
pub fn check_dns_subdomain(name: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if name.len() > SUBDOMAIN_MAX_BYTES {
        broken.push(at_most(SUBDOMAIN_MAX_BYTES));
    }
    if !is_dns_subdomain(name) {
        broken.push(SUBDOMAIN_RULE.to_owned());
    }
    broken
}

/// Validates a lower-case RFC 1123 label, the form of the names of namespaces.
///
/// Matches v1.36 staging/src/k8s.io/apimachinery/pkg/util/validation, which counts characters.
pub fn check_dns_label(name: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if name.len() > LABEL_MAX_BYTES {
        broken.push(format!("must be no more than {LABEL_MAX_BYTES} characters"));
    }
    if !is_dns_label(name) {
        let has_dots = is_dns_subdomain(name);
        let rule = match has_dots {
            true => "must not contain dots",
            false => DNS_LABEL_RULE,
        };
        broken.push(rule.to_owned());
    }
    broken
}

/// Whether the text is made of DNS labels with dots between, of any length.
pub fn is_dns_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns_label)
}

/// Whether the text is a lower-case DNS label of any length.
pub fn is_dns_label(name: &str) -> bool {
    let is_inner = |b: u8| b == b'-' || is_lower_alphanumeric(b);
    is_framed(name, is_lower_alphanumeric, is_inner)
}

fn is_label_name(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    is_framed(name, |b| b.is_ascii_alphanumeric(), is_inner)
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether the text has a first and a last byte of one sort and only bytes of another between.
pub fn is_framed(text: &str, is_outer: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => is_outer(*only),
        [first, inner @ .., last] => {
            is_outer(*first) && is_outer(*last) && inner.iter().all(|b| is_inner(*b))
        }
    }
}

fn at_most(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_an_optional_dns_prefix() {
        for good in ["a", "A_b.c-1", "example.com/x", "a/B"] {
            assert_eq!(check_label_key(good), Vec::<String>::new(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "Example.com/x",
            "/x",
            "x/",
            "a/b/c",
            "ä",
            "a b",
        ] {
            assert!(!check_label_key(bad).is_empty(), "{bad}");
        }
    }

    #[test]
    fn every_broken_rule_is_named() {
        let broken = check_label_key("/");
        assert_eq!(broken[0], "prefix part must be non-empty");
        assert_eq!(broken[1], "name part must be non-empty");
        assert_eq!(broken[2], format!("name part {LABEL_KEY_RULE}"));
        let long = "-".repeat(254);
        assert_eq!(
            check_dns_subdomain(&long)[0],
            "must be no more than 253 bytes"
        );
        assert_eq!(check_dns_subdomain(&long)[1], SUBDOMAIN_RULE);
    }

    #[test]
    fn values_may_be_empty_but_not_long() {
        assert_eq!(check_label_value(""), Vec::<String>::new());
        assert_eq!(
            check_label_value(&"a".repeat(64)),
            ["must be no more than 63 bytes"]
        );
    }
}
