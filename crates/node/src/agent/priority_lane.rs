//! Sends the status of a node that comes under pressure ahead of all other requests.
//!
//! An eviction also writes a pod status and several events at the same moment. On a machine that is
//! short of memory these would often be sent first, and meanwhile the scheduler still binds pods.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;

/// How long other requests wait at most, so that an API server that does not answer delays them only once.
const PATIENCE: Duration = Duration::from_millis(250);

/// Lets urgent reports overtake other requests. Cheap to clone; clones share the lane.
#[derive(Clone, Debug)]
pub(super) struct PriorityLane(Arc<watch::Sender<LaneState>>);

/// How many urgent reports were requested, and how many of these have been sent.
#[derive(Clone, Copy, Debug, Default)]
struct LaneState {
    requested: u64,
    finished: u64,
}

/// A report that is being sent; it serves all claims made before it was begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportInFlight(u64);

impl PriorityLane {
    pub(super) fn new() -> PriorityLane {
        PriorityLane(Arc::new(watch::channel(LaneState::default()).0))
    }

    /// Requests that the next report is sent before all other requests.
    pub(super) fn claim(&self) {
        self.0.send_modify(|state| state.requested += 1);
    }

    /// Begins to send a report.
    pub(super) fn begin(&self) -> ReportInFlight {
        ReportInFlight(self.0.borrow().requested)
    }

    /// Ends a report, whether it was sent or failed.
    pub(super) fn end(&self, report: ReportInFlight) {
        self.0.send_if_modified(|state| {
            let is_news = state.finished < report.0;
            state.finished = state.finished.max(report.0);
            is_news
        });
    }

    /// A client for all other requests: they wait while an urgent report is pending.
    pub(super) fn behind(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let priority_lane = self.clone();
        let delayed = tower::service_fn(move |request: Request<Body>| {
            let (priority_lane, client) = (priority_lane.clone(), client.clone());
            async move {
                priority_lane.wait_for_reports().await;
                client.send(request).await
            }
        });
        Client::new(delayed, namespace)
    }

    async fn wait_for_reports(&self) {
        let mut state = self.0.subscribe();
        let is_over = state.wait_for(|state| state.finished >= state.requested);
        // Whether the report was sent or took too long, the request is sent now.
        let _ = tokio::time::timeout(PATIENCE, is_over).await;
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use tokio::time::{Instant, timeout};

    use super::*;

    fn server() -> Client {
        let service = tower::service_fn(|_: Request<Body>| async {
            let body = Body::from(b"yes".to_vec());
            Ok::<_, std::convert::Infallible>(Response::new(body))
        });
        Client::new(service, "default")
    }

    async fn ask(client: &Client) -> String {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_until_the_report_is_sent() {
        let priority_lane = PriorityLane::new();
        let client = priority_lane.behind(server());
        assert_eq!(ask(&client).await, "yes");
        priority_lane.claim();
        let report = priority_lane.begin();
        let soon = PATIENCE / 2;
        assert!(timeout(soon, ask(&client)).await.is_err(), "it waits");
        // A report that was begun before a claim does not serve that claim.
        priority_lane.claim();
        priority_lane.end(report);
        assert!(timeout(soon, ask(&client)).await.is_err(), "it waits");
        priority_lane.end(priority_lane.begin());
        assert!(timeout(soon, ask(&client)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_a_limited_time() {
        let priority_lane = PriorityLane::new();
        let client = priority_lane.behind(server());
        priority_lane.claim();
        let begun = Instant::now();
        assert_eq!(ask(&client).await, "yes");
        assert_eq!(begun.elapsed().as_millis(), PATIENCE.as_millis());
    }
}
