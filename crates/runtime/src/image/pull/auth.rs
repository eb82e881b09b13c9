//! Credentials, as CRI gives them, in the form registries want them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci_client::secrets::RegistryAuth;

use super::super::reference::Reference;
use super::Error;
use crate::wire::AuthConfig;

/// The user name that stands for "the password is a token".
const TOKEN_USER: &str = "<token>";

/// What to show the registry of an image. Credentials for another server are not shown to it.
///
/// The order is containerd's: user and password, then an identity token, then both in base64.
pub fn credentials(name: &Reference, auth: Option<&AuthConfig>) -> Result<RegistryAuth, Error> {
    let Some(auth) = auth.filter(|auth| is_for(name, &auth.server_address)) else {
        return Ok(RegistryAuth::Anonymous);
    };
    let invalid = |problem| Error::Credentials {
        image: name.to_string(),
        problem,
    };
    if !auth.registry_token.is_empty() {
        let token = &auth.registry_token;
        // It becomes part of an HTTP header.
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("the registry token is no token"));
        }
        return Ok(RegistryAuth::Bearer(token.clone()));
    }
    if !auth.identity_token.is_empty() && auth.password.is_empty() {
        let user = if auth.username.is_empty() {
            TOKEN_USER
        } else {
            &auth.username
        };
        return Ok(basic(user, &auth.identity_token));
    }
    if !auth.username.is_empty() {
        return Ok(basic(&auth.username, &auth.password));
    }
    if auth.auth.is_empty() {
        return Ok(RegistryAuth::Anonymous);
    }
    let decoded = STANDARD.decode(&auth.auth);
    let decoded = decoded.map_err(|_| invalid("auth is not base64"))?;
    let text = String::from_utf8(decoded).map_err(|_| invalid("auth is not text"))?;
    let (user, password) = text
        .split_once(':')
        .ok_or_else(|| invalid("auth is not USER:PASSWORD"))?;
    Ok(basic(user, password.trim_matches('\0')))
}

fn basic(user: &str, password: &str) -> RegistryAuth {
    RegistryAuth::Basic(user.to_owned(), password.to_owned())
}

/// Addresses of servers are hosts, or URLs as old as `https://index.docker.io/v1/`.
fn is_for(name: &Reference, server: &str) -> bool {
    let bare = server
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    let host = bare.split('/').next().unwrap_or_default();
    let is_hub = |host: &str| {
        matches!(
            host,
            "docker.io" | "index.docker.io" | "registry-1.docker.io"
        )
    };
    host.is_empty() || host == name.registry || is_hub(host) && is_hub(&name.registry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(auth: AuthConfig) -> Result<RegistryAuth, String> {
        let name = "quay.io/a/b".parse().unwrap();
        credentials(&name, Some(&auth)).map_err(|error| error.to_string())
    }

    #[test]
    fn credentials_have_four_forms() {
        let some = AuthConfig::default;
        let text = str::to_owned;
        assert_eq!(check(some()), Ok(RegistryAuth::Anonymous));
        let plain = AuthConfig {
            username: text("u"),
            password: text("p"),
            ..some()
        };
        assert_eq!(check(plain), Ok(basic("u", "p")));
        let encoded = AuthConfig {
            auth: STANDARD.encode("u:p:q"),
            ..some()
        };
        assert_eq!(check(encoded), Ok(basic("u", "p:q")));
        let identity = AuthConfig {
            identity_token: text("t"),
            ..some()
        };
        assert_eq!(check(identity), Ok(basic("<token>", "t")));
        let token = AuthConfig {
            registry_token: text("t"),
            ..some()
        };
        assert_eq!(check(token), Ok(RegistryAuth::Bearer(text("t"))));
    }

    #[test]
    fn credentials_of_another_server_are_not_shown() {
        let auth = |server: &str| AuthConfig {
            username: "u".to_owned(),
            server_address: server.to_owned(),
            ..AuthConfig::default()
        };
        for server in ["quay.io", "https://quay.io", "https://quay.io/v2/", ""] {
            assert_eq!(check(auth(server)), Ok(basic("u", "")), "{server}");
        }
        for server in ["https://index.docker.io/v1/", "evil.io", "quay.io.evil"] {
            assert_eq!(check(auth(server)), Ok(RegistryAuth::Anonymous), "{server}");
        }
        let hub = "busybox".parse().unwrap();
        let auth = auth("https://index.docker.io/v1/");
        assert_eq!(credentials(&hub, Some(&auth)).unwrap(), basic("u", ""));
    }

    #[test]
    fn malformed_credentials_are_named_with_their_image() {
        for (auth, problem) in [
            ("%", "auth is not base64"),
            ("dQ==", "auth is not USER:PASSWORD"),
        ] {
            let auth = AuthConfig {
                auth: auth.to_owned(),
                ..AuthConfig::default()
            };
            let expected =
                format!("image quay.io/a/b:latest: cannot decode credentials ({problem})");
            assert_eq!(check(auth), Err(expected));
        }
    }
}
