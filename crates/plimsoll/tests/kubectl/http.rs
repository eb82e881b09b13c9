//! HTTP behaviour that no kubectl command shows but other clients use, sent with `--raw` and through
//! `kubectl proxy`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::session::{Running, Session, with_kubectl_from};

/// One answer.
struct Answer {
    code: u16,
    head: String,
    body: String,
}

/// A `kubectl proxy`, which adds only the credentials.
struct Proxy<'a> {
    _running: Running<'a>,
    port: u16,
    namespace: &'a str,
}

impl<'a> Proxy<'a> {
    fn start(s: &'a Session) -> Proxy<'a> {
        let running = s.start("proxy --port=0 --disable-filter=true");
        let printed = running.wait_for("Starting to serve on");
        let port = printed.trim().rsplit(':').next().unwrap();
        Proxy {
            port: port.parse().unwrap(),
            _running: running,
            namespace: &s.namespace,
        }
    }

    fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let path = path.replace("$NS", self.namespace);
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUser-Agent: test\r\n"
        );
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            code,
            head: head.to_ascii_lowercase(),
            body: body.replace(self.namespace, "NS"),
        }
    }

    fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.ask("GET", path, headers, "")
    }
}

impl Answer {
    #[track_caller]
    fn is(&self, code: u16, part: &str) {
        assert_eq!(self.code, code, "{} {}", self.head, self.body);
        assert!(
            self.body.contains(part),
            "{part:?} is missing in {}",
            self.body
        );
    }
}

const JSON: &str = "Content-Type: application/json";

#[test]
#[ignore = "tier: tools"]
fn unsupported_media_types_return_their_status_codes() {
    with_kubectl_from(21, |s| {
        let proxy = Proxy::start(s);
        let pods = "/api/v1/namespaces/$NS/pods";
        proxy
            .get(pods, &["Accept: text/html"])
            .is(406, "\"reason\":\"NotAcceptable\"");
        proxy
            .ask("POST", pods, &["Content-Type: text/plain"], "x")
            .is(
                415,
                "the body of the request was in an unknown format - accepted media types include: ",
            );
        proxy
            .ask("PATCH", &format!("{pods}/p"), &[JSON], "{}")
            .is(415, "UnsupportedMediaType");
        proxy.ask("PUT", pods, &[JSON], "{}").is(
            405,
            "the server does not allow this method on the requested resource",
        );
        proxy
            .ask("POST", pods, &[JSON], "{")
            .is(400, "couldn't get version/kind; json parse error");
        let big = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(3 * 1024 * 1024));
        proxy
            .ask("POST", "/api/v1/namespaces/$NS/configmaps", &[JSON], &big)
            .is(413, "Request entity too large: limit is 3145728");
    });
}

