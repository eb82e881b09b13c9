//! How pods live and end, with a runtime that exists in memory and time that runs as fast as it
//! can.

#![expect(clippy::unwrap_used, reason = "fakes may panic as tests may")]

mod any_order;
mod apiserver;
mod clock;
mod failures;
mod fake_api;
mod fake_host;
mod fake_runtime;
mod health;
mod lifecycle;
mod many;
mod world;
