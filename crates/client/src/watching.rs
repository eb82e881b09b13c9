//! Watching objects of a kind: all there are, then every change, without end.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, watcher as kube_watcher};
use kube::{Api, Resource};

/// Watches objects of a kind. The first list comes as a stream where the server can do that, and
/// page by page where it cannot. What goes wrong is logged and tried again, with patience.
pub fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let config = config.streaming_lists();
    let state = Watching {
        stream: start(&api, &config),
        api,
        config,
    };
    futures::stream::unfold(state, |mut state| async move {
        loop {
            match state.stream.next().await? {
                Ok(event) => return Some((event, state)),
                Err(error) => state.note(&error),
            }
        }
    })
}

type Events<K> = Pin<Box<dyn Stream<Item = watcher::Result<Event<K>>> + Send>>;

struct Watching<K> {
    api: Api<K>,
    config: watcher::Config,
    stream: Events<K>,
}

impl<K> Watching<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    fn note(&mut self, error: &watcher::Error) {
        let is_streaming = self.config.initial_list_strategy == InitialListStrategy::StreamingList;
        if is_streaming && is_refused(error) {
            let kind = K::kind(&());
            tracing::info!(%kind, "server does not stream lists, listing by pages");
            self.config.initial_list_strategy = InitialListStrategy::ListWatch;
            self.stream = start(&self.api, &self.config);
        } else {
            tracing::warn!(kind = %K::kind(&()), %error, "watch interrupted");
        }
    }
}

fn start<K>(api: &Api<K>, config: &watcher::Config) -> Events<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let stream = kube_watcher(api.clone(), config.clone());
    Box::pin(stream.default_backoff())
}

/// Whether the server refuses what it is asked for, as those do that cannot stream lists.
fn is_refused(error: &watcher::Error) -> bool {
    let status = match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status,
        watcher::Error::WatchError(status) => status,
        _ => return false,
    };
    matches!(status.code, 400 | 422)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestApi;
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::json;

    async fn listed(api: &TestApi) -> usize {
        let namespaces: Api<Namespace> = Api::all(api.client());
        let events = watch(namespaces, watcher::Config::default());
        let mut events = std::pin::pin!(events);
        let mut listed = 0;
        loop {
            match events.next().await.unwrap() {
                Event::InitApply(_) => listed += 1,
                Event::InitDone => return listed,
                _ => {}
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_streamed_or_paged_as_the_server_can() {
        let api = TestApi::default();
        api.put("/api/v1/namespaces/a", json!({"metadata": {}}));
        assert_eq!(listed(&api).await, 1);
        assert_eq!(api.requests("GET"), 1);
        let mut is_first = true;
        api.set_fault(move |_, _| std::mem::take(&mut is_first).then_some(422));
        assert_eq!(listed(&api).await, 1);
        assert_eq!(api.requests("GET"), 3);
    }
}