#[test]
#[ignore = "tier: tools"]
fn list_resource_versions_follow_their_semantics() {
    with_kubectl_from(21, |s| {
        s.ok("create configmap a");
        s.ok("create configmap b");
        let proxy = Proxy::start(s);
        let path = "/api/v1/namespaces/$NS/configmaps";
        let get = |query: &str| proxy.get(&format!("{path}?{query}"), &[]);
        get("resourceVersion=0").is(200, "\"name\":\"b\"");
        get("resourceVersion=abc").is(400, "Invalid value: \\\"abc\\\"");
        get("resourceVersionMatch=Exact").is(
            422,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
        get("resourceVersionMatch=Exact&resourceVersion=0").is(422, "FieldValueForbidden");
        get("continue=abc").is(400, "continue key is not valid");
        get("sendInitialEvents=true").is(422, "sendInitialEvents is forbidden for list");
        let future = get("resourceVersion=900000000000000");
        future.is(504, "ResourceVersionTooLarge");
        assert!(future.head.contains("retry-after: 1"), "{}", future.head);

        let first: serde_json::Value = serde_json::from_str(&get("limit=1").body).unwrap();
        let meta = &first["metadata"];
        assert!(meta["remainingItemCount"].as_u64() >= Some(1), "{meta}");
        let version = meta["resourceVersion"].as_str().unwrap();
        s.ok("delete cm b");
        // Later pages are of the same moment as the first.
        let next = get(&format!(
            "limit=500&continue={}",
            meta["continue"].as_str().unwrap()
        ));
        next.is(200, "\"name\":\"b\"");
        next.is(200, &format!("\"resourceVersion\":\"{version}\""));
        get(&format!(
            "resourceVersion={version}&resourceVersionMatch=Exact"
        ))
        .is(200, "\"name\":\"b\"");
        let changes = get(&format!(
            "watch=1&timeoutSeconds=1&resourceVersion={version}"
        ));
        changes.is(200, "{\"type\":\"DELETED\",\"object\":");
    });
}

#[test]
#[ignore = "tier: tools"]
fn watches_follow_their_parameters() {
    with_kubectl_from(21, |s| {
        s.ok("create configmap a");
        let proxy = Proxy::start(s);
        let get = |query: &str| {
            proxy.get(
                &format!("/api/v1/namespaces/$NS/configmaps?watch=1&timeoutSeconds=1&{query}"),
                &[],
            )
        };
        let streamed = get(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        );
        streamed.is(200, "\"name\":\"a\"");
        streamed.is(200, "\"k8s.io/initial-events-end\":\"true\"");
        get("sendInitialEvents=true").is(
            422,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
        get("resourceVersion=abc").is(500, "Invalid value: \\\"abc\\\"");
    });
}

#[test]
#[ignore = "tier: tools"]
fn responses_have_other_media_types() {
    with_kubectl_from(21, |s| {
        s.ok("create configmap a --from-literal=k=v");
        let proxy = Proxy::start(s);
        let one = "/api/v1/namespaces/$NS/configmaps/a";
        proxy
            .get(one, &["Accept: application/yaml"])
            .is(200, "data:\n  k: v\n");
        let meta = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        proxy.get(one, &[meta]).is(
            200,
            "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\"",
        );
        proxy
            .get("/api/v1/namespaces/$NS/configmaps", &[meta])
            .is(406, "the requested object is a list");
        let table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io";
        let answer = proxy.get(&format!("{one}?includeObject=Object"), &[table]);
        let table: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(table["rows"][0]["object"]["kind"], "ConfigMap");
        proxy
            .get(&format!("{one}?pretty=true"), &[])
            .is(200, "{\n  \"");
        proxy
            .get(&format!("{one}x?pretty=true"), &[])
            .is(404, "\n  \"reason\": \"NotFound\"");
    });
}

#[test]
#[ignore = "tier: tools"]
fn dry_run_and_field_validation_are_applied() {
    with_kubectl_from(21, |s| {
        let proxy = Proxy::start(s);
        let post = |query: &str, body: &str| {
            proxy.ask(
                "POST",
                &format!("/api/v1/namespaces/$NS/configmaps?{query}"),
                &[JSON],
                body,
            )
        };
        post("dryRun=some", "{\"metadata\":{\"name\":\"c\"}}").is(
            422,
            "dryRun: Unsupported value: [\\\"some\\\"]: supported values: \\\"All\\\"",
        );
        post("fieldValidation=some", "{\"metadata\":{\"name\":\"c\"}}")
            .is(422, "FieldValueNotSupported");
        let warned = post("dryRun=All", "{\"metadata\":{\"name\":\"c\"},\"foo\":1}");
        warned.is(201, "\"uid\":");
        assert!(
            warned
                .head
                .contains("warning: 299 - \"unknown field \\\"foo\\\"\""),
            "{}",
            warned.head
        );
        post(
            "fieldValidation=Strict",
            "{\"metadata\":{\"name\":\"c\"},\"foo\":1}",
        )
        .is(400, "strict decoding error: unknown field \\\"foo\\\"");
        s.run("get cm c").fails_with("not found");
        let delete = |body: &str| {
            proxy.ask(
                "DELETE",
                "/api/v1/namespaces/$NS/configmaps/c",
                &[JSON],
                body,
            )
        };
        s.ok("create configmap c");
        delete("{\"preconditions\":{\"uid\":\"other\"}}").is(
            409,
            "the UID in the precondition (other) does not match the UID in record (",
        );
        delete("{\"propagationPolicy\":\"Sideways\"}").is(422, "propagationPolicy");
        delete("").is(200, "\"status\":\"Success\"");
    });
}
