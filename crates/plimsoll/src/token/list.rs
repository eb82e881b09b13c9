//! `plimsoll token list`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use plimsoll_client::clock::Clock;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_report::text::Table;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::logging;
use crate::print;

use super::{NAME_PREFIX, SECRET_TYPE, secrets};

/// An empty cell.
const NONE: &str = "<none>";

/// Arguments of `plimsoll token list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) cluster: Cluster,

    /// Output format; `json` and `yaml` print kubeadm's `BootstrapToken` objects.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

/// A token as kubeadm writes it: v1.36 cmd/kubeadm/app/apis/output/v1alpha3, `BootstrapToken`.
#[derive(Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Token {
    kind: &'static str,
    api_version: &'static str,
    token: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    usages: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
}

/// Prints all tokens, in the order of their ids.
pub(super) async fn list(arguments: &Arguments) -> Result<()> {
    let secrets = secrets(arguments.cluster.client().await?);
    let selector = ListParams::default().fields(&format!("type={SECRET_TYPE}"));
    let secrets = secrets.list(&selector).await;
    let secrets = secrets.context("failed to list bootstrap tokens")?;
    let mut tokens: Vec<Token> = secrets.items.iter().filter_map(Token::of_secret).collect();
    tokens.sort_by(|one, other| one.token.cmp(&other.token));
    let text = match arguments.output {
        None => table(&tokens, Clock::system().now()),
        Some(Format::Json) => {
            let texts = tokens.iter().map(serde_json::to_string_pretty);
            let texts: Result<Vec<String>, _> = texts.collect();
            texts?.iter().map(|text| format!("{text}\n")).collect()
        }
        Some(Format::Yaml) => {
            let texts = tokens.iter().map(serde_saphyr::to_string);
            let texts: Result<Vec<String>, _> = texts.collect();
            texts?.join("---\n")
        }
    };
    print::write(&text)?;
    Ok(())
}

impl Token {
    /// The token in a Secret; `None` if the Secret is not a valid token.
    fn of_secret(secret: &Secret) -> Option<Token> {
        let data: BTreeMap<&str, String> = (secret.data.iter().flatten())
            .map(|(key, value)| (key.as_str(), String::from_utf8_lossy(&value.0).into_owned()))
            .collect();
        let text = |key: &str| data.get(key).filter(|text| !text.is_empty()).cloned();
        let (id, password) = (text("token-id")?, text("token-secret")?);
        let name = secret.metadata.name.as_deref()?;
        if name != format!("{NAME_PREFIX}{id}") {
            logging::print_line(&format!(
                "warning: skipped the bootstrap token in secret {name}, which should be called {NAME_PREFIX}{id}"
            ));
            return None;
        }
        let usages = data.iter().filter(|(_, value)| *value == "true");
        let usages = usages.filter_map(|(key, _)| key.strip_prefix("usage-bootstrap-"));
        let groups = text("auth-extra-groups").unwrap_or_default();
        Some(Token {
            kind: "BootstrapToken",
            api_version: "output.kubeadm.k8s.io/v1alpha3",
            token: format!("{id}.{password}"),
            description: text("description").unwrap_or_default(),
            expires: text("expiration"),
            usages: usages.map(str::to_owned).collect(),
            groups: (groups.split(',').filter(|group| !group.is_empty()))
                .map(str::to_owned)
                .collect(),
        })
    }

    fn ttl(&self, now: Timestamp) -> String {
        let Some(expires) = &self.expires else {
            return "<forever>".to_owned();
        };
        match Timestamp::from_rfc3339(expires) {
            Some(expires) => {
                short_duration(i128::from(expires.as_nanos()) - i128::from(now.as_nanos()))
            }
            None => "<invalid>".to_owned(),
        }
    }
}

fn table(tokens: &[Token], now: Timestamp) -> String {
    let or_none = |text: String| match text.is_empty() {
        true => NONE.to_owned(),
        false => text,
    };
    let heading = [
        "TOKEN",
        "TTL",
        "EXPIRES",
        "USAGES",
        "DESCRIPTION",
        "EXTRA GROUPS",
    ];
    let mut table = Table::new(heading);
    for token in tokens {
        table.row([
            token.token.clone(),
            token.ttl(now),
            token.expires.clone().unwrap_or("<never>".to_owned()),
            or_none(token.usages.join(",")),
            or_none(token.description.clone()),
            or_none(token.groups.join(",")),
        ]);
    }
    if tokens.is_empty() {
        return String::new();
    }
    table.lines().join("\n") + "\n"
}

/// Matches v1.36 apimachinery/pkg/util/duration, `ShortHumanDuration`: a token that expired more than
/// a second ago is `<invalid>`.
fn short_duration(nanos: i128) -> String {
    let seconds = nanos / 1_000_000_000;
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..31_536_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(name: &str, data: &[(&str, &str)]) -> Secret {
        let data = data.iter().map(|(key, value)| {
            let value = ByteString(value.as_bytes().to_vec());
            ((*key).to_owned(), value)
        });
        let mut secret = Secret {
            data: Some(data.collect()),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.to_owned());
        secret
    }

    const COMPLETE: &[(&str, &str)] = &[
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("description", "for the second machine"),
        ("expiration", "2026-01-02T00:00:00Z"),
        ("usage-bootstrap-authentication", "true"),
        ("usage-bootstrap-signing", "true"),
        (
            "auth-extra-groups",
            "system:bootstrappers:a,system:bootstrappers:b",
        ),
    ];

    #[test]
    fn tokens_are_listed_as_by_kubeadm() {
        let complete = Token::of_secret(&secret("bootstrap-token-abcdef", COMPLETE)).unwrap();
        let bare = Token::of_secret(&secret("bootstrap-token-abcdef", &COMPLETE[..2])).unwrap();
        let now = Timestamp::from_rfc3339("2026-01-01T00:30:00Z").unwrap();
        assert_eq!(
            table(&[complete, bare], now).lines().collect::<Vec<_>>(),
            [
                "TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION              EXTRA GROUPS",
                "abcdef.0123456789abcdef   23h         2026-01-02T00:00:00Z   authentication,signing   for the second machine   system:bootstrappers:a,system:bootstrappers:b",
                "abcdef.0123456789abcdef   <forever>   <never>                <none>                   <none>                   <none>",
            ]
        );
    }

    #[test]
    fn secrets_that_are_not_tokens_are_skipped() {
        assert_eq!(
            Token::of_secret(&secret("bootstrap-token-abcdef", &COMPLETE[..1])),
            None
        );
        assert_eq!(Token::of_secret(&secret("other", COMPLETE)), None);
    }

    #[test]
    fn expired_ttls_are_invalid() {
        let second = 1_000_000_000;
        for (nanos, expected) in [
            (-2 * second, "<invalid>"),
            (-second, "0s"),
            (59 * second, "59s"),
            (60 * second, "1m"),
            (7200 * second, "2h"),
            (172_800 * second, "2d"),
            (63_072_000 * second, "2y"),
        ] {
            assert_eq!(short_duration(nanos), expected);
        }
    }
}
