//! Who asked for what, and what came of it, as lines of JSON.
//!
//! The lines are `audit.k8s.io/v1` Events, so that tools which read upstream's log read this one.
//!
//! Reading order: [`policy`] (what is noted down), `event` (how it reads), [`log`] (where it is
//! written), `metrics`. Nothing of it runs where no log is asked for.

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
use super::journey::Journey;
use crate::body::{self, Body};
use crate::status::Status;

pub(super) use metrics::Counters;

/// Answers beyond this are noted down without their object.
const MAX_OBJECT: u64 = 16 << 20;

/// What an Event without its object says; the annotation of upstream's truncation.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// A body that is noted down has to arrive by then.
const BODY_ARRIVAL: Duration = Duration::from_secs(60);

/// How requests are noted down.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// Which ones, and how much; all of them without their bodies if nothing is said.
    pub policy: Option<Policy>,
    /// What requests wait for.
    pub mode: Mode,
    /// When a new file is begun.
    pub rotation: Rotation,
}

impl Options {
    /// The usual settings.
    pub fn new(path: impl Into<PathBuf>) -> Options {
        Options {
            path: path.into(),
            policy: None,
            mode: Mode::default(),
            rotation: Rotation::default(),
        }
    }
}

/// Notes requests down.
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
            // What is refused for want of a record needs its record before it is answered.
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

    fn verdict(&self, journey: &Journey) -> Verdict {
        let actor = journey.actor.as_ref();
        let verdict = journey.with_attributes(|attributes| self.policy.verdict(actor, attributes));
        self.counters.level(verdict.level);
        verdict
    }

    /// The caller is authenticated. The refusal if its event cannot be written and has to be.
    pub(super) async fn received(&self, journey: &mut Journey) -> Result<(), Status> {
        let verdict = self.verdict(journey);
        let is_noted = verdict.notes(Stage::RequestReceived);
        let is_written = !is_noted || {
            let received = event(journey, &verdict, Stage::RequestReceived, None);
            self.write(&received).await
        };
        journey.verdict = Some(verdict);
        if is_written || self.log.mode != Mode::BlockingStrict {
            return Ok(());
        }
        self.counters.rejected();
        Err(Status::internal_error("failed to store audit event"))
    }

    /// Keeps the body of a request that is noted down with it.
    pub(super) async fn keep_body(
        &self,
        journey: &mut Journey,
        request: Request<Body>,
    ) -> Result<Request<Body>, Status> {
        let level = journey.verdict.as_ref().map_or(Level::None, |v| v.level);
        if level < Level::Request || !journey.is_write() || journey.is_long_running() {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let bytes = tokio::time::timeout(BODY_ARRIVAL, read_body(body)).await;
        let late = |_| Status::bad_request("the body of the request did not come");
        let bytes = bytes.map_err(late)??;
        journey.body = Some(bytes.clone());
        Ok(Request::from_parts(parts, body::full(bytes)))
    }

    /// The answer is there. It comes back as it was.
    pub(super) async fn answered(
        &self,
        journey: &mut Journey,
        response: Response<Body>,
        refusal: Option<&Status>,
    ) -> Response<Body> {
        let verdict = match journey.verdict.take() {
            Some(verdict) => verdict,
            // The caller could not be authenticated.
            None => self.verdict(journey),
        };
        let code = response.status().as_u16();
        let goes_on = journey.is_long_running() && code < 400;
        let answer = event::Answer { code, refusal };
        if goes_on {
            let started = event(journey, &verdict, Stage::ResponseStarted, Some(&answer));
            if verdict.notes(Stage::ResponseStarted) {
                self.write(&started).await;
            }
            if !verdict.notes(Stage::ResponseComplete) {
                return response;
            }
            let ending = Ending {
                event: started,
                log: self.log.clone(),
                counters: self.counters.clone(),
            };
            return response.map(|body| body::with(body, ending));
        }
        if !verdict.notes(Stage::ResponseComplete) {
            return response;
        }
        let mut complete = event(journey, &verdict, Stage::ResponseComplete, Some(&answer));
        let response = match verdict.level {
            Level::RequestResponse => self.with_object(response, &verdict, &mut complete).await,
            _ => response,
        };
        self.write(&complete).await;
        response
    }

    /// Puts the object of the answer into its event.
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
        // Answers are made whole in memory; one that is not is made while it is sent.
        let length = response.body().size_hint().exact();
        if length.is_none_or(|length| length > MAX_OBJECT) {
            event["annotations"][TRUNCATED] = "true".into();
            return response;
        }
        let (parts, body) = response.into_parts();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) => {
                let broken = format!("the answer broke off: {error}");
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

/// The last word on a watch or a stream, when its answer has been sent or dropped.
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
