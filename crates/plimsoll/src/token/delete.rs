//! `plimsoll token delete`.

use anyhow::{Context, Result};
use clap::Args;
use kube::api::DeleteParams;

use crate::cluster::Cluster;
use crate::failure::usage;
use crate::print;

use super::{NAME_PREFIX, secrets};

/// Arguments of `plimsoll token delete`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Delete the token with the id abcdef
  plimsoll token delete abcdef")]
pub(crate) struct Arguments {
    /// Tokens (`abcdef.0123456789abcdef`) or token ids (`abcdef`).
    #[arg(value_name = "TOKEN-ID|TOKEN", required = true)]
    pub(super) tokens: Vec<String>,

    #[command(flatten)]
    pub(super) cluster: Cluster,
}

/// The ids of tokens given as tokens or as ids.
pub(super) fn ids(tokens: &[String]) -> Result<Vec<String>> {
    let id = |token: &String| {
        let (id, secret) = match token.split_once('.') {
            Some((id, secret)) => (id, Some(secret)),
            None => (token.as_str(), None),
        };
        let is_valid = is_word(id, 6) && secret.is_none_or(|secret| is_word(secret, 16));
        let expected = r#""[a-z0-9]{6}" nor "[a-z0-9]{6}.[a-z0-9]{16}""#;
        is_valid
            .then(|| id.to_owned())
            .ok_or_else(|| usage(format!("token {token:?} is neither of the form {expected}")))
    };
    tokens.iter().map(id).collect()
}

fn is_word(text: &str, length: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() == length && text.bytes().all(is_allowed)
}

/// Deletes the tokens in order; stops at the first that cannot be deleted.
pub(super) async fn delete(arguments: &Arguments, ids: &[String]) -> Result<()> {
    let secrets = secrets(arguments.cluster.client().await?);
    for id in ids {
        let name = format!("{NAME_PREFIX}{id}");
        let deleted = secrets.delete(&name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("failed to delete bootstrap token {id:?}"))?;
        print::write(&format!("bootstrap token {id:?} deleted\n"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_token_ids_are_accepted() {
        let given = ["abcdef", "012345.0123456789abcdef"].map(str::to_owned);
        assert_eq!(ids(&given).unwrap(), ["abcdef", "012345"]);
        for wrong in ["", "abcde", "ABCDEF", "abcdef.", "abcdef.0123", "abcdefg"] {
            let error = ids(&[wrong.to_owned()]).unwrap_err();
            assert!(error.to_string().contains(&format!("{wrong:?}")), "{error}");
        }
    }
}
