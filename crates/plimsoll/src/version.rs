//! `plimsoll version`: version, commit and compiler of this build.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_apiserver::http::discovery::KUBERNETES_VERSION;
use serde::Serialize;

use crate::exit::Exit;
use crate::print;

/// Arguments of `plimsoll version`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print all fields
  plimsoll version -o json")]
pub(crate) struct Arguments {
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

/// The field of the same name in `kubectl version -o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    client_version: Version,
    /// Kinds that are stored and served, and that nothing acts on.
    inert_kinds: Vec<InertKind>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InertKind {
    api_version: String,
    kind: &'static str,
    reason: &'static str,
}

fn inert_kinds() -> Vec<InertKind> {
    let inert = plimsoll_apiserver::kinds::all().filter_map(|kind| {
        Some(InertKind {
            api_version: kind.api_version(),
            kind: kind.kind,
            reason: kind.inert?,
        })
    });
    inert.collect()
}

/// Upstream's fields, with Rust's in place of Go's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    major: &'static str,
    minor: &'static str,
    git_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_commit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_date: Option<&'static str>,
    rust_version: &'static str,
    compiler: &'static str,
    platform: String,
    target: &'static str,
    kubernetes_version: &'static str,
}

impl Version {
    fn of_this_build() -> Version {
        Version {
            major: env!("CARGO_PKG_VERSION_MAJOR"),
            minor: env!("CARGO_PKG_VERSION_MINOR"),
            git_version: concat!("v", env!("CARGO_PKG_VERSION")),
            git_commit: option_env!("PLIMSOLL_GIT_COMMIT"),
            build_date: option_env!("PLIMSOLL_BUILD_DATE"),
            rust_version: rust_version(env!("PLIMSOLL_RUST_VERSION")),
            compiler: "rustc",
            platform: plimsoll_apiserver::http::discovery::platform(),
            target: env!("PLIMSOLL_TARGET"),
            kubernetes_version: KUBERNETES_VERSION,
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("Client Version: {}", self.git_version)];
        lines.extend(
            self.git_commit
                .map(|commit| format!("Git Commit: {commit}")),
        );
        lines.extend(self.build_date.map(|date| format!("Build Date: {date}")));
        lines.push(format!("Kubernetes Version: {}", self.kubernetes_version));
        lines.push(format!("Rust Version: {}", self.rust_version));
        lines.push(format!("Target: {}", self.target));
        lines.join("\n") + "\n"
    }
}

/// The number in `rustc 1.95.0 (59807616e 2026-04-14)`.
fn rust_version(text: &'static str) -> &'static str {
    text.split(' ').nth(1).unwrap_or(text)
}

/// Prints the version.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client_version = Version::of_this_build();
    let text = match arguments.output {
        None => client_version.text(),
        Some(format) => {
            let versions = Versions {
                client_version,
                inert_kinds: inert_kinds(),
            };
            match format {
                Format::Json => serde_json::to_string_pretty(&versions)? + "\n",
                Format::Yaml => serde_saphyr::to_string(&versions)?,
            }
        }
    };
    print::write(&text)?;
    Ok(Exit::Success.into())
}
