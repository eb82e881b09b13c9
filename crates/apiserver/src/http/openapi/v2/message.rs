//! The messages that the document consists of, with the fields that are used.
//!
//! Matches gnostic's openapiv2/OpenAPIv2.proto.

use prost::Message;
use serde_json::Value;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Document {
    #[prost(string, tag = "1")]
    pub(super) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(super) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(super) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(super) definitions: Option<Schemas>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(super) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathItem {
    #[prost(message, optional, tag = "8")]
    pub(super) patch: Option<Operation>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(string, tag = "5")]
    pub(super) id: String,
    #[prost(message, repeated, tag = "8")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, repeated, tag = "13")]
    pub(super) extensions: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(super) parameter: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parameter {
    #[prost(message, optional, tag = "2")]
    pub(super) non_body: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    pub(super) query: Option<QueryParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryParameter {
    #[prost(string, tag = "2")]
    pub(super) place: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "6")]
    pub(super) ty: String,
    #[prost(bool, tag = "20")]
    pub(super) unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schemas {
    #[prost(message, repeated, tag = "1")]
    pub(super) named: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schema {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(string, repeated, tag = "19")]
    pub(super) required: Vec<String>,
    #[prost(message, optional, boxed, tag = "21")]
    pub(super) values: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    pub(super) ty: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    pub(super) items: Option<Items>,
    #[prost(message, optional, tag = "25")]
    pub(super) properties: Option<Schemas>,
    #[prost(message, repeated, tag = "31")]
    pub(super) extensions: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) schema: Option<Box<Schema>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Items {
    #[prost(message, repeated, tag = "1")]
    pub(super) schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    pub(super) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(string, tag = "2")]
    pub(super) yaml: String,
}

/// An `x-…` member. JSON is YAML.
pub(super) fn extension(name: &str, value: &Value) -> NamedAny {
    NamedAny {
        name: name.to_owned(),
        value: Some(Any {
            yaml: value.to_string(),
        }),
    }
}
