//! `/healthz` and its single checks.
//!
//! Matches v1.36 apiserver/pkg/server/healthz/healthz.go.

use http::{Request, Response, StatusCode};

use super::answer;
use super::body::Body;
use super::node::Node;
use super::query::Query;
use super::route::Check;

const CHECKS: [(Check, &str); 3] = [
    (Check::Ping, "ping"),
    (Check::Log, "log"),
    (Check::SyncLoop, "syncloop"),
];

/// All checks, or one.
pub(super) fn health(node: &dyn Node, check: Option<Check>, query: &Query) -> Response<Body> {
    match check {
        None => all(node, query),
        Some(check) => match run(node, check) {
            Ok(()) => answer::plain("ok".to_owned()),
            Err(reason) => {
                let text = format!("internal server error: {reason}");
                answer::error(StatusCode::INTERNAL_SERVER_ERROR, &text)
            }
        },
    }
}

/// The page without TLS: that there is an answer is the answer.
pub(super) fn ping<B>(request: &Request<B>) -> Response<Body> {
    match request.uri().path() {
        "/healthz" | "/healthz/ping" => answer::plain("ok".to_owned()),
        _ => answer::no_such_page(),
    }
}

fn all(node: &dyn Node, query: &Query) -> Response<Body> {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut report = String::new();
    let mut has_failed = false;
    for (check, name) in CHECKS {
        if excluded.contains(&name) {
            report.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        match run(node, check) {
            Ok(()) => report.push_str(&format!("[+]{name} ok\n")),
            Err(reason) => {
                tracing::warn!(check = name, reason, "health check failed");
                // The reason is shown only on the page of the single check, which has its own access check.
                report.push_str(&format!("[-]{name} failed: reason withheld\n"));
                has_failed = true;
            }
        }
    }
    if has_failed {
        let text = format!("{report}healthz check failed");
        return answer::error(StatusCode::INTERNAL_SERVER_ERROR, &text);
    }
    if query.first("verbose").is_none() {
        return answer::plain("ok".to_owned());
    }
    answer::plain(format!("{report}healthz check passed\n"))
}

fn run(node: &dyn Node, check: Check) -> Result<(), String> {
    match check {
        Check::Ping | Check::Log => Ok(()),
        Check::SyncLoop => node.sync_loop(),
    }
}
