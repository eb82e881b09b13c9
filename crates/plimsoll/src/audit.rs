//! The flags of the server's audit log, with kube-apiserver's names and meaning.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use plimsoll_apiserver::server::audit::Options;
use plimsoll_apiserver::server::audit::log::{Mode, Rotation};
use plimsoll_apiserver::server::audit::policy::Policy;

use crate::input::read_bytes;
use crate::mistakes::mistakes;

/// Arguments about the audit log.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct AuditArguments {
    /// Note down requests in this file, as audit.k8s.io/v1 Events.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,

    /// Which requests are noted down, and how much of them: an audit.k8s.io/v1 Policy. Without one,
    /// all of them, without bodies.
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<String>,

    /// What requests wait for: `batch` (nothing; what finds no room is dropped and counted),
    /// `blocking` (their events are written) or `blocking-strict` (and refused where that fails).
    #[arg(
        long,
        value_name = "MODE",
        default_value = "blocking",
        requires = "audit_log_path",
        hide_possible_values = true
    )]
    audit_log_mode: AuditMode,

    /// Mebibytes after which a new audit log is begun; 0 for no bound.
    #[arg(long, value_name = "N", default_value_t = Rotation::default().max_mebibytes,
        requires = "audit_log_path")]
    audit_log_maxsize: u64,

    /// Days after which old audit logs are deleted, by the time in their names; 0 for no bound.
    #[arg(long, value_name = "N", default_value_t = Rotation::default().max_age_days,
        requires = "audit_log_path")]
    audit_log_maxage: u64,

    /// Old audit logs that are kept; 0 for all of them.
    #[arg(long, value_name = "N", default_value_t = Rotation::default().max_backups,
        requires = "audit_log_path")]
    audit_log_maxbackup: usize,
}

/// What requests wait for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AuditMode {
    Batch,
    Blocking,
    BlockingStrict,
}

impl AuditArguments {
    /// How requests are to be noted down, if at all.
    pub(crate) fn options(&self) -> Result<Option<Options>> {
        let Some(path) = &self.audit_log_path else {
            return Ok(None);
        };
        Ok(Some(Options {
            path: path.clone(),
            policy: self.audit_policy_file.as_deref().map(policy).transpose()?,
            mode: match self.audit_log_mode {
                AuditMode::Batch => Mode::Batch,
                AuditMode::Blocking => Mode::Blocking,
                AuditMode::BlockingStrict => Mode::BlockingStrict,
            },
            rotation: Rotation {
                max_mebibytes: self.audit_log_maxsize,
                max_age_days: self.audit_log_maxage,
                max_backups: self.audit_log_maxbackup,
            },
        }))
    }
}

fn policy(file: &str) -> Result<Policy> {
    let text = String::from_utf8(read_bytes(file)?);
    let text = text.with_context(|| format!("{file} is not text"))?;
    Policy::from_yaml(&text).map_err(|problems| mistakes(file, &problems))
}
