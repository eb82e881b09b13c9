//! Reading one object and many.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use plimsoll_core::error_chain::error_chain;
use serde_json::{Value, json};

use crate::body::{self, Body};
use crate::cache::{Collection, Object, TooLargeResourceVersion};
use crate::http::negotiation::{Endpoint, Format};
use crate::http::query::{ContinueToken, ListOptions, VersionMatch, parse_resource_version};
use crate::kinds::Kind;
use crate::server::limits::RequestKind;
use crate::server::request::blocking::{LONG_LIST, run_blocking};
use crate::server::request::call::Call;
use crate::server::request::respond::{converted, is_converted};
use crate::status::{Cause, Details, Status};
use crate::store::{Error, RangeRequest, Revision};

/// Lists are sent in chunks of about this size.
const PIECE: usize = 64 * 1024;

/// A page of objects.
#[derive(Debug)]
pub(crate) struct Page {
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// The revision they were read at.
    pub revision: Revision,
    /// The key at which the next page starts; empty on the last page.
    pub continue_token: String,
    /// The number of remaining objects; known only without selectors.
    pub remaining: Option<u64>,
}

impl Call<'_> {
    /// Handles a GET of one object.
    pub(crate) async fn get(&self) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let object = self.stored(self.query.first("resourceVersion").unwrap_or_default());
        let object = object.await?;
        self.object_as(200, object.json(), output)
    }

    /// The object that the path names, no older than `version`; if that is empty, the latest.
    pub(crate) async fn stored(&self, version: &str) -> Result<Arc<Object>, Status> {
        let collection = self.collection()?;
        self.wait_until_fresh(version).await?;
        let key = self.key();
        collection
            .get(&key)
            .ok_or_else(|| match collection.unreadable(&key) {
                Some(_) => Status::unreadable(&format!("{}{key}", collection.prefix())),
                None => Status::not_found(self.kind, &self.target.name),
            })
    }

    /// The collection of the request's kind.
    pub(crate) fn collection(&self) -> Result<&Arc<Collection>, Status> {
        let collection = self.server.cache.collection(self.kind);
        collection.ok_or_else(Status::method_not_allowed)
    }

    /// Waits until the cache is fresh enough; returns its revision.
    pub(crate) async fn wait_until_fresh(&self, version: &str) -> Result<Revision, Status> {
        let cache = &self.server.cache;
        let wanted = match version {
            "" => {
                let current = self.server.store.current_revision().await;
                current.map_err(|error| store_failure(&error))?
            }
            "0" => 0,
            text => parse_resource_version(text).map_err(|error| {
                Status::bad_request(format!("invalid resource version: {error}"))
            })?,
        };
        cache
            .wait_for(wanted)
            .await
            .map_err(too_large_resource_version)
    }

    /// Handles a GET of many objects.
    pub(crate) async fn list(&self) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let options = ListOptions::from_query(self.query, self.kind, None)?;
        let page = self.page(&options).await?;
        let is_plain = output.transform.is_none() && output.format == Format::Json;
        let is_long = page.objects.len() > LONG_LIST;
        if is_plain && !is_converted(self.kind) && !output.is_pretty && !self.is_pretty() {
            if !is_long {
                return Ok(streamed(self.kind, page));
            }
            // The objects stay in memory until the client has read them.
            let seat = self.enter(RequestKind::Response).await?;
            let answer = streamed(self.kind, page);
            return Ok(answer.map(|body| body::with(body, seat)));
        }
        let built = || {
            let list = self.list_value(&page);
            self.value_as(200, &list, output)
        };
        if !is_long {
            return built();
        }
        let _seat = self.enter(RequestKind::List).await?;
        run_blocking(built)
    }

    /// A page as one value.
    pub(crate) fn list_value(&self, page: &Page) -> Value {
        let items = page.objects.iter().filter_map(|object| {
            let mut item = converted(self.kind, object.json()).ok()?;
            if let Some(fields) = item.as_object_mut() {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
            Some(item)
        });
        let items: Vec<Value> = items.collect();
        json!({
            "kind": self.kind.list_kind(),
            "apiVersion": self.kind.api_version(),
            "metadata": metadata(page),
            "items": items,
        })
    }

    /// The page that the options select.
    pub(crate) async fn page(&self, options: &ListOptions) -> Result<Page, Status> {
        if !options.continue_token.is_empty() {
            return self.next_page(options).await;
        }
        let version = options.resource_version.as_str();
        if options.version_match == Some(VersionMatch::Exact)
            || is_exact_by_default(options, version)
        {
            let revision = parse_resource_version(version).map_err(|error| {
                Status::bad_request(format!("invalid resource version: {error}"))
            })?;
            return self.page_at(options, Some(revision), None).await;
        }
        let collection = self.collection()?;
        let revision = self.wait_until_fresh(version).await?;
        let (objects, revision) = collection.list_at(&self.list_prefix(), revision);
        Ok(self.cut(objects, revision, options))
    }

    /// A later page, read from the store's history at the revision of the first page.
    async fn next_page(&self, options: &ListOptions) -> Result<Page, Status> {
        let token = ContinueToken::decode(&options.continue_token)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let revision = u64::try_from(token.resource_version).ok();
        self.page_at(options, revision, Some(&token.start_key))
            .await
    }

    async fn page_at(
        &self,
        options: &ListOptions,
        at: Option<Revision>,
        start: Option<&str>,
    ) -> Result<Page, Status> {
        let collection = self.collection()?;
        let prefix = format!("{}{}", collection.prefix(), self.list_prefix());
        let mut request = RangeRequest {
            at,
            start: start.map(|start| format!("{prefix}{start}").into()),
            ..RangeRequest::prefix(prefix)
        };
        // With selectors, the number of entries to read for a page is unknown.
        if options.selects_everything() {
            request.limit = usize::try_from(options.limit)
                .ok()
                .filter(|limit| *limit > 0);
        }
        let page = self.server.store.range(request).await;
        let page = page.map_err(|error| self.list_failure(&error, at, start))?;
        let skip = collection.prefix().len();
        let objects = page.entries.iter().filter_map(|entry| {
            let key = std::str::from_utf8(&entry.key).ok()?;
            let object = collection.read(key.get(skip..)?.into(), entry);
            object.ok().map(Arc::new)
        });
        let objects: Vec<Arc<Object>> = match page.entries.len() > LONG_LIST {
            true => run_blocking(|| objects.collect()),
            false => objects.collect(),
        };
        let mut cut = self.cut(objects, page.revision, options);
        // The last key of the page, whether or not its object can be decoded.
        let last = page.entries.last().filter(|_| page.remaining > 0);
        let last = last.and_then(|entry| std::str::from_utf8(entry.key.get(skip..)?).ok());
        if let Some(last) = last {
            cut.continue_token = self.token_after(last, page.revision);
            cut.remaining = Some(page.remaining);
        }
        Ok(cut)
    }

    /// Applies the selectors and the limit.
    fn cut(&self, objects: Vec<Arc<Object>>, revision: Revision, options: &ListOptions) -> Page {
        let limit = usize::try_from(options.limit)
            .ok()
            .filter(|limit| *limit > 0);
        let limit = limit.unwrap_or(usize::MAX);
        let total = objects.len();
        let mut page = Page {
            objects: Vec::new(),
            revision,
            continue_token: String::new(),
            remaining: None,
        };
        for (at, object) in objects.into_iter().enumerate() {
            if !object.matches(&options.label_selector, &options.field_selector) {
                continue;
            }
            if page.objects.len() == limit {
                // As in upstream, a page ends when the next object is found, not when it is full.
                if let Some(last) = page.objects.last() {
                    page.continue_token = self.token_after(last.key(), revision);
                    let left = (total - at) as u64;
                    page.remaining = options.selects_everything().then_some(left);
                }
                break;
            }
            page.objects.push(object);
        }
        page
    }

    fn token_after(&self, last: &str, revision: Revision) -> String {
        let prefix = self.list_prefix();
        let key = last.strip_prefix(prefix.as_str()).unwrap_or(last);
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        ContinueToken::after(key, revision).encode()
    }

    fn list_failure(&self, error: &Error, at: Option<Revision>, start: Option<&str>) -> Status {
        match (error, start) {
            (Error::Compacted { .. }, Some(start)) => {
                // The client may continue with the current state, knowing that it is an
                // inconsistent list.
                let token = ContinueToken {
                    resource_version: -1,
                    start_key: start.to_owned(),
                };
                Status {
                    continue_token: token.encode(),
                    ..Status::expired(INCONSISTENT)
                }
            }
            (Error::Compacted { .. }, None) => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            (Error::FutureRevision { requested }, _) => {
                too_large_resource_version(TooLargeResourceVersion {
                    wanted: at.unwrap_or(*requested),
                    current: self.server.cache.revision(),
                })
            }
            _ => store_failure(error),
        }
    }
}

