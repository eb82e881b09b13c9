//! How deep an object may be: one limit for everything that is read from clients and stored.
//!
//! How large it may be is the store's to say: [`MAX_TXN_BYTES`](crate::store::MAX_TXN_BYTES).

use serde_json::Value;

/// How deep objects and lists may be nested in an object, its `managedFields` and its own braces
/// included.
///
/// Every client must be able to read what is stored. Go reads 10,000 levels, but `serde_json` and
/// with it kube-rs refuses 128, Ruby 101 and .NET 65, and an item of a Table stands three levels
/// deep. No kind needs thirty with its `managedFields`.
pub const MAX_DEPTH: usize = 60;

/// An object is nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nested {depth} levels deep, at most {MAX_DEPTH} are allowed")]
pub struct TooDeep {
    /// How deep it is.
    pub depth: usize,
}

/// Refuses the text of an object that is deeper than what clients can read.
pub fn check(json: &[u8]) -> Result<(), TooDeep> {
    // Most objects have fewer brackets than that altogether, and counting them takes a tenth of
    // following them.
    if opening_brackets(json) <= MAX_DEPTH {
        return Ok(());
    }
    let depth = depth_of_text(json);
    match depth > MAX_DEPTH {
        true => Err(TooDeep { depth }),
        false => Ok(()),
    }
}

/// How many there are, those in texts included.
fn opening_brackets(json: &[u8]) -> usize {
    // The two brackets differ in this bit only, and no other byte is one of them with it. Sums of a
    // byte let sixteen bytes be compared at once.
    let is_bracket = |byte: &u8| u8::from(byte | 0x20 == b'{');
    let chunks = json.chunks(usize::from(u8::MAX));
    chunks
        .map(|chunk| usize::from(chunk.iter().map(is_bracket).sum::<u8>()))
        .sum()
}

/// How deep the brackets of a JSON text are nested. The text need not be valid.
fn depth_of_text(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => loop {
                match bytes.next() {
                    None | Some(b'"') => break,
                    Some(b'\\') => {
                        bytes.next();
                    }
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    deepest
}

/// Whether a value has at most so many levels. Goes no deeper than that, and takes one from `steps`
/// for each value it looks at; `None` when they are used up.
pub(crate) fn fits(value: &Value, levels: usize, steps: &mut usize) -> Option<bool> {
    *steps = steps.checked_sub(1)?;
    match value {
        Value::Array(items) => all_fit(items.iter(), levels, steps),
        Value::Object(members) => all_fit(members.values(), levels, steps),
        _ => Some(true),
    }
}

fn all_fit<'a>(
    children: impl Iterator<Item = &'a Value>,
    levels: usize,
    steps: &mut usize,
) -> Option<bool> {
    let Some(below) = levels.checked_sub(1) else {
        return Some(false);
    };
    for child in children {
        if !fits(child, below, steps)? {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_of_a_text_is_that_of_its_brackets() {
        for (text, depth) in [
            ("", 0),
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[{"b":1}],"c":{}}"#, 3),
            (r#"{"[[[[":"{{\"{{\\","b":[]}"#, 2),
            ("]]]]{[", 2),
            ("\"[", 0),
        ] {
            assert_eq!(depth_of_text(text.as_bytes()), depth, "{text}");
        }
    }

    #[test]
    fn only_bodies_above_the_depth_limit_are_refused() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(check(nested(MAX_DEPTH).as_bytes()), Ok(()));
        let depth = MAX_DEPTH + 1;
        assert_eq!(check(nested(depth).as_bytes()), Err(TooDeep { depth }));
        let wide = format!("[{}0]", "[[]],".repeat(MAX_DEPTH));
        assert_eq!(check(wide.as_bytes()), Ok(()));
        let text = format!("{{\"a\":\"{}\"}}", "{".repeat(2 * MAX_DEPTH));
        assert_eq!(check(text.as_bytes()), Ok(()));
    }

    #[test]
    fn values_fit_up_to_their_depth() {
        let value = json!({"a": [1, {"b": []}], "c": 2});
        let mut steps = 100;
        assert_eq!(fits(&value, 4, &mut steps), Some(true));
        assert_eq!(steps, 94);
        assert_eq!(fits(&value, 3, &mut steps), Some(false));
        assert_eq!(fits(&json!(1), 0, &mut steps), Some(true));
        assert_eq!(fits(&value, 4, &mut 3), None);
    }
}
