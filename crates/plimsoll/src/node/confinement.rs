//! How pods are confined that do not say themselves.

use clap::Args;
use plimsoll_core::config::{NodeConfig, Origin, Setting};
use plimsoll_core::resources::Count;

/// The field that `--seccomp-default` sets.
const SECCOMP_DEFAULT: &str = "seccompDefault";

/// Processes of a pod on a hardened node: far more than services have, far fewer than a node.
const HARDENED_MAX_PIDS: i64 = 4096;

/// What holds where neither the configuration nor an argument says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultConfinement {
    /// As upstream: pods are not confined.
    Upstream,
    /// A filter of system calls, and a number of processes.
    Hardened,
}

#[derive(Debug, Args)]
pub(super) struct ConfinementArguments {
    /// Confine containers that ask for no seccomp profile with the runtime's own (seccompDefault).
    /// On by default with `plimsoll up`, off as upstream with `plimsoll node`.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        require_equals = true
    )]
    seccomp_default: Option<bool>,

    /// How many processes a pod may have (podPidsLimit); 0 for no limit but the node's. 4096 by
    /// default with `plimsoll up`, no limit as upstream with `plimsoll node`.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(0..))]
    pod_max_pids: Option<i64>,
}

impl ConfinementArguments {
    /// Puts into the configuration what arguments say, and the defaults where nothing does.
    pub(super) fn apply(&self, default: DefaultConfinement, config: &mut NodeConfig) {
        let is_hardened = default == DefaultConfinement::Hardened;
        let filter = match self.seccomp_default {
            Some(is_on) => Some(Setting::chosen(
                is_on.into(),
                Origin::flag("seccomp-default"),
            )),
            None if is_hardened && !config.carried.contains_key(SECCOMP_DEFAULT) => {
                Some(Setting::defaulted(true.into()))
            }
            None => None,
        };
        if let Some(filter) = filter {
            config.carried.insert(SECCOMP_DEFAULT.to_owned(), filter);
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

    /// What a node is told by arguments and by a file that may say the same.
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
    fn pods_are_confined_by_default_only_where_that_is_the_default() {
        use DefaultConfinement::{Hardened, Upstream};
        for (arguments, file, confinement, filter, pids) in [
            (&[][..], "", Upstream, None, None),
            (&[], "", Hardened, Some(true), Some(4096)),
            (
                &[],
                "seccompDefault: false\npodPidsLimit: -1\n",
                Hardened,
                Some(false),
                None,
            ),
            (&[], "podPidsLimit: 77\n", Hardened, Some(true), Some(77)),
            (
                &["--seccomp-default=false", "--pod-max-pids=0"],
                "seccompDefault: true\npodPidsLimit: 77\n",
                Hardened,
                Some(false),
                None,
            ),
            (
                &["--seccomp-default", "--pod-max-pids=5"],
                "",
                Upstream,
                Some(true),
                Some(5),
            ),
        ] {
            let config = configured(arguments, file, confinement);
            let found = config.carried.get(SECCOMP_DEFAULT);
            let found = found.and_then(|setting| setting.value.as_bool());
            assert_eq!(found, filter, "{arguments:?} {file}");
            let limit = config.pod_pids_limit.map(|count| count.0);
            assert_eq!(limit, pids, "{arguments:?} {file}");
        }
    }
}
