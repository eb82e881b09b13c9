use super::*;

const KUBECTL_GET: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
    application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

fn objects(accept: &str) -> Result<Output, NotAcceptable> {
    negotiate_output(accept, Endpoint::Objects)
}

#[test]
fn kubectl_get_gets_a_table() {
    let output = objects(KUBECTL_GET).unwrap();
    assert_eq!(output.transform, Some((Transform::Table, MetaVersion::V1)));
    assert_eq!(output.format, Format::Json);
}

#[test]
fn clients_that_prefer_protobuf_get_json() {
    for accept in [
        "application/vnd.kubernetes.protobuf,application/json",
        "application/vnd.kubernetes.protobuf, */*",
        "",
        "*/*",
    ] {
        assert_eq!(objects(accept), Ok(Output::JSON), "{accept}");
    }
}

#[test]
fn metadata_clients_get_metadata() {
    let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
        application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let output = objects(accept).unwrap();
    let (transform, _) = output.transform.unwrap();
    assert_eq!(transform, Transform::PartialObjectMetadataList);
}

#[test]
fn unknown_media_types_are_rejected_with_the_supported_ones() {
    for accept in ["application/cbor", "text/html", "*", "application/*"] {
        assert_eq!(
            objects(accept).unwrap_err().to_string(),
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
        );
    }
    for accept in [
        "application/json;as=Cake;g=meta.k8s.io;v=v1",
        "application/json;sv=v2",
    ] {
        assert_eq!(
            objects(accept).unwrap_err().to_string(),
            "only the following media types are accepted: application/json, application/yaml"
        );
    }
}

#[test]
fn unknown_transform_is_skipped() {
    assert_eq!(
        objects("application/json;as=Cake,application/json"),
        Ok(Output::JSON)
    );
}

#[test]
fn clauses_are_ordered_by_quality_and_specificity() {
    assert_eq!(
        objects("application/json;q=0.1, application/yaml")
            .unwrap()
            .format,
        Format::Yaml
    );
    assert_eq!(
        objects("*/*, application/yaml").unwrap().format,
        Format::Yaml
    );
}

#[test]
fn yaml_cannot_be_watched() {
    let watch = |accept| negotiate_output(accept, Endpoint::Watch);
    assert!(watch("application/json;stream=watch").is_ok());
    assert_eq!(
        watch("application/yaml").unwrap_err().to_string(),
        "only the following media types are accepted: application/json;stream=watch"
    );
}

#[test]
fn aggregated_discovery_is_found_after_other_media_types() {
    let discovery = |accept: &str| negotiate_output(accept, Endpoint::Discovery).is_ok();
    assert!(discovery(DISCOVERY));
    assert!(discovery(&format!("application/json,{DISCOVERY}")));
    assert!(!discovery("application/json"));
    assert!(!discovery(""));
    assert!(negotiate_output(DISCOVERY, Endpoint::Plain).is_ok());
}

#[test]
fn bodies_are_json_without_a_content_type() {
    assert_eq!(body_format(""), Ok(BodyFormat::Json));
    assert_eq!(
        body_format("Application/JSON; charset=utf-8"),
        Ok(BodyFormat::Json)
    );
    assert_eq!(
        body_format("application/vnd.kubernetes.protobuf"),
        Ok(BodyFormat::Protobuf)
    );
    assert_eq!(
        body_format("text/plain").unwrap_err().to_string(),
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[test]
fn output_for_people_is_indented() {
    assert!(is_pretty(None, "curl/8.0"));
    assert!(!is_pretty(Some("false"), "curl/8.0"));
    assert!(is_pretty(Some("true"), "kubectl/v1.36"));
    assert!(!is_pretty(Some(""), "kubectl/v1.36"));
}
