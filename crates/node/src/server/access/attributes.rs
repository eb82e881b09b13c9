//! The authorization attributes of a request.

use http::Method;

/// One question to the authorizer: a verb on a subresource of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Attributes {
    /// Empty for a method that is no verb of the API.
    pub(in crate::server) verb: &'static str,
    /// Any of these is enough, tried in this order.
    pub(in crate::server) subresources: Vec<&'static str>,
}

impl Attributes {
    /// Those of a request. The path is unescaped.
    pub(in crate::server) fn of(method: &Method, path: &str) -> Attributes {
        let under = |root: &str| is_under(path, root);
        let narrow = match () {
            () if under("/pods") || under("/runningpods") => Some("pods"),
            () if under("/healthz") => Some("healthz"),
            () if under("/configz") => Some("configz"),
            () => None,
        };
        let broad = match () {
            () if under("/stats") => "stats",
            () if under("/metrics") => "metrics",
            () if under("/logs") => "log",
            () if under("/checkpoint") => "checkpoint",
            () if under("/statusz") => "statusz",
            () if under("/flagz") => "configz",
            () => "proxy",
        };
        Attributes {
            verb: verb(method),
            subresources: narrow.into_iter().chain([broad]).collect(),
        }
    }
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "GET" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

fn is_under(path: &str, root: &str) -> bool {
    let rest = path.strip_prefix(root);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From upstream's auth_test.go, with the fine-grained subresources.
    #[test]
    fn paths_have_upstreams_subresources() {
        let cases: &[(&str, &[&str])] = &[
            ("/", &["proxy"]),
            ("/attach/default/web/app", &["proxy"]),
            ("/checkpoint/default/web/app", &["checkpoint"]),
            ("/configz", &["configz", "proxy"]),
            ("/containerLogs/default/web/app", &["proxy"]),
            ("/debug/flags/v", &["proxy"]),
            ("/exec/default/web/app", &["proxy"]),
            ("/flagz", &["configz"]),
            ("/healthz", &["healthz", "proxy"]),
            ("/healthz/ping", &["healthz", "proxy"]),
            ("/healthzother", &["proxy"]),
            ("/logs/", &["log"]),
            ("/logs/a/b", &["log"]),
            ("/metrics", &["metrics"]),
            ("/metrics/cadvisor", &["metrics"]),
            ("/plimsoll/decisions", &["proxy"]),
            ("/pods", &["pods", "proxy"]),
            ("/pods/", &["pods", "proxy"]),
            ("/runningpods/", &["pods", "proxy"]),
            ("/stats/summary", &["stats"]),
            ("/statusz", &["statusz"]),
        ];
        for (path, subresources) in cases {
            let found = Attributes::of(&Method::GET, path);
            assert_eq!(found.subresources, *subresources, "{path}");
            assert_eq!(found.verb, "get");
        }
    }

    #[test]
    fn methods_have_verbs() {
        let cases = [
            ("POST", "create"),
            ("PUT", "update"),
            ("PATCH", "patch"),
            ("DELETE", "delete"),
            ("OPTIONS", ""),
        ];
        for (method, verb) in cases {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(Attributes::of(&method, "/pods").verb, verb);
        }
    }
}
