//! Clients that write, read and watch without pause, and record the responses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::history::{
    Change, Content, Event, History, Outcome, Read, Revision, Time, Watch, Write,
};

/// Objects of each writer, which no other writes: each knows what its objects may hold.
const OBJECTS: usize = 4;

/// All objects of a run have it, and nothing else has.
const LABEL: &str = "run=faults";

/// The object that is written last.
const LAST: &str = "last";

/// Above the timeouts inside of the server; an unanswered request may still take effect.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long what is left may take when all faults are over.
const END_WITHIN: Duration = Duration::from_secs(90);

const RETRY_AFTER: Duration = Duration::from_millis(20);

/// What all clients of a run note down in.
pub(crate) struct Journal {
    began: Instant,
    next: AtomicU64,
    stopping: AtomicBool,
    noted: Mutex<(Vec<Write>, Vec<Read>)>,
}

impl Journal {
    fn now(&self) -> Time {
        self.began.elapsed()
    }
}

/// Load on a server that runs.
pub(crate) struct Load {
    client: Client,
    journal: Arc<Journal>,
    writers: Vec<tokio::task::JoinHandle<()>>,
    watchers: Vec<tokio::task::JoinHandle<Vec<Watch>>>,
    end: tokio::sync::watch::Sender<Revision>,
}

impl Load {
    pub(crate) async fn start(client: Client, writers: usize, watchers: usize) -> Load {
        let journal = Arc::new(Journal {
            began: Instant::now(),
            next: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            noted: Mutex::default(),
        });
        let (end, seen) = tokio::sync::watch::channel(Revision::MAX);
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let first = list(&api).await;
        let watch = |_| tokio::spawn(watch(api.clone(), first.clone(), seen.clone()));
        let watchers = (0..watchers).map(watch).collect();
        let write = |number| {
            let writer = Writer::new(&client, &journal, &format!("w{number}"));
            tokio::spawn(writer.write_until_stopped())
        };
        let writers = (0..writers).map(write).collect();
        Load {
            client,
            journal,
            writers,
            watchers,
            end,
        }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        let noted = self.journal.noted.lock().unwrap();
        let is_acknowledged = |write: &&Write| matches!(write.outcome, Outcome::Acknowledged(_));
        noted.0.iter().filter(is_acknowledged).count()
    }

    /// Ends the load; everything works by now.
    pub(crate) async fn finish(self) -> History {
        let finished = tokio::time::timeout(END_WITHIN, self.finish_all()).await;
        finished.expect("writers and watches end when no fault is left")
    }

    async fn finish_all(self) -> History {
        self.journal.stopping.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await.unwrap();
        }
        let mut last = Writer::new(&self.client, &self.journal, LAST);
        let revision = last.create_last().await;
        self.end.send_replace(revision);
        let mut watchers = Vec::new();
        for watcher in self.watchers {
            watchers.push(watcher.await.unwrap());
        }
        let api: Api<ConfigMap> = Api::default_namespaced(self.client);
        let noted = std::mem::take(&mut *self.journal.noted.lock().unwrap());
        History {
            writes: noted.0,
            reads: noted.1,
            watchers,
            objects: list(&api).await.listed,
        }
    }
}

/// A watch that is about to begin. Tried until it works.
async fn list(api: &Api<ConfigMap>) -> Watch {
    let params = ListParams::default().labels(LABEL);
    let list = loop {
        match tokio::time::timeout(PATIENCE, api.list(&params)).await {
            Ok(Ok(list)) => break list,
            _ => tokio::time::sleep(RETRY_AFTER).await,
        }
    };
    let listed = list.items.iter();
    let listed = listed.map(|object| (object.name_any(), (revision(object), content(object))));
    Watch {
        listed: listed.collect(),
        from: list.metadata.resource_version.unwrap().parse().unwrap(),
        events: Vec::new(),
    }
}

fn content(object: &ConfigMap) -> Content {
    object.data.as_ref().unwrap()["n"].parse().unwrap()
}

fn revision(object: &ConfigMap) -> Revision {
    object.resource_version().unwrap().parse().unwrap()
}

/// What a writer knows of an object of its own.
#[derive(Clone, Copy)]
enum Known {
    /// It holds that, at that revision; or it is not there.
    State(Option<Revision>),
    /// A write has an open end.
    Nothing,
}

struct Writer {
    api: Api<ConfigMap>,
    journal: Arc<Journal>,
    name: String,
    known: BTreeMap<String, Known>,
}

impl Writer {
    fn new(client: &Client, journal: &Arc<Journal>, name: &str) -> Writer {
        Writer {
            api: Api::default_namespaced(client.clone()),
            journal: Arc::clone(journal),
            name: name.to_owned(),
            known: BTreeMap::new(),
        }
    }

    async fn write_until_stopped(mut self) {
        while !self.journal.stopping.load(Ordering::Relaxed) {
            let object = format!("{}-{}", self.name, fastrand::usize(0..OBJECTS));
            let known = self.known.get(&object).copied();
            let known = known.unwrap_or(Known::State(None));
            let base = match known {
                Known::State(base) if fastrand::u8(0..10) > 0 => base,
                _ => {
                    self.read(&object).await;
                    continue;
                }
            };
            let change = match base {
                None => Change::Create(self.next()),
                Some(_) if fastrand::u8(0..5) == 0 => Change::Delete,
                Some(_) => Change::Update(self.next()),
            };
            self.write(&object, change, base).await;
        }
    }

