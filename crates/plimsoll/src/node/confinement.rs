//! Defaults for pods that set neither a seccomp profile nor a process limit.

use clap::Args;
use plimsoll_core::config::{NodeConfig, Origin, Setting};
use plimsoll_core::resources::Count;

use crate::help::SECURITY;

/// Process limit of a pod on a hardened node: far above what services need, far below kernel.pid_max.
const HARDENED_MAX_PIDS: i64 = 4096;

/// The defaults if neither the configuration nor a flag sets a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultConfinement {
    /// As upstream: pods are not confined.
    Upstream,
    /// A filter of system calls, and a number of processes.
    Hardened,
}

#[derive(Debug, Args)]
#[command(next_help_heading = SECURITY)]
pub(super) struct ConfinementArguments {
    /// Use RuntimeDefault for containers without a seccomp profile (seccompDefault).
    ///
    /// Default: true with `plimsoll up`; false, as upstream, with `plimsoll node`.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        require_equals = true
    )]
    seccomp_default: Option<bool>,

    /// Maximum number of processes per pod (podPidsLimit); 0 for no limit.
    ///
    /// Default: 4096 with `plimsoll up`; no limit, as upstream, with `plimsoll node`.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(0..))]
    pod_max_pids: Option<i64>,
}

impl ConfinementArguments {
    /// Applies the flags to the configuration, and the defaults where neither sets a value.
    pub(super) fn apply(&self, default: DefaultConfinement, config: &mut NodeConfig) {
        let is_hardened = default == DefaultConfinement::Hardened;
        if let Some(is_on) = self.seccomp_default {
            config.seccomp_default = Setting::chosen(is_on, Origin::flag("seccomp-default"));
        } else if is_hardened && !config.seccomp_default.is_set() {
            config.seccomp_default = Setting::defaulted(true);
        }
        if let Some(limit) = self.pod_max_pids {
            let limit = (limit > 0).then_some(Count(limit));
            config.pod_pids_limit = Setting::chosen(limit, Origin::flag("pod-max-pids"));
        } else if is_hardened && !config.pod_pids_limit.is_set() {
            config.pod_pids_limit = Setting::defaulted(Some(Count(HARDENED_MAX_PIDS)));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use plimsoll_core::config::read_file;

    use super::*;

    /// The configuration from flags and from a file that may set the same fields.
    fn configured(arguments: &[&str], file: &str, default: DefaultConfinement) -> NodeConfig {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            confinement: ConfinementArguments,
        }
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        let reading = read_file(format!("{head}{file}").as_bytes(), None);
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        let mut config = reading.config;
        let words = std::iter::once("node").chain(arguments.iter().copied());
        let command = Command::try_parse_from(words).unwrap();
        command.confinement.apply(default, &mut config);
        config
    }

    #[test]
    fn flags_override_the_file_and_the_file_overrides_defaults() {
        use DefaultConfinement::{Hardened, Upstream};
        for (arguments, file, confinement, filter, pids) in [
            (&[][..], "", Upstream, false, None),
            (&[], "", Hardened, true, Some(4096)),
            (
                &[],
                "seccompDefault: false\npodPidsLimit: -1\n",
                Hardened,
                false,
                None,
            ),
            (&[], "podPidsLimit: 77\n", Hardened, true, Some(77)),
            (
                &["--seccomp-default=false", "--pod-max-pids=0"],
                "seccompDefault: true\npodPidsLimit: 77\n",
                Hardened,
                false,
                None,
            ),
            (
                &["--seccomp-default", "--pod-max-pids=5"],
                "",
                Upstream,
                true,
                Some(5),
            ),
        ] {
            let config = configured(arguments, file, confinement);
            assert_eq!(*config.seccomp_default, filter, "{arguments:?} {file}");
            let limit = config.pod_pids_limit.map(|count| count.0);
            assert_eq!(limit, pids, "{arguments:?} {file}");
        }
    }
}
