//! Which page a request is for.
//!
//! Matches v1.36 pkg/kubelet/server/server.go. A path that is not served is answered before
//! the client is authenticated; one below a served path only afterwards.

use http::Method;

use super::node::Metrics;

/// A page and what its path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `/healthz`, or one check of it.
    Health(Option<Check>),
    Pods,
    RunningPods,
    Summary,
    Metrics(Metrics),
    Configuration,
    /// Not upstream's: why pods were evicted.
    Decisions,
    /// Not upstream's: how far the eviction thresholds are.
    Lines,
    /// In which order pods would be evicted.
    Ranking,
    ContainerLogs(ContainerOf),
    Exec(ContainerOf),
    Attach(ContainerOf),
    Run(ContainerOf),
    PortForward(PodNamed),
    /// A file or folder below the node's log folder.
    SystemLogs(String),
    /// Disabled by the configuration.
    Disabled(&'static str),
    /// Below a served path, but nothing.
    Missing,
    /// Not with this method.
    WrongMethod(&'static str),
}

/// One of the health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Ping,
    Log,
    SyncLoop,
}

/// A pod of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodNamed {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Only if the path has it.
    pub(super) uid: Option<String>,
}

/// A container of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerOf {
    pub(super) pod: PodNamed,
    pub(super) container: String,
}

/// Which pages are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    /// `enableDebuggingHandlers`.
    pub(super) debugging: bool,
    /// `enableSystemLogHandler`.
    pub(super) system_logs: bool,
}

/// The page of a path, or `None` if it is not served.
pub(super) fn route(method: &Method, path: &str, pages: Pages) -> Option<Route> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return None;
    }
    let (root, rest) = parts.split_first()?;
    match (*root, rest) {
        ("healthz", []) => Some(Route::Health(None)),
        ("healthz", ["ping"]) => Some(Route::Health(Some(Check::Ping))),
        ("healthz", ["log"]) => Some(Route::Health(Some(Check::Log))),
        ("healthz", ["syncloop"]) => Some(Route::Health(Some(Check::SyncLoop))),
        ("metrics", []) => Some(Route::Metrics(Metrics::Agent)),
        ("metrics", ["cadvisor"]) => Some(Route::Metrics(Metrics::Cadvisor)),
        ("metrics", ["resource"]) => Some(Route::Metrics(Metrics::Resource)),
        ("metrics", ["probes"]) => Some(Route::Metrics(Metrics::Probes)),
        ("pods", []) => Some(reads(method, Route::Pods)),
        ("stats", ["summary"]) => Some(streams(method, Route::Summary)),
        ("plimsoll", ["decisions"]) => Some(reads(method, Route::Decisions)),
        ("plimsoll", ["lines"]) => Some(reads(method, Route::Lines)),
        ("plimsoll", ["ranking"]) => Some(reads(method, Route::Ranking)),
        ("pods" | "stats" | "plimsoll", _) => Some(Route::Missing),
        _ if pages.debugging => debugging_route(method, root, rest, pages),
        (
            "run" | "exec" | "attach" | "portForward" | "containerLogs" | "runningpods" | "logs",
            _,
        ) => Some(Route::Disabled("Debug endpoints are disabled.")),
        _ => None,
    }
}

/// Pages that let one do or see more than measurements.
fn debugging_route(method: &Method, root: &str, rest: &[&str], pages: Pages) -> Option<Route> {
    Some(match (root, rest) {
        ("configz", []) => Route::Configuration,
        ("runningpods", []) => reads(method, Route::RunningPods),
        ("run", _) => match container_of(rest) {
            Some(of) if method == Method::POST => Route::Run(of),
            Some(_) => Route::WrongMethod("POST"),
            None => Route::Missing,
        },
        ("exec", _) => streamed_to(method, rest, Route::Exec),
        ("attach", _) => streamed_to(method, rest, Route::Attach),
        ("portForward", [namespace, name]) => {
            let pod = pod_named(namespace, name, None);
            streams(method, Route::PortForward(pod))
        }
        ("portForward", [namespace, name, uid]) => {
            let pod = pod_named(namespace, name, Some(uid));
            streams(method, Route::PortForward(pod))
        }
        ("containerLogs", [_, _, _]) => match container_of(rest) {
            Some(of) => reads(method, Route::ContainerLogs(of)),
            None => Route::Missing,
        },
        ("logs", _) if !pages.system_logs => Route::Disabled("logs endpoint is disabled."),
        ("logs", _) => reads(method, Route::SystemLogs(rest.join("/"))),
        ("runningpods" | "portForward" | "containerLogs", _) => Route::Missing,
        _ => return None,
    })
}