    /// Writes the object that ends the run, however long it takes.
    async fn create_last(&mut self) -> Revision {
        loop {
            let change = Change::Create(self.next());
            if let Outcome::Acknowledged(Some(revision)) = self.write(LAST, change, None).await {
                return revision;
            }
            if let Some(revision) = self.read(LAST).await {
                return revision;
            }
        }
    }

    fn next(&self) -> Content {
        self.journal.next.fetch_add(1, Ordering::Relaxed)
    }

    async fn read(&mut self, object: &str) -> Option<Revision> {
        let started = self.journal.now();
        let answer = tokio::time::timeout(PATIENCE, self.api.get_opt(object)).await;
        let Ok(Ok(found)) = answer else {
            tokio::time::sleep(RETRY_AFTER).await;
            return None;
        };
        let found = found.map(|object| (revision(&object), content(&object)));
        let at = found.map(|(revision, _)| revision);
        self.known.insert(object.to_owned(), Known::State(at));
        self.journal.noted.lock().unwrap().1.push(Read {
            object: object.to_owned(),
            started,
            found,
        });
        at
    }

    async fn write(&mut self, object: &str, change: Change, base: Option<Revision>) -> Outcome {
        let started = self.journal.now();
        let answer = tokio::time::timeout(PATIENCE, self.ask(object, change, base)).await;
        let outcome = match answer {
            Ok(Ok(revision)) => Outcome::Acknowledged(revision),
            Ok(Err(kube::Error::Api(status))) if status.code < 500 => Outcome::Refused,
            _ => Outcome::Unknown,
        };
        let known = match outcome {
            Outcome::Acknowledged(revision) => Known::State(revision),
            Outcome::Refused | Outcome::Unknown => Known::Nothing,
        };
        self.known.insert(object.to_owned(), known);
        self.journal.noted.lock().unwrap().0.push(Write {
            object: object.to_owned(),
            change,
            base,
            started,
            ended: self.journal.now(),
            outcome,
        });
        if outcome == Outcome::Unknown {
            tokio::time::sleep(RETRY_AFTER).await;
        }
        outcome
    }

    async fn ask(
        &self,
        object: &str,
        change: Change,
        base: Option<Revision>,
    ) -> Result<Option<Revision>, kube::Error> {
        let version = base.map(|revision| revision.to_string());
        let desired = |content: Content| {
            let (key, value) = LABEL.split_once('=').unwrap();
            let metadata = json!({
                "name": object, "labels": {key: value}, "resourceVersion": version,
            });
            let data = json!({"n": content.to_string(), "padding": "x".repeat(500)});
            serde_json::from_value(json!({"metadata": metadata, "data": data})).unwrap()
        };
        let params = PostParams::default();
        let written = match change {
            Change::Create(content) => self.api.create(&params, &desired(content)).await?,
            Change::Update(content) => self.api.replace(object, &params, &desired(content)).await?,
            Change::Delete => {
                let preconditions = Preconditions {
                    resource_version: version.clone(),
                    uid: None,
                };
                let params = DeleteParams::default().preconditions(preconditions);
                self.api.delete(object, &params).await?;
                return Ok(None);
            }
        };
        Ok(Some(revision(&written)))
    }
}

/// Follows all objects until a revision is reached. A watch that ends is taken up where it was, or begun
/// anew if the server demands that.
async fn watch(
    api: Api<ConfigMap>,
    first: Watch,
    end: tokio::sync::watch::Receiver<Revision>,
) -> Vec<Watch> {
    let mut watches = vec![first];
    loop {
        let watch = watches.last_mut().expect("there is one from the start");
        match follow(&api, watch, &end).await {
            Followed::ToTheEnd => return watches,
            Followed::UntilItBroke => tokio::time::sleep(RETRY_AFTER).await,
            Followed::UntilItExpired => watches.push(list(&api).await),
        }
    }
}

enum Followed {
    ToTheEnd,
    UntilItBroke,
    UntilItExpired,
}

const GONE: u16 = 410;

async fn follow(
    api: &Api<ConfigMap>,
    watch: &mut Watch,
    end: &tokio::sync::watch::Receiver<Revision>,
) -> Followed {
    let last = watch.events.last();
    let mut reached = last.map_or(watch.from, |event| event.revision);
    let params = WatchParams::default().labels(LABEL).disable_bookmarks();
    let mut stream = match api.watch(&params, &reached.to_string()).await {
        Ok(stream) => Box::pin(stream),
        Err(kube::Error::Api(status)) if status.code == GONE => return Followed::UntilItExpired,
        Err(_) => return Followed::UntilItBroke,
    };
    loop {
        if reached >= *end.borrow() {
            return Followed::ToTheEnd;
        }
        // Looks up now and then, since the end may be known only after the last event.
        let next = tokio::time::timeout(Duration::from_secs(1), stream.try_next()).await;
        let (object, is_there) = match next {
            Err(_) | Ok(Ok(Some(WatchEvent::Bookmark(_)))) => continue,
            Ok(Ok(Some(WatchEvent::Added(o) | WatchEvent::Modified(o)))) => (o, true),
            Ok(Ok(Some(WatchEvent::Deleted(o)))) => (o, false),
            Ok(Ok(Some(WatchEvent::Error(status)))) if status.code == GONE => {
                return Followed::UntilItExpired;
            }
            Ok(Ok(Some(WatchEvent::Error(_)) | None) | Err(_)) => return Followed::UntilItBroke,
        };
        reached = revision(&object);
        watch.events.push(Event {
            revision: reached,
            object: object.name_any(),
            content: is_there.then(|| content(&object)),
        });
    }
}
