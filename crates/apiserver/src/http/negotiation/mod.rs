//! Content negotiation: the media type of a response, and of a body.
//!
//! Matches v1.36 apiserver/pkg/endpoints/handlers/negotiation.

mod clause;

use clause::{Clause, parse_accept};

use crate::machinery::decoding::BodyFormat;
use crate::machinery::table::MetaVersion;

/// The encoding of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
}

impl Format {
    const ALL: [Format; 2] = [Format::Json, Format::Yaml];

    /// The value of `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
        }
    }
}

/// The transformation of the object before it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Rows of cells.
    Table,
    /// The metadata of one object.
    PartialObjectMetadata,
    /// The metadata of a list of objects.
    PartialObjectMetadataList,
    /// All groups with their resources; for `/api` and `/apis` only.
    AggregatedDiscovery,
}

/// The negotiated output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The encoding.
    pub format: Format,
    /// The transformation of the object.
    pub transform: Option<(Transform, MetaVersion)>,
    /// Whether the media type requests line breaks and indentation.
    pub is_pretty: bool,
}

impl Output {
    const JSON: Output = Output {
        format: Format::Json,
        transform: None,
        is_pretty: false,
    };
}

/// The kind of an endpoint, which decides about the possible outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Documents that are written as they are.
    Plain,
    /// Objects and lists, which can be transformed.
    Objects,
    /// Watch events; YAML has no form for a stream.
    Watch,
    /// Aggregated discovery.
    Discovery,
}

impl Endpoint {
    fn formats(self) -> &'static [Format] {
        match self {
            Endpoint::Discovery => &[Format::Json],
            // YAML is rejected for a watch after the rest of the negotiation.
            Endpoint::Plain | Endpoint::Objects | Endpoint::Watch => &Format::ALL,
        }
    }

    fn allows(self, transform: Option<Transform>) -> bool {
        match self {
            Endpoint::Plain => transform.is_none(),
            Endpoint::Objects | Endpoint::Watch => {
                transform != Some(Transform::AggregatedDiscovery)
            }
            Endpoint::Discovery => transform == Some(Transform::AggregatedDiscovery),
        }
    }
}

/// The client accepts nothing that the endpoint can produce: 406.
///
/// Upstream's router checks the media types and its handlers their parameters; each has its
/// own message, and only the router's response has (empty) details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAcceptable {
    /// None of the media types is supported.
    #[error("406: Not Acceptable\n\nAvailable representations: {available}")]
    ByRouter {
        /// The supported media types.
        available: &'static str,
    },
    /// None of the media types has supported parameters.
    #[error("only the following media types are accepted: {accepted}")]
    ByHandler {
        /// The supported media types.
        accepted: &'static str,
    },
}

/// The media type of a body is not supported: 415.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the body of the request was in an unknown format - accepted media types include: {accepted}"
)]
pub struct UnsupportedMediaType {
    accepted: &'static str,
}

/// Negotiates the output from the `Accept` header, empty when there is none.
pub fn negotiate_output(accept: &str, endpoint: Endpoint) -> Result<Output, NotAcceptable> {
    if accept.is_empty() && endpoint != Endpoint::Discovery {
        return Ok(Output::JSON);
    }
    if endpoint != Endpoint::Discovery && !is_routed(accept) {
        let available = "application/json, application/yaml";
        return Err(NotAcceptable::ByRouter { available });
    }
    let clauses = parse_accept(accept);
    let chosen = clauses.iter().find_map(|clause| {
        let formats = endpoint.formats().iter();
        let mut matching = formats.filter(|format| clause.matches(format.media_type()));
        matching.find_map(|format| output(clause, *format, endpoint))
    });
    let (chosen, accepted) = match endpoint {
        Endpoint::Watch => (
            chosen.filter(|output| output.format != Format::Yaml),
            "application/json;stream=watch",
        ),
        _ => (chosen, "application/json, application/yaml"),
    };
    chosen.ok_or(NotAcceptable::ByHandler { accepted })
}

/// Whether the router finds a supported media type; it does not support `application/*`.
fn is_routed(accept: &str) -> bool {
    accept.split(',').any(|clause| {
        let media_type = clause.split(';').next().unwrap_or_default();
        let media_type = media_type.trim_matches(' ');
        let mut written = Format::ALL.iter().map(|format| format.media_type());
        media_type == "*/*" || written.any(|known| known == media_type)
    })
}

/// The output for a clause, or `None` if its parameters exclude it.
fn output(clause: &Clause<'_>, format: Format, endpoint: Endpoint) -> Option<Output> {
    if let Some(stream) = clause.parameter("stream") {
        let is_possible = stream.is_empty() || (stream == "watch" && format == Format::Json);
        if !is_possible {
            return None;
        }
    }
    if clause
        .parameter("sv")
        .is_some_and(|version| !version.is_empty())
    {
        return None;
    }
    let transform = transform(clause)?;
    if !endpoint.allows(transform.map(|(transform, _)| transform)) {
        return None;
    }
    Some(Output {
        format,
        transform,
        is_pretty: clause.parameter("pretty") == Some("1"),
    })
}

/// `None`: a transform that does not exist.
fn transform(clause: &Clause<'_>) -> Option<Option<(Transform, MetaVersion)>> {
    let [kind, group, version] = ["as", "g", "v"].map(|name| clause.parameter(name));
    if kind.is_none() && group.is_none() && version.is_none() {
        return Some(None);
    }
    let transform = match (group?, version?, kind?) {
        ("meta.k8s.io", "v1" | "v1beta1", "Table") => Transform::Table,
        ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadata") => {
            Transform::PartialObjectMetadata
        }
        ("meta.k8s.io", "v1" | "v1beta1", "PartialObjectMetadataList") => {
            Transform::PartialObjectMetadataList
        }
        ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => Transform::AggregatedDiscovery,
        _ => return None,
    };
    let version = if version == Some("v1beta1") {
        MetaVersion::V1Beta1
    } else {
        MetaVersion::V1
    };
    Some(Some((transform, version)))
}

/// Whether the response is printed for people: the `pretty` parameter, or else the client's
/// name, decides.
pub fn is_pretty(pretty: Option<&str>, user_agent: &str) -> bool {
    match pretty {
        Some(text) if !text.is_empty() => {
            matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
        }
        _ => ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|known| user_agent.starts_with(known)),
    }
}

/// Reads the `Content-Type` of an object, empty when there is none, which means JSON.
pub fn body_format(content_type: &str) -> Result<BodyFormat, UnsupportedMediaType> {
    match media_type(content_type).as_str() {
        "application/json" => Ok(BodyFormat::Json),
        "application/yaml" => Ok(BodyFormat::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyFormat::Protobuf),
        "" if content_type.is_empty() => Ok(BodyFormat::Json),
        _ => Err(UnsupportedMediaType {
            accepted: "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        }),
    }
}

/// Type and subtype in small letters, without parameters.
fn media_type(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
