//! Watches: streams of changes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use plimsoll_core::object::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::body::{self, Body};
use crate::cache::{Cache, Event, EventType, Object, Watcher, line};
use crate::http::negotiation::{Endpoint, Output, Transform};
use crate::http::query::{ListOptions, include_object, parse_resource_version};
use crate::kinds::Kind;
use crate::machinery::table::{self, IncludeObject, MetaVersion};
use crate::server::request::call::Call;
use crate::server::request::respond::{converted, is_converted, now};
use crate::status::Status;
use crate::store::Revision;

/// The interval of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// A last bookmark is sent this long before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// If many clients watch the same kind, changes of this interval are sent together: a write to a
/// socket costs more than the change itself.
const MANY_WATCHERS: usize = 64;
const GATHER: Duration = Duration::from_millis(20);

impl Call<'_> {
    /// Handles a GET of changes.
    pub(crate) async fn watch(&self, name: Option<&str>) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Watch)?;
        let options = ListOptions::of_watch(self.query, self.kind, name)?;
        let include_object = match output.transform {
            Some((Transform::Table, _)) => include_object(self.query)
                .map_err(|error| Status::bad_request(error.to_string()))?,
            _ => IncludeObject::None,
        };
        let started = self.start(&options).await;
        let view = View {
            kind: self.kind,
            prefix: self.list_prefix(),
            labels: options.label_selector.clone(),
            fields: options.field_selector.clone(),
            output,
            include_object,
            has_sent_headers: false,
        };
        let pieces: Body = match started {
            Ok(start) => {
                let stream = Stream::new(self.server.cache.clone(), view, start, &options);
                let stop = self.server.stopping();
                body::stream(futures::stream::unfold(
                    (stream, stop),
                    |(mut stream, mut stop)| async move {
                        // A server that shuts down ends its watches; clients reconnect elsewhere.
                        let piece = tokio::select! {
                            piece = stream.next() => piece?,
                            _ = stop.wait_for(|stop| *stop) => return None,
                        };
                        Some((piece, (stream, stop)))
                    },
                ))
            }
            Err(StartError::InStream(status)) => body::full(error_line(&status)),
            Err(StartError::AsResponse(status)) => return Err(status),
        };
        let mut response = Response::new(pieces);
        let media_type = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        Ok(response)
    }

    /// The objects that the watch starts with, and the position where it continues.
    async fn start(&self, options: &ListOptions) -> Result<Start, StartError> {
        let collection = self.collection().map_err(StartError::AsResponse)?;
        let version = options.resource_version.as_str();
        // The deprecated form of a watch ignores it.
        let is_from_the_start = matches!(version, "" | "0");
        if options.sends_initial_events.unwrap_or(is_from_the_start) {
            let revision = self
                .wait_until_fresh(version)
                .await
                .map_err(StartError::AsResponse)?;
            let (objects, watcher) = collection.list_and_watch(&self.list_prefix());
            let revision = revision.max(watcher.revision());
            return Ok(Start {
                initial: Some((objects, revision)),
                watcher,
            });
        }
        let revision = match version {
            "" | "0" => self
                .wait_until_fresh(version)
                .await
                .map_err(StartError::AsResponse)?,
            text => parse_resource_version(text)
                .map_err(|error| StartError::AsResponse(Status::unexpected(error.to_string())))?,
        };
        let watcher = collection.watch_after(revision);
        let watcher = watcher
            .map_err(|expired| StartError::InStream(Status::expired(expired.to_string())))?;
        Ok(Start {
            initial: None,
            watcher,
        })
    }
}

/// Where a watch starts.
struct Start {
    initial: Option<(Vec<Arc<Object>>, Revision)>,
    watcher: Watcher,
}

/// Why a watch does not start.
enum StartError {
    /// As a response of its own.
    AsResponse(Status),
    /// As the only event of a stream, as in upstream.
    InStream(Status),
}

/// What one client watches of a kind, and in which format.
struct View {
    kind: &'static Kind,
    prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    output: Output,
    include_object: IncludeObject,
    /// Only the first event of a Table describes the columns.
    has_sent_headers: bool,
}

impl View {
    fn selects(&self, object: &Object) -> bool {
        object.key().starts_with(&self.prefix) && object.matches(&self.labels, &self.fields)
    }

    fn is_plain(&self) -> bool {
        self.output.transform.is_none() && !is_converted(self.kind)
    }

    /// The line for a change, if the selectors match it.
    fn line(&mut self, event: &Event) -> Option<Bytes> {
        let (event_type, object) = event.seen(|object| self.selects(object))?;
        if self.is_plain() {
            return Some(event.line(event_type));
        }
        let object = Arc::clone(object);
        let object = converted(self.kind, object.json()).ok()?;
        Some(self.transformed(event_type.as_str(), object))
    }

    /// The line for an object of the initial list.
    fn initial(&mut self, object: &Object) -> Option<Bytes> {
        if !self.selects(object) {
            return None;
        }
        if self.is_plain() {
            return Some(line(EventType::Added, object.json()));
        }
        let object = converted(self.kind, object.json()).ok()?;
        Some(self.transformed("ADDED", object))
    }

