//! Writes events in the background, with retries.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Event as CoreEvent;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::PendingEvent;
use super::counted::Counted;
use super::series::{FINISH_TIME, REFRESH_TIME, Series};

/// How often the writing of an event is tried.
const TRIES: u32 = 12;
/// The time between tries, and up to a quarter more.
const RETRY_PERIOD: Duration = Duration::from_secs(10);
/// So many writes are under way at once; few, so that events do not slow down other requests.
const IN_FLIGHT: usize = 8;

/// Writes occurrences as series until `stop`, or until all recorders are dropped.
pub(super) async fn write_series(
    client: Client,
    pending: Arc<Mutex<mpsc::Receiver<PendingEvent>>>,
    stop: CancellationToken,
) {
    let mut pending = pending.lock().await;
    let mut series = Series::new();
    let mut writes = FuturesUnordered::new();
    let mut finish = interval(FINISH_TIME);
    let mut refresh = interval(REFRESH_TIME);
    finish.set_missed_tick_behavior(MissedTickBehavior::Delay);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let events = tokio::select! {
            () = stop.cancelled() => return,
            Some(()) = writes.next() => continue,
            pending = pending.recv(), if writes.len() < IN_FLIGHT => match pending {
                Some(pending) => series.record(pending, Timestamp::now()),
                None => return,
            },
            _ = finish.tick() => series.finish(Timestamp::now()),
            _ = refresh.tick() => series.refresh(),
        };
        let events = events.into_iter();
        writes.extend(events.map(|event| write_one_of_series(client.clone(), event)));
    }
}

/// Writes occurrences one by one and counts them, until `stop`, or until all recorders are dropped.
pub(super) async fn write_counted(
    client: Client,
    pending: Arc<Mutex<mpsc::Receiver<PendingEvent>>>,
    stop: CancellationToken,
) {
    let mut pending = pending.lock().await;
    let mut counted = Counted::new();
    loop {
        let pending = tokio::select! {
            () = stop.cancelled() => return,
            pending = pending.recv() => match pending {
                Some(pending) => pending,
                None => return,
            },
        };
        let Some(event) = counted.record(pending, Timestamp::now()) else {
            continue;
        };
        let written = tokio::select! {
            () = stop.cancelled() => return,
            written = write_one_counted(&client, event) => written,
        };
        if let Some(event) = written {
            counted.update(&event);
        }
    }
}

async fn write_one_of_series(client: Client, event: Event) {
    let patch = event.series.as_ref().map(|series| {
        json!({"series": {
            "count": series.count, "lastObservedTime": series.last_observed_time,
        }})
    });
    // An event that is created twice in a short time may be created between patch and create.
    let is_worth_another_try = patch.is_some();
    // The server's answer is not used.
    persist::<_, IgnoredAny>(&client, &event, patch, is_worth_another_try).await;
}

async fn write_one_counted(client: &Client, event: CoreEvent) -> Option<CoreEvent> {
    let is_repeated = event.count.unwrap_or(1) > 1;
    let patch = is_repeated.then(|| {
        json!({
            "count": event.count, "lastTimestamp": event.last_timestamp, "message": event.message,
        })
    });
    persist(client, &event, patch, false).await
}

/// Patches or creates an event. An event that the server refuses is given up, unless it exists by
/// now; a request that does not reach the server is tried again.
async fn persist<K, A>(
    client: &Client,
    event: &K,
    patch: Option<serde_json::Value>,
    retry_if_exists: bool,
) -> Option<A>
where
    K: Serialize + Resource<DynamicType = ()>,
    A: DeserializeOwned,
{
    for _ in 0..TRIES {
        match patch_or_create(client, event, patch.as_ref()).await {
            Ok(written) => return Some(written),
            Err(kube::Error::Api(status)) => {
                let exists = status.code == 409 && status.reason == "AlreadyExists";
                if !(exists && retry_if_exists) {
                    tracing::debug!(%status, "server rejected event");
                    return None;
                }
            }
            Err(error) => tracing::warn!(%error, "unable to write event, retrying"),
        }
        sleep(RETRY_PERIOD.mul_f64(1.0 + fastrand::f64() / 4.0)).await;
    }
    tracing::warn!("unable to write event, retry limit exceeded");
    None
}

async fn patch_or_create<K, A>(
    client: &Client,
    event: &K,
    patch: Option<&serde_json::Value>,
) -> kube::Result<A>
where
    K: Serialize + Resource<DynamicType = ()>,
    A: DeserializeOwned,
{
    let namespace = event.meta().namespace.as_deref().unwrap_or("default");
    let requests = Request::new(K::url_path(&(), Some(namespace)));
    if let Some(patch) = patch {
        let name = event.meta().name.as_deref().unwrap_or_default();
        let params = PatchParams::default();
        let request = requests.patch(name, &params, &Patch::Strategic(patch));
        match client
            .request(request.map_err(kube::Error::BuildRequest)?)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            result => return result,
        }
    }
    let body = serde_json::to_vec(event).map_err(kube::Error::SerdeError)?;
    let request = requests.create(&PostParams::default(), body);
    let request = request.map_err(kube::Error::BuildRequest)?;
    client.request(request).await
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::super::{EventType, Occurrence, Recorder, reference};
    use super::*;
    use crate::testing::TestApi;

    const EVENTS: &str = "/apis/events.k8s.io/v1/events";
    const CORE_EVENTS: &str = "/api/v1/events";

    fn occurrence(note: &str) -> Occurrence {
        let pod = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        Occurrence {
            regarding: reference(&pod),
            related: None,
            event_type: EventType::Warning,
            reason: "FailedScheduling".into(),
            action: "Scheduling".into(),
            note: note.to_owned(),
        }
    }

    async fn until(holds: impl Fn() -> bool) {
        while !holds() {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_series_is_created_then_patched_once() {
        let api = TestApi::default();
        let stop = CancellationToken::new();
        let recorder = Recorder::series(api.client(), "default-scheduler", stop.clone());
        recorder.record(occurrence("first"));
        until(|| api.list(EVENTS).len() == 1).await;
        for _ in 0..3 {
            recorder.record(occurrence("again"));
        }
        until(|| api.requests("PATCH") == 1).await;
        let event = &api.list(EVENTS)[0];
        assert_eq!(event["note"], "first");
        assert_eq!(event["series"]["count"], 2);
        assert_eq!(event["regarding"]["resourceVersion"], "7");
        assert_eq!(event["metadata"]["namespace"], "shop");
        assert_eq!(event["reportingController"], "default-scheduler");
        tokio::time::advance(REFRESH_TIME).await;
        until(|| api.list(EVENTS)[0]["series"]["count"] == 4).await;
        stop.cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_tried_again_when_the_server_cannot_be_reached_but_not_when_it_refuses() {
        let api = TestApi::default();
        let stop = CancellationToken::new();
        let recorder = Recorder::counted(api.client(), "job-controller", stop.clone());
        api.set_fault(|_, _| Some(403));
        recorder.record(occurrence("refused"));
        until(|| api.requests("POST") == 1).await;
        api.set_fault(|_, _| None);
        recorder.record(occurrence("taken"));
        recorder.record(occurrence("taken"));
        until(|| api.requests("PATCH") == 1).await;
        let events = api.list(CORE_EVENTS);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["message"], "taken");
        assert_eq!(events[0]["count"], 2);
        assert_eq!(events[0]["source"]["component"], "job-controller");
        stop.cancel();
    }
}
