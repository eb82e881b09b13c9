//! `…/scale`: the number of replicas, in the same form for all scalable kinds.

use http::Response;
use serde_json::Value;

use crate::body::Body;
use crate::cache::Unreadable;
use crate::http::negotiation::Endpoint;
use crate::machinery::write::scale_of;
use crate::server::request::call::Call;
use crate::status::Status;

impl Call<'_> {
    /// Handles a GET of a Scale.
    pub(crate) async fn get_scale(&self) -> Result<Response<Body>, Status> {
        let output = self.output(Endpoint::Objects)?;
        let parent = self.stored("").await?;
        self.value_as(200, &scale_of(&parent.value()?), output)
    }
}

/// The Scale of a stored object.
pub(crate) fn scale_of_stored(parent: &[u8]) -> Result<Value, Unreadable> {
    let parent: Value = serde_json::from_slice(parent)?;
    Ok(scale_of(&parent))
}
