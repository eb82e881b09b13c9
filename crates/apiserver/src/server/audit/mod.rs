//! The audit log: each request and its outcome, as lines of JSON.
//!
//! The lines are `audit.k8s.io/v1` Events, so that tools which read upstream's log read this one.
//!
//! Reading order: [`policy`] (which requests are recorded), `event` (the format), [`log`] (the
//! file), `metrics`. None of this runs unless an audit log is configured.

mod event;
pub mod log;
mod metrics;
pub mod policy;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde_json::Value;

use self::event::{event, finish};
use self::log::{Log, Mode, Rotation};
use self::policy::{Level, Policy, Stage, Verdict};
use super::call::{header, read_body};
use super::request_context::RequestContext;
use crate::body::{self, Body};
use crate::status::Status;

pub(super) use metrics::Counters;

/// Larger responses are recorded without their object.
const MAX_OBJECT: u64 = 16 << 20;

/// The annotation of an event without its object, as upstream's truncation sets it.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// A recorded request body has to arrive within this time.
const BODY_ARRIVAL: Duration = Duration::from_secs(60);

/// How requests are recorded.
#[derive(Clone, Debug)]
pub struct Options {
    /// The log file.
    pub path: PathBuf,
    /// Which requests are recorded, and at which level; by default all, without bodies.
    pub policy: Option<Policy>,
    /// How long requests wait for their events.
    pub mode: Mode,
    /// When the file is rotated.
    pub rotation: Rotation,
}

impl Options {
    /// The default settings.
    pub fn new(path: impl Into<PathBuf>) -> Options {
        Options {
            path: path.into(),
            policy: None,
            mode: Mode::default(),
            rotation: Rotation::default(),
        }
    }
}

/// Records requests.
#[derive(Debug)]
pub(super) struct Audit {
    policy: Policy,
    log: Log,
    counters: Counters,
}

impl Audit {
    pub(super) fn open(options: &Options, counters: Counters) -> io::Result<Audit> {
        let is_strict = options.mode == Mode::BlockingStrict;
        let policy = options.policy.clone();
        Ok(Audit {
            // In the strict mode, the event has to be written before the response is sent.
            policy: policy.unwrap_or_else(|| Policy::metadata(is_strict)),
            log: Log::open(
                &options.path,
                options.mode,
                options.rotation,
                counters.clone(),
            )?,
            counters,
        })
    }

    fn verdict(&self, context: &RequestContext) -> Verdict {
        let actor = context.actor.as_deref();
        let verdict = context.with_attributes(|attributes| self.policy.verdict(actor, attributes));
        self.counters.level(verdict.level);
        verdict
    }

    /// Records that the caller is authenticated. Returns an error if the event is required and
    /// cannot be written.
    pub(super) async fn received(&self, context: &mut RequestContext) -> Result<(), Status> {
        let verdict = self.verdict(context);
        let is_noted = verdict.records(Stage::RequestReceived);
        let is_written = !is_noted || {
            let received = event(context, &verdict, Stage::RequestReceived, None);
            self.write(&received).await
        };
        context.verdict = Some(verdict);
        if is_written || self.log.mode != Mode::BlockingStrict {
            return Ok(());
        }
        self.counters.rejected();
        Err(Status::internal_error("failed to store audit event"))
    }

    /// Buffers the body of a request that is recorded with its body.
    pub(super) async fn keep_body(
        &self,
        context: &mut RequestContext,
        request: Request<Body>,
    ) -> Result<Request<Body>, Status> {
        let level = context.verdict.as_ref().map_or(Level::None, |v| v.level);
        if level < Level::Request || !context.is_write() || context.is_long_running() {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let bytes = tokio::time::timeout(BODY_ARRIVAL, read_body(body)).await;
        let late = |_| Status::bad_request("the body of the request did not come");
        let bytes = bytes.map_err(late)??;
        context.body = Some(bytes.clone());
        Ok(Request::from_parts(parts, body::full(bytes)))
    }

    /// Records the response, and returns it unchanged.
    pub(super) async fn record_response(
        &self,
        context: &mut RequestContext,
        response: Response<Body>,
        refusal: Option<&Status>,
    ) -> Response<Body> {
        let verdict = match context.verdict.take() {
            Some(verdict) => verdict,
            // Records a request whose caller could not be authenticated.
            None => self.verdict(context),
        };
        let code = response.status().as_u16();
        let goes_on = context.is_long_running() && code < 400;
        let summary = event::ResponseSummary { code, refusal };
        if goes_on {
            let started = event(context, &verdict, Stage::ResponseStarted, Some(&summary));
            if verdict.records(Stage::ResponseStarted) {
                self.write(&started).await;
            }
            if !verdict.records(Stage::ResponseComplete) {
                return response;
            }
            let ending = Ending {
                event: started,
                log: self.log.clone(),
                counters: self.counters.clone(),
            };
            return response.map(|body| body::with(body, ending));
        }
        if !verdict.records(Stage::ResponseComplete) {
            return response;
        }
        let mut complete = event(context, &verdict, Stage::ResponseComplete, Some(&summary));
        let response = match verdict.level {
            Level::RequestResponse => self.with_object(response, &verdict, &mut complete).await,
            _ => response,
        };
        self.write(&complete).await;
        response
    }

    /// Adds the object of the response to the event.
    async fn with_object(
        &self,
        response: Response<Body>,
        verdict: &Verdict,
        event: &mut Value,
    ) -> Response<Body> {
        let media_type = header(response.headers(), &CONTENT_TYPE);
        if !media_type.starts_with("application/json") {
            return response;
        }
        // Most responses are complete in memory; a streamed one is generated while it is sent.
        let length = response.body().size_hint().exact();
        if length.is_none_or(|length| length > MAX_OBJECT) {
            event["annotations"][TRUNCATED] = "true".into();
            return response;
        }
        let (parts, body) = response.into_parts();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) => {
                let broken = format!("the response stream failed: {error}");
                return super::respond::status(&Status::internal_error(&broken));
            }
        };
        event["responseObject"] = event::object(&bytes, verdict);
        Response::from_parts(parts, body::full(bytes))
    }

    async fn write(&self, event: &Value) -> bool {
        self.counters.event();
        self.log.write(event.to_string()).await
    }
}

/// Records the end of a watch or a stream, when its response has been sent or dropped.
struct Ending {
    event: Value,
    log: Log,
    counters: Counters,
}

impl Drop for Ending {
    fn drop(&mut self) {
        finish(&mut self.event);
        self.counters.event();
        self.log.write_at_end(self.event.to_string());
    }
}
