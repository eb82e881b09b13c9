//! Watching objects of a kind: all there are, then every change, without end.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, watcher as kube_watcher};
use kube::{Api, Resource};

/// Watches objects of a kind. The first list comes as a stream, which neither side has to hold as
/// one list. A server that refuses to, or never ends that stream, is listed page by page instead.
/// What goes wrong is logged and tried again, with patience.
pub fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let config = config.streaming_lists();
    let state = Watching {
        stream: start(&api, &config),
        api,
        config,
        progress: Progress::Nothing,
    };
    futures::stream::unfold(state, |mut state| async move {
        loop {
            match state.stream.next().await? {
                Ok(event) if state.is_worth_telling(&event) => return Some((event, state)),
                Ok(_) => state.list_by_pages(),
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
    progress: Progress,
}

/// How far the first list has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Begun,
    Done,
}

impl<K> Watching<K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    /// False for the second beginning of a first list that is streamed: the server does not know
    /// how to end it.
    fn is_worth_telling(&mut self, event: &Event<K>) -> bool {
        let before = self.progress;
        match event {
            Event::Init if before != Progress::Done => self.progress = Progress::Begun,
            Event::InitDone => self.progress = Progress::Done,
            _ => return true,
        }
        let begins_again = before == Progress::Begun && self.progress == Progress::Begun;
        !(begins_again && self.is_streaming())
    }

    fn note(&mut self, error: &watcher::Error) {
        let objects = self.api.resource_url();
        if self.is_streaming() && self.progress != Progress::Done && is_refusal(error) {
            tracing::info!(objects, %error, "server does not stream lists, listing by pages");
            self.list_by_pages();
        } else {
            tracing::warn!(objects, %error, "watch interrupted");
        }
    }

    fn is_streaming(&self) -> bool {
        self.config.initial_list_strategy == InitialListStrategy::StreamingList
    }

    fn list_by_pages(&mut self) {
        self.config.initial_list_strategy = InitialListStrategy::ListWatch;
        self.stream = start(&self.api, &self.config);
    }
}

fn start<K>(api: &Api<K>, config: &watcher::Config) -> Events<K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let stream = kube_watcher(api.clone(), config.clone());
    Box::pin(stream.default_backoff())
}

/// Whether the server answered, and said no. Why does not matter: servers whose store cannot do it
/// say so with a 500.
fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchError(_) => true,
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            matches!(error, kube::Error::Api(_))
        }
        watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion => false,
    }
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
        let mut requests = 1;
        for refusal in [400, 422, 500] {
            let mut is_first = true;
            api.set_fault(move |_, _| std::mem::take(&mut is_first).then_some(refusal));
            assert_eq!(listed(&api).await, 1);
            requests += 2;
            assert_eq!(api.requests("GET"), requests, "after {refusal}");
        }
    }
}
