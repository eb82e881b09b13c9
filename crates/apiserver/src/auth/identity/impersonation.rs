//! The impersonation headers.
//!
//! Parsing them grants nothing: `authorize::impersonate` decides.

use plimsoll_core::problem::quoted;

use super::User;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// Groups, a uid or extras without a user name: 400 with this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requested {} without impersonating a user name", go_literal(.0))]
pub struct WithoutUser(User);

/// The user that the headers name; `None` if they name none.
///
/// Names are compared without regard to case. The user is as written: no group is added yet.
/// Matches v1.36 apiserver/pkg/endpoints/filters/impersonation, `processImpersonationHeaders`.
pub fn requested_user<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Option<User>, WithoutUser> {
    let mut wanted = User::default();
    let mut is_without_user_wrong = false;
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        // Go returns the first of several headers, also when that is empty.
        match name.as_str() {
            USER if wanted.name.is_empty() => wanted.name = value.to_owned(),
            UID if wanted.uid.is_empty() => {
                wanted.uid = value.to_owned();
                is_without_user_wrong |= !value.is_empty();
            }
            GROUP => {
                wanted.groups.push(value.to_owned());
                is_without_user_wrong = true;
            }
            _ => {
                let Some(key) = name.strip_prefix(EXTRA_PREFIX) else {
                    continue;
                };
                let values = wanted.extra.entry(unescaped(key)).or_default();
                values.push(value.to_owned());
                is_without_user_wrong = true;
            }
        }
    }
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if is_without_user_wrong {
        return Err(WithoutUser(wanted));
    }
    Ok(None)
}

/// The key with its `%` escapes resolved; a key with a wrong escape stays as it is.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let digits = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(value) = digits.and_then(|two| u8::from_str_radix(two, 16).ok()) else {
            return key.to_owned();
        };
        bytes.push(value);
        rest = &after[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

/// The user as Go's `%#v` prints it; the text of a 400 contains it.
fn go_literal(user: &User) -> String {
    let strings = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => strings(groups),
    };
    let extra = match user.extra.is_empty() {
        true => "(nil)".to_owned(),
        false => {
            let pairs = user.extra.iter();
            let pairs: Vec<String> = pairs
                .map(|(key, values)| format!("{}:{}", quoted(key), strings(values)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:map[string][]string{extra}}}",
        quoted(&user.name),
        quoted(&user.uid),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impersonation_headers_are_combined_into_one_user() {
        let headers = [
            ("Impersonate-User", "bob"),
            ("Impersonate-Group", "dev"),
            ("impersonate-group", "ops"),
            ("Impersonate-Uid", "u1"),
            ("Impersonate-Extra-Acme.io%2FTeam", "a"),
            ("Impersonate-Extra-acme.io%2fteam", "b"),
            ("Accept", "*/*"),
        ];
        let bob = requested_user(headers).unwrap().unwrap();
        assert_eq!((bob.name.as_str(), bob.uid.as_str()), ("bob", "u1"));
        assert_eq!(bob.groups, ["dev", "ops"]);
        assert_eq!(bob.extra["acme.io/team"], ["a", "b"]);
        assert_eq!(requested_user([("Accept", "*/*")]), Ok(None));
    }

    #[test]
    fn invalid_escape_is_kept_verbatim() {
        for key in ["a%", "a%2", "a%zz", "a%+1", "a%ff"] {
            assert_eq!(unescaped(key), key);
        }
        assert_eq!(unescaped("a%2fb"), "a/b");
    }

    #[test]
    fn groups_without_a_user_are_rejected_with_upstream_message() {
        let error = requested_user([("Impersonate-Group", "dev")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
             Extra:map[string][]string(nil)} without impersonating a user name"
        );
    }
}