/// The uid stands before the container, if it is there.
fn container_of(rest: &[&str]) -> Option<ContainerOf> {
    let (pod, container) = match rest {
        [namespace, name, container] => (pod_named(namespace, name, None), container),
        [namespace, name, uid, container] => (pod_named(namespace, name, Some(uid)), container),
        _ => return None,
    };
    let container = (*container).to_owned();
    Some(ContainerOf { pod, container })
}

fn pod_named(namespace: &str, name: &str, uid: Option<&str>) -> PodNamed {
    PodNamed {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.map(str::to_owned),
    }
}

fn reads(method: &Method, route: Route) -> Route {
    if *method == Method::GET {
        route
    } else {
        Route::WrongMethod("GET")
    }
}

fn streams(method: &Method, route: Route) -> Route {
    if *method == Method::GET || *method == Method::POST {
        route
    } else {
        Route::WrongMethod("GET, POST")
    }
}

fn streamed_to(method: &Method, rest: &[&str], route: fn(ContainerOf) -> Route) -> Route {
    match container_of(rest) {
        Some(of) => streams(method, route(of)),
        None => Route::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Pages = Pages {
        debugging: true,
        system_logs: true,
    };

    fn get(path: &str) -> Option<Route> {
        route(&Method::GET, path, ALL)
    }

    fn of(uid: Option<&str>) -> ContainerOf {
        let pod = pod_named("default", "web", uid);
        let container = "app".to_owned();
        ContainerOf { pod, container }
    }

    #[test]
    fn every_page_has_its_path() {
        let cases = [
            ("/healthz", Route::Health(None)),
            ("/healthz/syncloop", Route::Health(Some(Check::SyncLoop))),
            ("/pods", Route::Pods),
            ("/pods/", Route::Pods),
            ("/runningpods/", Route::RunningPods),
            ("/stats/summary", Route::Summary),
            ("/metrics", Route::Metrics(Metrics::Agent)),
            ("/metrics/cadvisor", Route::Metrics(Metrics::Cadvisor)),
            ("/configz", Route::Configuration),
            (
                "/containerLogs/default/web/app",
                Route::ContainerLogs(of(None)),
            ),
            ("/exec/default/web/app", Route::Exec(of(None))),
            ("/exec/default/web/u-1/app", Route::Exec(of(Some("u-1")))),
            ("/attach/default/web/app", Route::Attach(of(None))),
            ("/run/default/web/app", Route::WrongMethod("POST")),
            (
                "/portForward/default/web",
                Route::PortForward(pod_named("default", "web", None)),
            ),
            ("/logs/", Route::SystemLogs(String::new())),
            (
                "/logs/pods/a.log",
                Route::SystemLogs("pods/a.log".to_owned()),
            ),
            ("/exec/default/web", Route::Missing),
            ("/stats/other", Route::Missing),
            ("/plimsoll/decisions", Route::Decisions),
            ("/plimsoll/lines/", Route::Lines),
            ("/plimsoll/ranking", Route::Ranking),
            ("/plimsoll", Route::Missing),
        ];
        for (path, expected) in cases {
            assert_eq!(get(path), Some(expected), "{path}");
        }
        let nothing = ["/", "/nothing", "/healthz/other", "//pods", "/logs/../etc"];
        for path in nothing {
            assert_eq!(get(path), None, "{path}");
        }
    }

    #[test]
    fn without_debugging_only_metrics_are_served() {
        let few = Pages {
            debugging: false,
            system_logs: true,
        };
        let refused = Route::Disabled("Debug endpoints are disabled.");
        for path in ["/exec/a/b/c", "/containerLogs/a/b/c", "/logs/x", "/run/x"] {
            let found = route(&Method::GET, path, few);
            assert_eq!(found.as_ref(), Some(&refused), "{path}");
        }
        assert_eq!(route(&Method::GET, "/pods", few), Some(Route::Pods));
        assert_eq!(route(&Method::GET, "/configz", few), None);
    }
}
