//! `--admission-control-config-file`: reading the configurations of admission plugins.

use std::path::Path;

use anyhow::{Context, Result};
use plimsoll_core::admission::configuration::{self, Given, Plugin};
use plimsoll_core::admission::event_rate_limit::EventRateLimits;
use plimsoll_core::admission::pod_security::PodSecurity;

use crate::input::read_bytes;
use crate::mistakes::mistakes;

/// The configured plugins.
#[derive(Debug, Default)]
pub(crate) struct Plugins {
    pub(crate) event_rate_limits: EventRateLimits,
    pub(crate) pod_security: PodSecurity,
}

/// Reads the file and those that it names; without one, every plugin has its defaults.
pub(crate) fn read(file: Option<&str>) -> Result<Plugins> {
    let mut plugins = Plugins::default();
    let Some(file) = file else {
        return Ok(plugins);
    };
    let configured = configuration::read(&read_bytes(file)?);
    for plugin in configured.map_err(|problems| mistakes(file, &problems))? {
        let (source, given) = match (plugin.given, plugin.path) {
            (Some(given), _) => (file.to_owned(), given),
            (None, Some(path)) => read_beside(file, &path)?,
            (None, None) => continue,
        };
        match plugin.plugin {
            Plugin::EventRateLimit => {
                let read = EventRateLimits::read(&given);
                plugins.event_rate_limits =
                    read.map_err(|problems| mistakes(&source, &problems))?;
            }
            Plugin::PodSecurity => {
                let read = PodSecurity::read(&given);
                plugins.pod_security = read.map_err(|problems| mistakes(&source, &problems))?;
            }
        }
    }
    Ok(plugins)
}

/// A plugin's own file, whose path is relative to the file that names it.
fn read_beside(file: &str, path: &str) -> Result<(String, Given)> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let path = folder.join(path);
    let path = path
        .to_str()
        .context("the path of a plugin's file is not UTF-8")?;
    let given = Given::from_file(&read_bytes(path)?);
    let given = given.map_err(|problems| mistakes(path, &problems))?;
    Ok((path.to_owned(), given))
}