    /// A bookmark, in the format of the objects.
    fn bookmark(&mut self, revision: Revision, is_end_of_initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if is_end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        } else {
            metadata["creationTimestamp"] = Value::Null;
        }
        let mut object = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": metadata,
        });
        if let Some((Transform::Table, version)) = self.output.transform {
            // A bookmark is a row too.
            object = self.table(&object, version);
            object["metadata"] = json!({"resourceVersion": revision.to_string()});
            return text_line("BOOKMARK", &object);
        }
        if self.output.transform.is_some() {
            return self.transformed("BOOKMARK", object);
        }
        text_line("BOOKMARK", &object)
    }

    fn transformed(&mut self, event_type: &str, object: Value) -> Bytes {
        let object = match self.output.transform {
            Some((Transform::Table, version)) => self.table(&object, version),
            Some((_, version)) => table::partial_object_metadata(&object, version),
            None => object,
        };
        text_line(event_type, &object)
    }

    fn table(&mut self, object: &Value, version: MetaVersion) -> Value {
        let options = table::Options {
            now: now(),
            include_object: self.include_object,
            version,
            has_headers: !std::mem::replace(&mut self.has_sent_headers, true),
        };
        table::table(self.kind.group, self.kind.kind, object, &options)
    }
}

fn text_line(event_type: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into()
}

fn error_line(status: &Status) -> Bytes {
    text_line("ERROR", &status.to_json())
}

/// A running watch.
struct Stream {
    cache: Arc<Cache>,
    view: View,
    watcher: Watcher,
    /// Objects of the initial list that are still to be sent, and its revision.
    initial: Option<(std::vec::IntoIter<Arc<Object>>, Revision)>,
    allows_bookmarks: bool,
    next_bookmark: Instant,
    end: Instant,
    has_ended: bool,
}

impl Stream {
    fn new(cache: Arc<Cache>, view: View, start: Start, options: &ListOptions) -> Stream {
        let now = Instant::now();
        let timeout = match options.timeout_secs {
            Some(seconds) if seconds > 0 => {
                // Bounded, so that an absurd number cannot overflow.
                Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(86_400))
            }
            _ => Duration::from_secs(fastrand::u64(1800..3600)),
        };
        let mut stream = Stream {
            cache,
            view,
            watcher: start.watcher,
            initial: start
                .initial
                .map(|(objects, revision)| (objects.into_iter(), revision)),
            allows_bookmarks: options.allows_bookmarks,
            next_bookmark: now,
            end: now + timeout,
            has_ended: false,
        };
        stream.plan_bookmark();
        stream
    }

    fn plan_bookmark(&mut self) {
        let regular = Instant::now() + BOOKMARK_EVERY;
        let last = self.end.checked_sub(LAST_BOOKMARK).unwrap_or(self.end);
        self.next_bookmark = if Instant::now() < last {
            regular.min(last)
        } else {
            // The last bookmark has been sent.
            self.end + BOOKMARK_EVERY
        };
    }

    /// The next chunk of the response; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        if let Some(piece) = self.next_initial() {
            return Some(piece);
        }
        loop {
            let bookmark_at = match self.allows_bookmarks {
                true => self.next_bookmark.min(self.end),
                false => self.end,
            };
            tokio::select! {
                batch = self.watcher.next() => {
                    let Ok(mut batch) = batch else {
                        self.has_ended = true;
                        let text = "too old resource version: the watch was too slow";
                        return Some(error_line(&Status::expired(text)));
                    };
                    if self.watcher.watchers_of_kind() > MANY_WATCHERS {
                        tokio::time::sleep(GATHER).await;
                        batch.extend(self.watcher.poll().unwrap_or_default());
                    }
                    let mut lines: Vec<Bytes> =
                        batch.iter().filter_map(|event| self.view.line(event)).collect();
                    match lines.len() {
                        0 => {}
                        1 => return lines.pop(),
                        _ => return Some(joined(&lines)),
                    }
                }
                () = tokio::time::sleep_until(bookmark_at) => {
                    if Instant::now() >= self.end {
                        return None;
                    }
                    self.plan_bookmark();
                    if let Some(piece) = self.bookmark() {
                        return Some(piece);
                    }
                }
            }
        }
    }

    /// A batch of the initial list, then the bookmark that ends it.
    fn next_initial(&mut self) -> Option<Bytes> {
        const PIECE: usize = 64 * 1024;
        let (objects, revision) = self.initial.as_mut()?;
        let mut piece = BytesMut::new();
        for object in objects.by_ref() {
            if let Some(line) = self.view.initial(&object) {
                piece.extend_from_slice(&line);
            }
            if piece.len() >= PIECE {
                return Some(piece.freeze());
            }
        }
        let revision = *revision;
        self.initial = None;
        if self.allows_bookmarks {
            piece.extend_from_slice(&self.view.bookmark(revision, true));
        }
        (!piece.is_empty()).then(|| piece.freeze())
    }

    /// A bookmark after everything that has been sent. Changes that arrived in the meantime are
    /// sent first.
    fn bookmark(&mut self) -> Option<Bytes> {
        let revision = self.cache.revision();
        let mut lines: Vec<Bytes> = Vec::new();
        loop {
            let batch = self.watcher.poll().ok()?;
            if batch.is_empty() {
                break;
            }
            lines.extend(batch.iter().filter_map(|event| self.view.line(event)));
        }
        let sent = revision.max(self.watcher.revision());
        lines.push(self.view.bookmark(sent, false));
        Some(joined(&lines))
    }
}

fn joined(lines: &[Bytes]) -> Bytes {
    let mut piece = BytesMut::with_capacity(lines.iter().map(Bytes::len).sum());
    for line in lines {
        piece.extend_from_slice(line);
    }
    piece.freeze()
}
