//! CRI calls for containers: [`create`], and [`life`] from start to removal.

mod create;
mod life;

use std::io;

use prost::Message;

use super::files::{self, Durability};
use super::layout::ContainerDir;
use super::table::Sandbox;
use crate::Error;
use crate::wire::ContainerConfig;

fn check_ready(sandbox: &Sandbox) -> Result<(), Error> {
    if *sandbox.is_ready.borrow() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "sandbox {:?} is not ready",
        sandbox.id
    )))
}

fn write_config(dir: &ContainerDir, config: &ContainerConfig) -> io::Result<()> {
    files::write(&dir.config(), &config.encode_to_vec(), Durability::Process)
}

/// The configuration of a container, as it was made.
pub(super) fn read_config(dir: &ContainerDir) -> io::Result<ContainerConfig> {
    let content = files::read(&dir.config())?.ok_or(io::ErrorKind::NotFound)?;
    ContainerConfig::decode(content.as_slice()).map_err(io::Error::other)
}
