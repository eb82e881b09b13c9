//! The stores of `store copy`: `redb:DIR` or `etcd://HOST:PORT`.

use std::path::PathBuf;

use crate::backend;

/// A store to copy from or to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The file in a data directory.
    Directory(PathBuf),
    /// The members of an etcd cluster.
    Etcd(Vec<String>),
}

/// Reads the value of `--from` and `--to`.
pub(crate) fn parse(text: &str) -> Result<Place, String> {
    if let Some(directory) = text.strip_prefix("redb:").filter(|dir| !dir.is_empty()) {
        return Ok(Place::Directory(directory.into()));
    }
    match backend::parse_choice(text) {
        Ok(backend::Choice::Etcd(members)) => Ok(Place::Etcd(members)),
        _ => Err(
            "expected redb:DIR, etcd://HOST:PORT[,HOST:PORT…] or etcds://HOST:PORT[,HOST:PORT…]"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_directory_or_etcd_members() {
        assert_eq!(parse("redb:/a"), Ok(Place::Directory("/a".into())));
        let members = vec!["http://a:1".to_owned()];
        assert_eq!(parse("etcd://a:1"), Ok(Place::Etcd(members)));
        for wrong in ["", "redb", "redb:", "/a", "etcd://"] {
            assert!(parse(wrong).unwrap_err().contains("redb:DIR"), "{wrong}");
        }
    }
}
