//! The lifecycle of pods with a fake runtime and virtual time.

#![expect(clippy::unwrap_used, reason = "fakes may panic as tests may")]

mod any_order;
mod apiserver;
mod clock;
mod devices;
mod failures;
mod fake_api;
mod fake_host;
mod fake_runtime;
mod health;
mod lifecycle;
mod many;
mod world;
