//! The object to explain: `pod web`, `pod/web`, `deploy/web`, `node n1`.

use plimsoll_report::explain::OwnerKind;

/// A kind that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Node,
    Owner(OwnerKind),
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

const KINDS: [(&[&str], Kind); 8] = [
    (&["pod", "pods", "po"], Kind::Pod),
    (&["node", "nodes", "no"], Kind::Node),
    (
        &[
            "deployment",
            "deployments",
            "deploy",
            "deployment.apps",
            "deployments.apps",
        ],
        Kind::Owner(OwnerKind::Deployment),
    ),
    (
        &[
            "replicaset",
            "replicasets",
            "rs",
            "replicaset.apps",
            "replicasets.apps",
        ],
        Kind::Owner(OwnerKind::ReplicaSet),
    ),
    (
        &[
            "statefulset",
            "statefulsets",
            "sts",
            "statefulset.apps",
            "statefulsets.apps",
        ],
        Kind::Owner(OwnerKind::StatefulSet),
    ),
    (
        &[
            "daemonset",
            "daemonsets",
            "ds",
            "daemonset.apps",
            "daemonsets.apps",
        ],
        Kind::Owner(OwnerKind::DaemonSet),
    ),
    (
        &["job", "jobs", "job.batch", "jobs.batch"],
        Kind::Owner(OwnerKind::Job),
    ),
    (
        &["replicationcontroller", "replicationcontrollers", "rc"],
        Kind::Owner(OwnerKind::ReplicationController),
    ),
];

impl Target {
    /// Parses `TYPE NAME` or `TYPE/NAME`; the error states what is wrong.
    pub(crate) fn parse(words: &[String]) -> Result<Target, String> {
        let (kind, name) = match words {
            [one] => one.split_once('/').ok_or_else(|| {
                format!("{one:?} names no type: use TYPE NAME or TYPE/NAME, for example pod/{one}")
            })?,
            [kind, name] if !kind.contains('/') && !name.contains('/') => {
                (kind.as_str(), name.as_str())
            }
            _ => return Err("expected one object: TYPE NAME or TYPE/NAME".to_owned()),
        };
        if name.is_empty() || name.contains('/') {
            return Err(format!(
                "{:?} names no object: use TYPE NAME or TYPE/NAME",
                words.join(" ")
            ));
        }
        let lowercase = kind.to_lowercase();
        let mut kinds = KINDS.iter();
        let found = kinds.find(|(names, _)| names.contains(&&*lowercase));
        match found {
            Some((_, kind)) => Ok(Target {
                kind: *kind,
                name: name.to_owned(),
            }),
            None => {
                let known = KINDS.iter().filter_map(|(names, _)| names.first().copied());
                let known = known.collect::<Vec<_>>().join(", ");
                Err(format!(
                    "{kind:?} cannot be explained: the type must be one of {known}"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<(Kind, String), String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Target::parse(&words).map(|target| (target.kind, target.name))
    }

    #[test]
    fn objects_are_named_as_with_kubectl() {
        let web = |kind| Ok((kind, "web".to_owned()));
        assert_eq!(parsed(&["pod", "web"]), web(Kind::Pod));
        assert_eq!(parsed(&["po/web"]), web(Kind::Pod));
        assert_eq!(parsed(&["no", "web"]), web(Kind::Node));
        let deployment = Kind::Owner(OwnerKind::Deployment);
        for words in [
            &["deploy/web"][..],
            &["deploy", "web"],
            &["Deployment.apps/web"],
        ] {
            assert_eq!(parsed(words), web(deployment), "{words:?}");
        }
        assert_eq!(
            parsed(&["sts/web"]),
            web(Kind::Owner(OwnerKind::StatefulSet))
        );
        assert_eq!(parsed(&["ds/web"]), web(Kind::Owner(OwnerKind::DaemonSet)));
        assert_eq!(parsed(&["rs/web"]), web(Kind::Owner(OwnerKind::ReplicaSet)));
        assert_eq!(parsed(&["job/web"]), web(Kind::Owner(OwnerKind::Job)));
    }

    #[test]
    fn invalid_target_is_refused_with_a_correction() {
        let error = |words: &[&str]| parsed(words).unwrap_err();
        assert!(error(&["web"]).contains("for example pod/web"));
        assert!(error(&["pod/"]).contains("names no object"));
        assert!(error(&["pod", "a", "b"]).contains("one object"));
        let unknown = error(&["svc/web"]);
        assert!(unknown.contains("\"svc\" cannot be explained"), "{unknown}");
        assert!(
            unknown.contains("pod, node, deployment, replicaset"),
            "{unknown}"
        );
    }
}
