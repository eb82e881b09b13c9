//! The flags of the server's audit log, with kube-apiserver's names and meaning.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use plimsoll_apiserver::server::audit::Options;
use plimsoll_apiserver::server::audit::log::{Mode, Rotation};
use plimsoll_apiserver::server::audit::policy::Policy;

use crate::help::SECURITY;
use crate::input::read_bytes;
use crate::mistakes::mistakes;

/// Arguments about the audit log.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct AuditArguments {
    /// File to write audit events (audit.k8s.io/v1) to.
    #[arg(long, value_name = "FILE", help_heading = SECURITY)]
    audit_log_path: Option<PathBuf>,

    /// Audit policy (audit.k8s.io/v1 Policy) [default: all requests at level Metadata].
    #[arg(long, value_name = "FILE", requires = "audit_log_path", help_heading = SECURITY)]
    audit_policy_file: Option<String>,

    /// Mode of the audit log: `batch`, `blocking` or `blocking-strict`.
    ///
    /// With `batch` requests do not wait; events that do not fit into the buffer are dropped and
    /// counted. With `blocking` the server writes the event before it answers. With
    /// `blocking-strict` it also refuses a request whose event cannot be written.
    #[arg(
        long,
        value_name = "MODE",
        default_value = "blocking",
        requires = "audit_log_path",
        hide_possible_values = true,
        help_heading = SECURITY
    )]
    audit_log_mode: AuditMode,

    /// Maximum size of the audit log in MiB before it is rotated; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = Rotation::default().max_mebibytes,
        requires = "audit_log_path", help_heading = SECURITY)]
    audit_log_maxsize: u64,

    /// Maximum number of days to keep rotated audit logs; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = Rotation::default().max_age_days,
        requires = "audit_log_path", help_heading = SECURITY)]
    audit_log_maxage: u64,

    /// Maximum number of rotated audit logs to keep; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = Rotation::default().max_backups,
        requires = "audit_log_path", help_heading = SECURITY)]
    audit_log_maxbackup: usize,
}

/// When requests wait for the audit log.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AuditMode {
    Batch,
    Blocking,
    BlockingStrict,
}

impl AuditArguments {
    /// The options of the audit log; `None` without `--audit-log-path`.
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
