//! What a request path means.
//!
//! Matches v1.36 apiserver/pkg/endpoints/request/requestinfo.go.

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A document or an endpoint other than objects.
    Path(String),
    /// Objects.
    Objects(Target),
}

/// Objects, as the path names them. Absent parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of one object.
    pub name: String,
    /// The part after the name: `status`.
    pub subresource: String,
    /// The path below a subresource such as `proxy`; begins with a slash.
    pub rest: String,
    /// Whether the path is the deprecated form of a watch: `/api/v1/watch/pods`.
    pub is_old_watch: bool,
}

impl Route {
    /// Parses the path of a request.
    pub(crate) fn of(path: &str) -> Route {
        match Target::of(path) {
            Some(target) => Route::Objects(target),
            None => Route::Path(path.to_owned()),
        }
    }
}

impl Target {
    /// Whether it is all objects of a group, version and resource.
    pub(crate) fn is_list_of(&self, (group, version, resource): (&str, &str, &str)) -> bool {
        (self.group.as_str(), self.version.as_str()) == (group, version)
            && (self.resource.as_str(), self.name.as_str()) == (resource, "")
    }

    fn of(path: &str) -> Option<Target> {
        let mut parts = path.trim_matches('/').split('/');
        let (group, version) = match parts.next()? {
            "api" => (String::new(), decoded(parts.next()?)?),
            "apis" => (decoded(parts.next()?)?, decoded(parts.next()?)?),
            _ => return None,
        };
        let mut parts = parts.peekable();
        let mut target = Target {
            group,
            version,
            ..Target::default()
        };
        if parts.peek() == Some(&"watch") {
            target.is_old_watch = true;
            parts.next();
        }
        let parts: Vec<&str> = parts.collect();
        let mut parts = parts.as_slice();
        if let ["namespaces", namespace, resource, after @ ..] = parts {
            // A namespace has subresources, which are not kinds in it.
            if !matches!(*resource, "status" | "finalize") {
                target.namespace = decoded(namespace)?;
                target.resource = decoded(resource)?;
                parts = after;
            } else {
                target.resource = "namespaces".to_owned();
                target.namespace = decoded(namespace)?;
                parts = &parts[1..];
            }
        } else {
            let (resource, after) = parts.split_first()?;
            target.resource = decoded(resource)?;
            parts = after;
            if target.resource == "namespaces"
                && let Some(name) = after.first()
            {
                target.namespace = decoded(name)?;
            }
        }
        if target.resource.is_empty() {
            return None;
        }
        if let Some((name, after)) = parts.split_first() {
            target.name = decoded(name)?;
            if let Some((subresource, rest)) = after.split_first() {
                target.subresource = decoded(subresource)?;
                target.rest = rest.iter().map(|part| format!("/{part}")).collect();
                if target.rest.is_empty() && path.ends_with('/') {
                    target.rest = "/".to_owned();
                }
            }
        }
        Some(target)
    }
}

/// `None` when a percent sign is not followed by two hexadecimal digits, or the text is not UTF-8.
fn decoded(part: &str) -> Option<String> {
    if !part.contains('%') {
        return Some(part.to_owned());
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Option<[String; 6]> {
        match Route::of(path) {
            Route::Path(_) => None,
            Route::Objects(t) => Some([
                t.group,
                t.version,
                t.namespace,
                t.resource,
                t.name,
                format!("{}{}", t.subresource, t.rest),
            ]),
        }
    }

    #[test]
    fn paths_are_read_as_upstream_reads_them() {
        let cases = [
            ("/api/v1/pods", ["", "v1", "", "pods", "", ""]),
            ("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]),
            (
                "/api/v1/namespaces/a",
                ["", "v1", "a", "namespaces", "a", ""],
            ),
            (
                "/api/v1/namespaces/a/finalize",
                ["", "v1", "a", "namespaces", "a", "finalize"],
            ),
            ("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]),
            (
                "/api/v1/namespaces/a/pods/b/log",
                ["", "v1", "a", "pods", "b", "log"],
            ),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                ["apps", "v1", "a", "deployments", "b", "scale"],
            ),
            (
                "/api/v1/nodes/n/proxy/stats/summary",
                ["", "v1", "", "nodes", "n", "proxy/stats/summary"],
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                [
                    "rbac.authorization.k8s.io",
                    "v1",
                    "",
                    "clusterroles",
                    "system:node",
                    "",
                ],
            ),
            (
                "/api/v1/watch/namespaces/a/pods",
                ["", "v1", "a", "pods", "", ""],
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(target(path), Some(expected.map(str::to_owned)), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_parsed(path in "(/|api|apis|v1|apps|watch|namespaces|pods|status|%2f|%|%zz|%ff|\\.\\.|é|.){0,12}") {
            if let Route::Objects(target) = Route::of(&path) {
                proptest::prop_assert!(!target.resource.is_empty());
            }
        }
    }

    #[test]
    fn document_paths_are_not_objects() {
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/api/v1/",
            "/apis",
            "/apis/",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/openapi/v3/api/v1",
            "/version",
            "/api/v1/%zz",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }
}
