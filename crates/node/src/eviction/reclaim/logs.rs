//! Logs that grew too large.
//!
//! The log of a running container is renamed once it has its size, and the runtime opens a new
//! one; older ones are compressed, the oldest go. Matches v1.36
//! pkg/kubelet/logs/container_log_manager.go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::beneath;
use plimsoll_runtime::wire::{ContainerFilter, ContainerState, ContainerStateValue};
use plimsoll_runtime::{Error, Runtime};
use rustix::fs::{Mode, OFlags};
use time::OffsetDateTime;

/// Logs are looked at no more often than this (`containerLogMonitorInterval`): each look asks the
/// runtime about every container.
pub const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

const COMPRESSED: &str = "gz";
const UNFINISHED: &str = "tmp";

/// When logs are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `containerLogMaxSize`; none if not above zero.
    pub max_size: Bytes,
    /// `containerLogMaxFiles`, the one that is written to among them.
    pub max_files: i32,
}

/// Rotates the logs of all running containers that have their size.
pub async fn rotate_all(
    runtime: &dyn Runtime,
    policy: Policy,
    now: Timestamp,
) -> Result<(), Error> {
    if policy.max_size <= Bytes::ZERO {
        return Ok(());
    }
    let running = ContainerFilter {
        state: Some(ContainerStateValue {
            state: ContainerState::ContainerRunning as i32,
        }),
        ..ContainerFilter::default()
    };
    for container in runtime.list_containers(&running).await? {
        let status = match runtime.container_status(&container.id).await {
            Ok(status) => status,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let log = PathBuf::from(&status.log_path);
        if status.log_path.is_empty() {
            continue;
        }
        if let Err(error) = rotate(runtime, &container.id, &log, policy, now).await {
            tracing::warn!(log = %log.display(), %error, "failed to rotate container log");
        }
    }
    Ok(())
}

/// Why a log is not rotated.
#[derive(Debug, thiserror::Error)]
enum RotateError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("cannot reopen the container log: {0}")]
    Reopen(String),
}

async fn rotate(
    runtime: &dyn Runtime,
    id: &str,
    log: &Path,
    policy: Policy,
    now: Timestamp,
) -> Result<(), RotateError> {
    let reopen = async || {
        let opened = runtime.reopen_container_log(id).await;
        opened.map_err(|error| RotateError::Reopen(error.chain()))
    };
    let size = match fs::symlink_metadata(log) {
        Ok(metadata) => metadata.len(),
        // The log was renamed, but the runtime has not reopened it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return reopen().await,
        Err(error) => return Err(error.into()),
    };
    if size < policy.max_size.0.cast_unsigned() {
        return Ok(());
    }
    make_room(log, policy.max_files)?;
    let rotated = with_suffix(log, &stamp(now));
    fs::rename(log, &rotated)?;
    if let Err(error) = reopen().await {
        // It is still written to under its new name.
        fs::rename(&rotated, log)?;
        return Err(error);
    }
    Ok(())
}

/// Compresses what was rotated before and removes the oldest, so that with the log itself and the
/// one it becomes there are no more than allowed.
fn make_room(log: &Path, max_files: i32) -> io::Result<()> {
    let kept = usize::try_from(max_files.saturating_sub(2)).unwrap_or_default();
    let mut rotated = Vec::new();
    for path in rotated_logs(log)? {
        match path.extension().is_some_and(|found| found == UNFINISHED) {
            true => fs::remove_file(path)?,
            false => rotated.push(path),
        }
    }
    let beyond = rotated.len().saturating_sub(kept);
    for path in rotated.drain(..beyond) {
        fs::remove_file(path)?;
    }
    let plain = |path: &&PathBuf| path.extension().is_none_or(|found| found != COMPRESSED);
    rotated
        .iter()
        .filter(plain)
        .try_for_each(|path| compress(path))
}

/// Oldest first: the time stands in their names.
fn rotated_logs(log: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{}.", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn compress(path: &Path) -> io::Result<()> {
    let compressed = with_suffix(path, COMPRESSED);
    let unfinished = with_suffix(path, UNFINISHED);
    // A pod that may write into the directories of logs could have put links there.
    let open = |path: &Path, flags: OFlags, mode: Mode| {
        let (pod, below) = beneath::in_pod(path)?;
        beneath::open_file(pod, below, flags, mode)
    };
    let mut log = open(path, OFlags::RDONLY, Mode::empty())?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let made = open(&unfinished, new, Mode::RUSR | Mode::WUSR | Mode::RGRP)?;
    let mut encoder = GzEncoder::new(made, Compression::default());
    io::copy(&mut log, &mut encoder)?;
    encoder.finish()?;
    fs::rename(unfinished, compressed)?;
    fs::remove_file(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// `20260102-150405`.
fn stamp(now: Timestamp) -> String {
    let seconds = now.as_nanos().div_euclid(1_000_000_000);
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn old_logs_are_compressed_and_the_oldest_removed() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("0.log");
        let others = [
            "0.log",
            "0.log.20260101-000001.gz",
            "0.log.20260101-000002.gz",
            "0.log.20260101-000003.gz",
            "0.log.20260101-000004",
            "0.log.20260101-000004.tmp",
            "1.log",
        ];
        for name in others {
            fs::write(folder.path().join(name), name).unwrap();
        }
        make_room(&log, 5).unwrap();
        let entries = fs::read_dir(folder.path()).unwrap();
        let names: BTreeSet<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let expected = [
            "0.log",
            "0.log.20260101-000002.gz",
            "0.log.20260101-000003.gz",
            "0.log.20260101-000004.gz",
            "1.log",
        ];
        assert_eq!(
            names.iter().map(String::as_str).collect::<Vec<_>>(),
            expected
        );
        let compressed = File::open(folder.path().join("0.log.20260101-000004.gz")).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(compressed)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "0.log.20260101-000004");
    }

    #[test]
    fn a_link_in_place_of_a_log_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let container = folder.path().join("pod/app");
        fs::create_dir_all(&container).unwrap();
        symlink(&secret, container.join("0.log.20260101-000001")).unwrap();
        assert!(make_room(&container.join("0.log"), 5).is_err());
        assert!(!container.join("0.log.20260101-000001.gz").exists());
        assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    }

    #[test]
    fn file_name_has_the_time() {
        let now = Timestamp::from_rfc3339("2026-01-02T15:04:05.5Z").unwrap();
        assert_eq!(stamp(now), "20260102-150405");
    }
}
