//! The answers of an API server to manifests, as the check needs them.

use std::fmt::Debug;

use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_core::admission::overcommit::Override;
use plimsoll_core::config::document::Node;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::problem::Problem;
use serde_json::Value;

/// The create path of an API server.
pub trait Server {
    /// Decodes a document.
    fn read(&self, tree: &Node) -> Read;
}

/// A document as the server decodes it.
#[derive(Debug)]
pub enum Read {
    /// An object of a kind that the server serves.
    Object(Box<dyn Manifest>),
    /// An object of a kind that it does not serve; the reason.
    Elsewhere(String),
    /// No object.
    Nothing(Vec<Problem>),
}

/// An object that could be decoded, at least in part.
pub trait Manifest: Debug {
    /// Its kind.
    fn kind(&self) -> &'static str;

    /// Whether it is in a namespace.
    fn is_namespaced(&self) -> bool;

    /// The object without what is wrong.
    fn object(&self) -> &Value;

    /// What is wrong with the document, with positions.
    fn problems(&self) -> &[Problem];

    /// Creates the object, except for storing it.
    fn create(&self, facts: &Facts<'_>) -> Created;
}

/// What is known of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The LimitRanges of the object's namespace.
    pub limit_ranges: &'a [LimitRangeView],
    /// The override of requests that applies to the namespace.
    pub overcommit: Option<&'a Override>,
    /// PriorityClasses.
    pub priority_classes: &'a [PriorityClass],
    /// RuntimeClasses.
    pub runtime_classes: &'a [RuntimeClass],
}

/// What creating an object results in.
#[derive(Clone, Debug, Default)]
pub struct Created {
    /// Why it is rejected.
    pub problems: Vec<Problem>,
    /// The warnings for the caller.
    pub warnings: Vec<String>,
}
