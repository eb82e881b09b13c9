//! Watching objects of a kind: all there are, then every change, without end.
//!
//! Objects come without `managedFields`, which no loop reads. One that cannot be read is skipped
//! with a warning and counted; the others are still delivered. Its deletion is passed on, so that
//! no loop keeps its last readable state.
//!
//! Reading order: this file (requests), `raw_object` (objects as the server wrote them),
//! `unmanaged` (reading them), `unreadable` (counters).

mod raw_object;
mod unmanaged;
mod unreadable;

use std::pin::Pin;

use futures::{Stream, StreamExt};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, watcher as kube_watcher};
use kube::{Api, Resource};

use raw_object::{Collection, RawObject, Text};
pub use unreadable::metrics;

/// Watches objects of a kind. The first list comes as a stream, so that neither side holds it as
/// one list. From a server that refuses to, or never ends that stream, it is listed page by page
/// instead. Errors are logged, and the request is retried with backoff.
pub fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let objects = api.resource_url().to_owned();
    watch_with_errors(api, config.streaming_lists()).filter_map(move |event| {
        if let Err(error) = &event {
            tracing::warn!(objects, %error, "watch interrupted");
        }
        std::future::ready(event.ok())
    })
}

/// As [`watch`], listing by `config`, with errors among the events and not in the log.
pub fn watch_with_errors<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let collection = Collection(api.resource_url().to_owned());
    let objects = collection.0.clone();
    let client = api.into_client();
    let texts: Texts = match K::metadata_api() {
        true => texts(
            Api::<RawObject<true>>::all_with(client, &collection),
            config,
        ),
        false => texts(
            Api::<RawObject<false>>::all_with(client, &collection),
            config,
        ),
    };
    texts.filter_map(move |event| {
        let event = event.map(|event| match event {
            Event::Delete(text) => read_deleted(&text, &objects).map(Event::Delete),
            event => with_object(event, |text| read(&text, &objects)),
        });
        std::future::ready(event.transpose())
    })
}

/// Lists the objects of a kind that can be read.
///
/// # Errors
///
/// If the server does not answer, or refuses.
pub async fn list<K>(api: Api<K>, params: &ListParams) -> kube::Result<Vec<K>>
where
    K: Resource + DeserializeOwned,
{
    let collection = Collection(api.resource_url().to_owned());
    let raw_object = Api::<RawObject<false>>::all_with(api.into_client(), &collection);
    let listed = raw_object.list(params).await?;
    let objects = listed.items.iter();
    Ok(objects
        .filter_map(|object| read(&object.text, &collection.0))
        .collect())
}

/// Waits until `condition` holds for the object of that name, or for its absence, and returns it.
pub async fn wait_for<K>(
    api: Api<K>,
    name: &str,
    condition: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watch(api, config));
    let mut listed = None;
    while let Some(event) = events.next().await {
        let object = match event {
            Event::Init => {
                listed = None;
                continue;
            }
            Event::InitApply(object) => {
                listed = Some(object);
                continue;
            }
            Event::InitDone => listed.take(),
            Event::Apply(object) => Some(object),
            Event::Delete(_) => None,
        };
        if condition(object.as_ref()) {
            return object;
        }
    }
    None
}

/// The object, unless it cannot be read.
fn read<K: DeserializeOwned>(text: &Text, objects: &str) -> Option<K> {
    let object = text.read();
    if let Err(error) = &object {
        unreadable::leave_out(text, objects, error);
    }
    object.ok()
}

/// The object that is gone: its name at least, for an earlier state of it may have been read.
fn read_deleted<K: DeserializeOwned>(text: &Text, objects: &str) -> Option<K> {
    let object = text.read().or_else(|_| text.read_identity());
    if let Err(error) = &object {
        unreadable::leave_out(text, objects, error);
    }
    object.ok()
}

/// The event with its object converted by `make`; nothing if that returns nothing.
fn with_object<A, B>(event: Event<A>, make: impl FnOnce(A) -> Option<B>) -> Option<Event<B>> {
    Some(match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(make(object)?),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(make(object)?),
        Event::Delete(object) => Event::Delete(make(object)?),
    })
}

type Texts = Pin<Box<dyn Stream<Item = watcher::Result<Event<Text>>> + Send>>;

fn texts<const METADATA: bool>(api: Api<RawObject<METADATA>>, config: watcher::Config) -> Texts {
    let state = Watching {
        stream: start(&api, &config),
        api,
        config,
        progress: Progress::Nothing,
    };
    let texts = futures::stream::unfold(state, |mut state| async move {
        loop {
            let event = match state.stream.next().await? {
                Ok(event) if state.is_repeated_init(&event) => {
                    state.list_by_pages();
                    continue;
                }
                Err(error) if state.is_refused_streaming(&error) => {
                    state.list_by_pages();
                    continue;
                }
                event => event,
            };
            let text = |object: RawObject<METADATA>| Some(object.text);
            match event.map(|event| with_object(event, text)).transpose() {
                Some(event) => return Some((event, state)),
                None => continue,
            }
        }
    });
    Box::pin(texts)
}

