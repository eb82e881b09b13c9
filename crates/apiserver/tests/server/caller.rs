//! Requests of one client, and their responses.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::cluster::soon;

/// Sends requests as one client, over a socket or in process.
#[derive(Clone)]
pub(crate) struct Caller {
    client: kube::Client,
    headers: Vec<(String, String)>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Caller {
    pub(crate) fn new(client: kube::Client) -> Caller {
        Caller {
            client,
            headers: Vec::new(),
        }
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The same client, with a header in all of its requests.
    pub(crate) fn with(&self, name: &str, value: &str) -> Caller {
        let mut caller = self.clone();
        caller.headers.push((name.to_owned(), value.to_owned()));
        caller
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !media_type.is_empty() {
            request = request.header("content-type", media_type);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body.into())).unwrap();
        soon(path, self.client.send(request)).await.unwrap()
    }

    /// Any request.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let response = self.request(method, path, media_type, body).await;
        let (parts, body) = response.into_parts();
        let body = soon(path, body.collect()).await.unwrap();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: body.to_bytes(),
        }
    }

    /// The code of a GET; `None` if there is no connection.
    pub(crate) async fn try_get(&self, path: &str) -> Option<u16> {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = soon(path, self.client.send(request)).await.ok()?;
        Some(answer.status().as_u16())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.send(Method::POST, path, "application/json", body)
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.send(Method::PUT, path, "application/json", body).await
    }

    /// `sort` is the middle of the media type: `merge`, `json`, `strategic-merge`.
    pub(crate) async fn patch(&self, path: &str, sort: &str, body: &Value) -> Answer {
        let media_type = match sort {
            "apply" => "application/apply-patch+yaml".to_owned(),
            _ => format!("application/{sort}-patch+json"),
        };
        let body = body.to_string();
        self.send(Method::PATCH, path, &media_type, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "", "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        let body = options.to_string();
        self.send(Method::DELETE, path, "application/json", body)
            .await
    }

    /// A running watch.
    pub(crate) async fn watch(&self, path: &str) -> Lines {
        let response = self.request(Method::GET, path, "", "").await;
        let code = response.status().as_u16();
        let mut lines = Lines {
            body: response.into_body(),
            rest: BytesMut::new(),
        };
        if code != 200 {
            let refusal = lines.next().await;
            panic!("{path}: {code} {refusal:?}");
        }
        lines
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}: {text}", self.code))
    }

    /// The body of a response with that code.
    pub(crate) fn expect(&self, code: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.code, code, "{text}");
        self.json()
    }

    /// Asserts an error with that code and reason; returns its message.
    pub(crate) fn refused(&self, code: u16, reason: &str) -> String {
        let status = self.expect(code);
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], code, "{status}");
        assert_eq!(status["reason"], reason, "{status}");
        status["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }
}

/// The events of a watch.
pub(crate) struct Lines {
    body: Body,
    rest: BytesMut,
}

impl Lines {
    /// The next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        soon("an event of a watch", self.next_line()).await
    }

    /// Whether there is another line; a broken connection is an end.
    pub(crate) async fn try_next(&mut self) -> Option<()> {
        self.body.frame().await?.ok().map(drop)
    }

    async fn next_line(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end + 1);
                return Some(serde_json::from_slice(&line).unwrap());
            }
            match self.body.frame().await {
                Some(frame) => {
                    let data = frame.unwrap().into_data().unwrap_or_default();
                    self.rest.extend_from_slice(&data);
                }
                None if self.rest.is_empty() => return None,
                // An error's document may have no newline.
                None => return serde_json::from_slice(&self.rest.split()).ok(),
            }
        }
    }

    /// The next event's type, name and object.
    pub(crate) async fn event(&mut self) -> (String, String, Value) {
        let mut line = self.next().await.expect("one more event");
        let object = line["object"].take();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&object["metadata"]["name"]);
        (text(&line["type"]), name, object)
    }

    /// Asserts the types and names of the next events.
    pub(crate) async fn expect(&mut self, expected: &[(&str, &str)]) -> Vec<Value> {
        let mut objects = Vec::new();
        for (sort, name) in expected {
            let (found_sort, found_name, object) = self.event().await;
            assert_eq!(
                (found_sort.as_str(), found_name.as_str()),
                (*sort, *name),
                "{object}"
            );
            objects.push(object);
        }
        objects
    }
}
