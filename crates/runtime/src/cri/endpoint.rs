//! Where a runtime listens.

use std::path::PathBuf;

use super::super::Error;

/// The socket an endpoint names. Matches v1.36
/// staging/src/k8s.io/cri-client/pkg/util/util_unix.go: a plain path is one of a Unix socket.
pub(super) fn parse_endpoint(endpoint: &str) -> Result<PathBuf, Error> {
    let path = match endpoint.split_once(':') {
        Some(("unix", rest)) => rest.strip_prefix("//").unwrap_or(rest),
        Some(("tcp", _)) => {
            let problem =
                format!("runtime endpoint {endpoint:?}: only support unix socket endpoint");
            return Err(Error::Invalid(problem));
        }
        Some((scheme, _)) if !scheme.contains('/') => {
            let problem =
                format!("runtime endpoint {endpoint:?}: protocol {scheme:?} not supported");
            return Err(Error::Invalid(problem));
        }
        _ => endpoint,
    };
    if path.is_empty() {
        let problem = format!("runtime endpoint {endpoint:?}: no path of a socket");
        return Err(Error::Invalid(problem));
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_plain_paths_name_a_socket() {
        for endpoint in [
            "unix:///run/containerd/containerd.sock",
            "unix:/run/containerd/containerd.sock",
            "/run/containerd/containerd.sock",
        ] {
            let path = parse_endpoint(endpoint).unwrap();
            assert_eq!(path, PathBuf::from("/run/containerd/containerd.sock"));
        }
        let odd = parse_endpoint("/run/a:b.sock").unwrap();
        assert_eq!(odd, PathBuf::from("/run/a:b.sock"));
    }

    #[test]
    fn other_protocols_and_nothing_are_refused() {
        let cases = [
            (
                "tcp://127.0.0.1:3735",
                "runtime endpoint \"tcp://127.0.0.1:3735\": only support unix socket endpoint",
            ),
            (
                "npipe:////./pipe/x",
                "runtime endpoint \"npipe:////./pipe/x\": protocol \"npipe\" not supported",
            ),
            ("", "runtime endpoint \"\": no path of a socket"),
            (
                "unix://",
                "runtime endpoint \"unix://\": no path of a socket",
            ),
        ];
        for (endpoint, message) in cases {
            assert_eq!(parse_endpoint(endpoint).unwrap_err().to_string(), message);
        }
    }
}
