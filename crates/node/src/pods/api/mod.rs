//! What pods have to do with the API server.
//!
//! Reading order: `watch` (which pods there should be), `statuses` (how they are), `mirrors`
//! (images of static pods).

mod mirrors;
mod statuses;
mod watch;

pub use mirrors::keep_mirrors;
pub use statuses::write_statuses;
pub use watch::watch_pods;
