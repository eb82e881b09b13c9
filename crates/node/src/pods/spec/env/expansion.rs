//! `$(NAME)` in commands, arguments, values and sub-paths.
//!
//! Matches v1.36 third_party/forked/golang/expansion: `$$` is a dollar sign that begins nothing, a
//! reference that is not closed stays as it is, and the value of a name is not expanded again.

/// The text with every `$(NAME)` replaced by what `value_of` gives for the name.
///
/// Values are bytes because Secrets may hold any.
pub fn expand(text: &str, mut value_of: impl FnMut(&str) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let after = &rest[at + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            out.push(b'$');
            rest = escaped;
        } else if let Some(reference) = after.strip_prefix('(') {
            match reference.split_once(')') {
                Some((name, behind)) => {
                    out.extend(value_of(name));
                    rest = behind;
                }
                None => {
                    out.extend_from_slice(b"$(");
                    rest = reference;
                }
            }
        } else {
            out.push(b'$');
            rest = after;
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// What a reference to a name without a value becomes: itself.
pub fn reference(name: &str) -> Vec<u8> {
    format!("$({name})").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_once_and_dollars_can_be_escaped() {
        let value_of = |name: &str| match name {
            "VAR_A" => b"A".to_vec(),
            "VAR_B" => b"B".to_vec(),
            "VAR_REF" => b"$(VAR_A)".to_vec(),
            "VAR_EMPTY" => Vec::new(),
            "" => b"empty name".to_vec(),
            name => reference(name),
        };
        for (input, want) in [
            ("$(VAR_A)", "A"),
            ("___$(VAR_B)___", "___B___"),
            ("$(VAR_A)-$(VAR_B)", "A-B"),
            ("$(VAR_REF)", "$(VAR_A)"),
            ("$(VAR_EMPTY)x", "x"),
            ("$(MISSING)", "$(MISSING)"),
            ("$$(VAR_A)", "$(VAR_A)"),
            ("$$$(VAR_A)", "$A"),
            ("$$$$(VAR_A)", "$$(VAR_A)"),
            ("foo$$var", "foo$var"),
            ("f000-$(VAR_A", "f000-$(VAR_A"),
            ("$(VAR_A$(VAR_B)", "$(VAR_A$(VAR_B)"),
            ("$VAR_A", "$VAR_A"),
            ("$?_boo_$!", "$?_boo_$!"),
            ("\n$ä$", "\n$ä$"),
            ("$", "$"),
            ("$$", "$"),
            ("$()", "empty name"),
            ("$(VAR_A)$(", "A$("),
            ("", ""),
        ] {
            let got = String::from_utf8(expand(input, value_of)).unwrap();
            assert_eq!(got, want, "{input}");
        }
    }
}
