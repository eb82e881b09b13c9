//! The socket where plugins register.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use http::{Request, Response};
use hyper::body::Incoming;
use plimsoll_core::object::resource_rules::is_extended;
use plimsoll_core::problem::quoted;
use plimsoll_core::resources::ResourceName;
use tonic::body::Body;

use super::wire::{Empty, RegisterRequest, VERSION};
use super::{DeviceManager, grpc};

/// The name of the socket.
const SOCKET: &str = "kubelet.sock";

/// Makes the directory, and removes the sockets of plugins: they register again when the agent's
/// own socket appears.
pub(super) fn clean_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o750))?;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_socket() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Lets plugins register until the future is dropped.
pub(super) async fn serve(manager: DeviceManager) -> io::Result<Infallible> {
    let socket = manager.directory().join(SOCKET);
    grpc::serve(&socket, move |request| answer(manager.clone(), request)).await
}

async fn answer(manager: DeviceManager, request: Request<Incoming>) -> Response<Body> {
    if request.uri().path() != "/v1beta1.Registration/Register" {
        return grpc::unknown_method();
    }
    let call = move |request: RegisterRequest| {
        let manager = manager.clone();
        async move {
            let resource = request.resource_name.clone();
            let registered = register(manager, request).await;
            if let Err(error) = &registered {
                tracing::warn!(resource, error, "failed to register device plugin");
            }
            registered.map(|()| Empty {})
        }
    };
    grpc::unary(request, call).await
}

async fn register(manager: DeviceManager, request: RegisterRequest) -> Result<(), String> {
    if request.version != VERSION {
        return Err(format!(
            "requested API version {} is not supported by kubelet. Supported version is [{}]",
            quoted(&request.version),
            quoted(VERSION)
        ));
    }
    let resource = ResourceName::from(request.resource_name.as_str());
    if !is_extended(&resource) {
        return Err(format!(
            "the ResourceName {} is invalid",
            quoted(resource.as_str())
        ));
    }
    let socket = plugin_socket(manager.directory(), &request.endpoint)?;
    manager.connect(resource, &socket).await
}

/// The socket of a plugin, which is in the same directory.
fn plugin_socket(directory: &Path, endpoint: &str) -> Result<PathBuf, String> {
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let endpoint = Path::new(endpoint);
    match endpoint.file_name().is_some() && endpoint.components().all(is_below) {
        true => Ok(directory.join(endpoint)),
        false => Err(format!(
            "the endpoint {} is invalid: it has to be the name of a socket in {}",
            quoted(&endpoint.to_string_lossy()),
            directory.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_a_plugin_is_in_the_directory() {
        let directory = Path::new("/d");
        assert_eq!(
            plugin_socket(directory, "gpu.sock"),
            Ok("/d/gpu.sock".into())
        );
        for endpoint in ["", "..", "../gpu.sock", "/run/gpu.sock"] {
            plugin_socket(directory, endpoint).unwrap_err();
        }
    }
}
