//! Whether a stored value is an object with the name in its key.

use serde_json::Value;

use super::ROOT;

/// Returns what is wrong with a stored value, if anything. Keys other than objects' are ignored.
pub(crate) fn check_stored(key: &[u8], value: &[u8]) -> Result<(), String> {
    let Some(path) = key.strip_prefix(ROOT.as_bytes()) else {
        return Ok(());
    };
    let path = std::str::from_utf8(path).map_err(|_| "the key is not text".to_owned())?;
    let object: Value =
        serde_json::from_slice(value).map_err(|error| format!("the value is not JSON: {error}"))?;
    for field in ["/kind", "/apiVersion", "/metadata/name"] {
        let text = object.pointer(field).and_then(Value::as_str);
        if text.is_none_or(str::is_empty) {
            return Err(format!("the object has no {}", field.replace('/', ".")));
        }
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let named = path.rsplit('/').next().unwrap_or_default();
    match name == named {
        true => Ok(()),
        false => Err(format!("the object's name is {name:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_object_needs_a_type_and_the_name_in_its_key() {
        let check = |key: &str, value: &str| check_stored(key.as_bytes(), value.as_bytes());
        let pod = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}"#;
        assert_eq!(check("/registry/pods/default/web", pod), Ok(()));
        assert_eq!(check("/elsewhere", "anything"), Ok(()));
        for (key, value, problem) in [
            ("/registry/pods/default/other", pod, "name is \"web\""),
            ("/registry/pods/default/web", "{", "not JSON"),
            ("/registry/pods/default/web", "{}", "no .kind"),
        ] {
            let found = check(key, value).unwrap_err();
            assert!(found.contains(problem), "{found}");
        }
    }
}
