//! Paths and queries, unescaped as Go does it.

/// Names and values in the order of the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part after `?`. A pair that does not parse is left out, and so is one with a
    /// semicolon.
    pub(super) fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.filter(|pair| !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, true)?, unescape(value, true)?))
        });
        Query(pairs.collect())
    }

    /// The first value of that name.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let pair = pairs.find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// All values of that name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }
}

/// The path as it is routed and authorized; `None` if it cannot be unescaped.
pub(super) fn path(raw: &str) -> Option<String> {
    unescape(raw, false)
}

/// `None` when a percent sign is not followed by two hexadecimal digits.
fn unescape(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' if plus_is_space => b' ',
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_unescaped_and_broken_ones_left_out() {
        let query = Query::parse("command=a+b&command=%2Fbin%2Fsh&tty&bad=%zz&semi;colon=1");
        let commands: Vec<&str> = query.all("command").collect();
        assert_eq!(commands, ["a b", "/bin/sh"]);
        assert_eq!(query.first("tty"), Some(""));
        assert_eq!(query.first("bad"), None);
        assert_eq!(query.first("semi;colon"), None);
    }

    #[test]
    fn a_plus_in_a_path_is_a_plus() {
        assert_eq!(path("/a+b%20c").as_deref(), Some("/a+b c"));
        assert_eq!(path("/a%"), None);
    }
}