type Events<K> = Pin<Box<dyn Stream<Item = watcher::Result<Event<K>>> + Send>>;

struct Watching<const METADATA: bool> {
    api: Api<RawObject<METADATA>>,
    config: watcher::Config,
    stream: Events<RawObject<METADATA>>,
    progress: Progress,
}

/// The progress of the first list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Begun,
    Done,
}

impl<const METADATA: bool> Watching<METADATA> {
    /// True for the second start of a first list that is streamed: the server does not end the
    /// stream.
    fn is_repeated_init(&mut self, event: &Event<RawObject<METADATA>>) -> bool {
        let before = self.progress;
        match event {
            Event::Init if before != Progress::Done => self.progress = Progress::Begun,
            Event::InitDone => self.progress = Progress::Done,
            _ => return false,
        }
        let begins_again = before == Progress::Begun && self.progress == Progress::Begun;
        begins_again && self.is_streaming()
    }

    fn is_refused_streaming(&self, error: &watcher::Error) -> bool {
        let is_refused =
            self.is_streaming() && self.progress != Progress::Done && is_refusal(error);
        if is_refused {
            let objects = self.api.resource_url();
            tracing::info!(
                objects, %error, "server does not support streaming lists, listing in pages"
            );
        }
        is_refused
    }

    fn is_streaming(&self) -> bool {
        self.config.initial_list_strategy == InitialListStrategy::StreamingList
    }

    fn list_by_pages(&mut self) {
        self.config.initial_list_strategy = InitialListStrategy::ListWatch;
        self.stream = start(&self.api, &self.config);
    }
}

fn start<const METADATA: bool>(
    api: &Api<RawObject<METADATA>>,
    config: &watcher::Config,
) -> Events<RawObject<METADATA>> {
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
    use kube::api::DeleteParams;
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn waits_for_one_object() {
        let api = TestApi::default();
        let namespace = |label: &str| json!({"metadata": {"name": "a", "labels": {"is": label}}});
        api.put("/api/v1/namespaces/a", namespace("young"));
        let namespaces = || Api::<Namespace>::all(api.client());
        let is = |label: &'static str| {
            move |namespace: Option<&Namespace>| {
                let labels = namespace.and_then(|namespace| namespace.metadata.labels.as_ref());
                labels.is_some_and(|labels| labels["is"] == label)
            }
        };
        assert!(wait_for(namespaces(), "a", is("young")).await.is_some());
        let old = tokio::spawn(wait_for(namespaces(), "a", is("old")));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        api.put("/api/v1/namespaces/a", namespace("old"));
        assert!(old.await.unwrap().is_some());
        let gone = wait_for(namespaces(), "a", |namespace| namespace.is_none());
        let remove = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let deleted = namespaces().delete("a", &DeleteParams::default()).await;
            assert!(deleted.is_ok());
        };
        assert!(futures::join!(gone, remove).0.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_object_hides_no_other() {
        let api = TestApi::default();
        for name in ["a", "b", "c"] {
            let path = format!("/api/v1/namespaces/{name}");
            let labels = match name {
                "b" => json!(7),
                _ => json!({"is": name}),
            };
            api.put(&path, json!({"metadata": {"name": name, "labels": labels}}));
        }
        assert_eq!(listed(&api).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_object_is_counted_left_out_and_its_deletion_seen() {
        let api = TestApi::default();
        let put = |name: &str, labels: serde_json::Value| {
            let path = format!("/api/v1/namespaces/{name}");
            api.put(
                &path,
                json!({"metadata": {"name": name, "uid": name, "labels": labels}}),
            );
        };
        put("a", json!({"is": "readable"}));
        put("b", json!(7));
        let namespaces: Api<Namespace> = Api::all(api.client());
        let before = unreadable::count_of("namespaces");
        let listed = list(namespaces.clone(), &ListParams::default())
            .await
            .unwrap();
        assert_eq!(listed.len(), 1);
        let mut events = std::pin::pin!(watch(namespaces.clone(), watcher::Config::default()));
        while !matches!(events.next().await, Some(Event::InitDone)) {}
        put("a", json!(7));
        put("c", json!({"is": "readable"}));
        let Some(Event::Apply(seen)) = events.next().await else {
            panic!("the readable one is seen");
        };
        assert_eq!(seen.metadata.name.as_deref(), Some("c"));
        assert!(unreadable::count_of("namespaces") >= before + 3);
        // The answer is the object, which cannot be read either.
        let _ = namespaces.delete("a", &DeleteParams::default()).await;
        let Some(Event::Delete(gone)) = events.next().await else {
            panic!("its deletion is seen");
        };
        assert_eq!(gone.metadata.name.as_deref(), Some("a"));
        assert_eq!(gone.metadata.uid.as_deref(), Some("a"));
    }

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