const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue \
    token in this response to retrieve the remainder of the results. Continuing with the provided \
    token results in an inconsistent list - objects that were created, modified, or deleted \
    between the time the first chunk was returned and now may show up in the list.";

/// A limited list at a given version is read at exactly that version, as upstream does.
fn is_exact_by_default(options: &ListOptions, version: &str) -> bool {
    options.version_match.is_none() && options.limit > 0 && !matches!(version, "" | "0")
}

fn metadata(page: &Page) -> Value {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if !page.continue_token.is_empty() {
        metadata["continue"] = json!(page.continue_token);
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    metadata
}

/// The list in chunks, assembled from the bytes of its objects while it is sent.
fn streamed(kind: &Kind, page: Page) -> Response<Body> {
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
        json!(kind.list_kind()),
        json!(kind.api_version()),
        metadata(&page),
    );
    let mut rest = page.objects.into_iter().enumerate();
    let mut head = Some(head);
    let mut is_done = false;
    let pieces = std::iter::from_fn(move || {
        if is_done {
            return None;
        }
        let mut piece = BytesMut::with_capacity(PIECE);
        if let Some(head) = head.take() {
            piece.put_slice(head.as_bytes());
        }
        while piece.len() < PIECE {
            let Some((at, object)) = rest.next() else {
                piece.put_slice(b"]}\n");
                is_done = true;
                break;
            };
            piece.put_slice(if at == 0 { b"{" } else { b",{" });
            piece.put_slice(&object.json_in_list());
        }
        Some(piece.freeze())
    });
    let mut response = Response::new(small_or_streamed(pieces));
    let media_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// A body of one chunk has a length; several chunks are streamed.
fn small_or_streamed(mut pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Body {
    let first = pieces.next().unwrap_or_default();
    match pieces.next() {
        None => body::full(first),
        Some(second) => {
            let pieces = [first, second].into_iter().chain(pieces);
            body::stream(futures::stream::iter(pieces))
        }
    }
}

/// The cache is not far enough: the client should retry.
pub(crate) fn too_large_resource_version(error: TooLargeResourceVersion) -> Status {
    let text = error.to_string();
    let cause = Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    let status = Status::new(504, "Timeout", format!("Timeout: {text}"));
    status.about(Details {
        causes: vec![cause],
        retry_after_seconds: 1,
        ..Details::default()
    })
}

/// Store errors as Statuses.
pub(crate) fn store_failure(error: &Error) -> Status {
    match error {
        Error::Compacted { .. } => Status::expired("The resourceVersion is too old."),
        Error::TooLarge { .. } => Status::too_large(&error.to_string()),
        Error::TooDeep { .. } => Status::too_deep(),
        Error::Full { source, .. } => Status::insufficient_storage(&format!("{error}: {source}")),
        Error::Closed => Status::service_unavailable("the server is shutting down"),
        _ => {
            let text = error_chain(error);
            tracing::error!(error = text, "store request failed");
            match error.is_retryable() {
                true => Status::service_unavailable(text),
                false => Status::internal_error(&text),
            }
        }
    }
}
