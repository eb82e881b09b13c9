//! Reloading a changed configuration without a restart.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{EncryptedStore, Keys};

/// How often the file is checked.
const PERIOD: Duration = Duration::from_secs(1);

/// Reloads the file whenever its content differs from `text`, for as long as the store
/// is in use. An invalid configuration changes nothing.
pub fn follow(store: &Arc<EncryptedStore>, path: PathBuf, mut text: String) {
    let store = Arc::downgrade(store);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            let Some(store) = store.upgrade() else { return };
            let file = path.display().to_string();
            let read = match std::fs::read_to_string(&path) {
                Ok(read) if read == text => continue,
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(file, %error, "failed to read encryption configuration");
                    continue;
                }
            };
            match Keys::parse(&read) {
                Ok(keys) => {
                    store.replace(keys);
                    tracing::info!(file, "reloaded encryption configuration");
                }
                Err(problems) => {
                    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    let problems = problems.join("; ");
                    tracing::error!(file, problems, "failed to reload encryption configuration");
                }
            }
            text = read;
        }
    });
}
