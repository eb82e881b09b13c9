//! The form of qualified names: resource names, label keys, limit types.

const NAME_MAX_BYTES: usize = 63;
const PREFIX_MAX_BYTES: usize = 253;
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
    used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with a name of the form `name` or `example.com/name`; empty when nothing is.
///
/// Matches v1.36 apimachinery/pkg/api/validate/content/kube.go, `IsLabelKey`.
pub fn qualified_name_mistakes(text: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            prefix_mistakes(prefix, &mut mistakes);
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        mistakes.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX_BYTES {
        mistakes.push(format!(
            "name part must be no more than {NAME_MAX_BYTES} bytes"
        ));
    }
    if !is_name(name) {
        mistakes.push(format!("name part {NAME_RULE}"));
    }
    mistakes
}

fn prefix_mistakes(prefix: &str, mistakes: &mut Vec<String>) {
    if prefix.is_empty() {
        mistakes.push("prefix part must be non-empty".to_owned());
        return;
    }
    if prefix.len() > PREFIX_MAX_BYTES {
        mistakes.push(format!(
            "prefix part must be no more than {PREFIX_MAX_BYTES} bytes"
        ));
    }
    if !prefix.split('.').all(is_dns_label) {
        mistakes.push(format!("prefix part {SUBDOMAIN_RULE}"));
    }
}

/// Letters and digits at both ends, dashes, underscores and dots between.
fn is_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// Lower-case letters and digits at both ends, dashes between.
fn is_dns_label(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_word)
        && bytes.last().is_some_and(is_word)
        && bytes.iter().all(|byte| is_word(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_domain_names_are_fine() {
        for name in ["cpu", "hugepages-2Mi", "nvidia.com/gpu", "a/B_c.d"] {
            assert!(qualified_name_mistakes(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn each_mistake_is_named() {
        assert_eq!(qualified_name_mistakes("").len(), 2);
        assert_eq!(
            qualified_name_mistakes("/x"),
            ["prefix part must be non-empty"]
        );
        assert!(qualified_name_mistakes("Example.com/x")[0].starts_with("prefix part a lowercase"));
        assert!(qualified_name_mistakes("a/b/c")[0].starts_with("a valid label key must consist"));
        assert_eq!(
            qualified_name_mistakes(&"a".repeat(64)),
            ["name part must be no more than 63 bytes"]
        );
    }
}
