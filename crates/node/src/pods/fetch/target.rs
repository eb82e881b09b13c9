//! Where a request goes.

use std::fmt;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Whether over TLS.
    pub(crate) is_tls: bool,
    /// Name or address.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
    /// Path and query, as they are sent.
    pub(crate) path: String,
}

impl Target {
    /// Where an action goes: to the pod, unless it names another host.
    pub(crate) fn of(
        action: &HTTPGetAction,
        container: &Container,
        pod_ip: &str,
    ) -> Result<Target, String> {
        let scheme = action.scheme.as_deref().unwrap_or("http");
        let host = action.host.as_deref().filter(|host| !host.is_empty());
        Ok(Target {
            is_tls: scheme.eq_ignore_ascii_case("https"),
            host: host.unwrap_or(pod_ip).to_owned(),
            port: port_of(&action.port, container)?,
            path: encoded(action.path.as_deref().unwrap_or_default()),
        })
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Where a redirect from here leads, if its location can be parsed.
    pub(crate) fn redirected(&self, location: &str) -> Option<Target> {
        let absolute = [("http://", false), ("https://", true)]
            .into_iter()
            .find_map(|(scheme, is_tls)| Some((location.strip_prefix(scheme)?, is_tls)));
        let absolute = absolute.or_else(|| Some((location.strip_prefix("//")?, self.is_tls)));
        let Some((rest, is_tls)) = absolute else {
            let path = match location.strip_prefix('/') {
                Some(_) => location.to_owned(),
                None => {
                    let folder = self.path.split(['?', '#']).next().unwrap_or_default();
                    let end = folder.rfind('/').map_or(0, |slash| slash + 1);
                    format!("{}{location}", &folder[..end])
                }
            };
            return Some(Target {
                path: encoded(&path),
                ..self.clone()
            });
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let default_port = if is_tls { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, default_port),
        };
        Some(Target {
            is_tls,
            host: host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port,
            path: encoded(path),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.address(), self.path)
    }
}

/// The number of a port that may be given by its name in the container.
pub(crate) fn port_of(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            match named {
                Some(named) => named.container_port,
                None => name
                    .parse()
                    .map_err(|_| format!("strconv.Atoi: parsing {name:?}: invalid syntax"))?,
            }
        }
    };
    match u16::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("invalid port number: {number}")),
    }
}

/// Path and query as they may be sent: what has no place there is escaped, fragments are left out.
fn encoded(path: &str) -> String {
    let has_bad_escape = path.match_indices('%').any(|(at, _)| {
        let digits = path.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let path = match has_bad_escape {
        true => path,
        false => path.split('#').next().unwrap_or_default(),
    };
    let mut text = String::new();
    if !path.starts_with('/') {
        text.push('/');
    }
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte);
        let is_special = byte == b'?' || byte == b'%';
        if is_plain || is_special && !has_bad_escape || byte == b'[' || byte == b']' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_sent_as_go_would_send_them() {
        for (path, sent) in [
            ("", "/"),
            ("healthz", "/healthz"),
            ("/a b?c=d&e", "/a%20b?c=d&e"),
            ("/a%20b", "/a%20b"),
            ("/a%zz?x", "/a%25zz%3Fx"),
            ("/a#b", "/a"),
            ("/é", "/%C3%A9"),
        ] {
            assert_eq!(encoded(path), sent, "{path}");
        }
    }

    #[test]
    fn redirects_are_relative_to_the_request_url() {
        let here = Target {
            is_tls: false,
            host: "10.0.0.1".to_owned(),
            port: 8080,
            path: "/a/b?c".to_owned(),
        };
        for (location, there) in [
            ("/x", "http://10.0.0.1:8080/x"),
            ("x", "http://10.0.0.1:8080/a/x"),
            ("https://10.0.0.1/x?y", "https://10.0.0.1:443/x?y"),
            ("http://other:81", "http://other:81/"),
            ("//[::1]:9/z", "http://[::1]:9/z"),
        ] {
            let target = here.redirected(location).unwrap();
            assert_eq!(target.to_string(), there, "{location}");
        }
    }

    #[test]
    fn port_is_a_number_or_a_name() {
        let container: Container = serde_json::from_value(serde_json::json!({
            "name": "a", "ports": [{"name": "web", "containerPort": 8080}],
        }))
        .unwrap();
        let number = |text: &str| port_of(&IntOrString::String(text.to_owned()), &container);
        assert_eq!(number("web"), Ok(8080));
        assert_eq!(number("81"), Ok(81));
        assert!(number("none").is_err());
        assert!(port_of(&IntOrString::Int(0), &container).is_err());
        assert!(port_of(&IntOrString::Int(65536), &container).is_err());
    }
}
