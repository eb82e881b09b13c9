//! Operating the store: snapshots over HTTP, and events when it runs out of space and recovers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use plimsoll_client::supervision::Weight;
use plimsoll_core::object::event::Note;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::own_events::OwnEvent;
use crate::body::{self, Body};
use crate::cache::ROOT;
use crate::server::Server;
use crate::server::objects::list::store_failure;
use crate::status::Status;
use crate::store::{Error, Snapshot, SnapshotEncoder};

/// How long a client may stop reading a snapshot before it is aborted: a snapshot keeps space of
/// the store's file from being reused.
const STALL: Duration = Duration::from_secs(60);

/// How often the server checks whether the store is full.
const PERIOD: Duration = Duration::from_secs(2);

/// Chunks of a snapshot that are buffered for the client.
const PIECES: usize = 4;

impl Server {
    /// Streams all stored keys, as of one revision.
    pub(in crate::server) async fn snapshot(&self) -> Result<Response<Body>, Status> {
        let permit = Arc::clone(&self.snapshots).try_acquire_owned();
        let permit = permit.map_err(|_| {
            Status::too_many_requests("another snapshot of the store is being read", 10)
        })?;
        let snapshot = self.store.snapshot(ROOT.into()).await;
        let snapshot = snapshot.map_err(|error| store_failure(&error))?;
        let (pieces, receiver) = mpsc::channel(PIECES);
        tokio::spawn(send(snapshot, pieces, permit));
        let mut response = Response::new(body::stream(ReceiverStream::new(receiver).fuse()));
        let media_type = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        Ok(response)
    }

    /// The store's readiness; the reason shows nothing confidential, since health is public.
    pub(in crate::server) async fn store_is_ready(&self) -> Result<(), String> {
        self.store.ready().await.map_err(|error| match &error {
            Error::Full { source, .. } => source.to_string(),
            _ => "reason withheld".to_owned(),
        })
    }

    /// Records an event that the store is full, or has space again.
    async fn note_space(&self, full: Option<&Error>) {
        let note = match full {
            Some(error) => {
                let why = std::error::Error::source(error).map(ToString::to_string);
                let message = format!("{error}: {}", why.unwrap_or_default());
                Note::warning("StorageFull", message)
            }
            None => Note::normal("StorageHasRoom", "store has space again"),
        };
        let reason = note.reason.clone();
        let regarding = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default"});
        let event = OwnEvent { regarding, note };
        // Urgent: this event has to be stored while the store refuses others.
        if let Err(error) = self.record(event, true).await {
            tracing::warn!(%reason, %error, "event not stored");
        }
    }
}

/// Sends a snapshot in chunks. Without its trailer, the client treats the snapshot as incomplete.
async fn send(mut snapshot: Snapshot, pieces: mpsc::Sender<Bytes>, _permit: OwnedSemaphorePermit) {
    let (mut encoder, mut piece) = SnapshotEncoder::begin(snapshot.revision);
    let mut end = None;
    loop {
        match tokio::time::timeout(STALL, pieces.send(piece)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return tracing::info!("client closed snapshot stream"),
            Err(_) => return tracing::warn!("timed out sending snapshot to client"),
        }
        if end.is_some() {
            return;
        }
        piece = match snapshot.next_chunk().await {
            Ok(Some(entries)) => encoder.encode(&entries),
            Ok(None) => {
                end = Some(());
                encoder.clone().finish()
            }
            Err(error) => return tracing::error!(%error, "failed to read snapshot"),
        };
    }
}

/// Checks whether the store is full, until the server is dropped or stops.
pub(in crate::server) fn follow_space(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    let stop = server.supervisor.stopping().clone();
    server
        .supervisor
        .keep("storage-alarms", Weight::Vital, move || {
            let (server, stop) = (weak.clone(), stop.clone());
            async move {
                let mut was_full = false;
                while let Some(is_full) = look(&server, was_full).await {
                    was_full = is_full;
                    let pause = tokio::time::sleep(PERIOD);
                    if stop.run_until_cancelled(pause).await.is_none() {
                        break;
                    }
                }
                Ok(())
            }
        });
}

/// Whether the store is full; `None` once the server is dropped.
async fn look(server: &Weak<Server>, was_full: bool) -> Option<bool> {
    let server = server.upgrade()?;
    if *server.stop.borrow() {
        return None;
    }
    let full = match server.store.ready().await {
        Err(full @ Error::Full { .. }) => Some(full),
        Ok(()) => None,
        // The available space is unknown.
        Err(_) => return Some(was_full),
    };
    match (&full, was_full) {
        (Some(error), false) => {
            tracing::error!(error = error as &dyn std::error::Error, "store is full");
            server.note_space(Some(error)).await;
        }
        (None, true) => {
            tracing::warn!("store has space again");
            server.note_space(None).await;
        }
        _ => {}
    }
    Some(full.is_some())
}
