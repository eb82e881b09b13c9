//! Termination messages of containers.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go, `getTerminationMessage`.

use std::io::SeekFrom;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::observed::{Container, State};

/// Most bytes of a message from a file.
const FILE_BYTES: u64 = 4096;
/// Most bytes of a message from a log.
const LOG_BYTES: usize = 2048;
/// Most lines of it.
const LOG_LINES: usize = 80;
/// How much of the end of a log is read to find them.
const LOG_WINDOW_BYTES: u64 = 64 * 1024;

/// Adds the termination message of a container that has ended to the runtime's words.
pub(super) async fn add_message(container: &mut Container) {
    if container.state != State::Exited {
        return;
    }
    let message = message_of(container).await;
    if message.is_empty() {
        return;
    }
    if !container.message.is_empty() {
        container.message.push_str(": ");
    }
    container.message.push_str(&message);
}

async fn message_of(container: &Container) -> String {
    let source = &container.message_source;
    if let Some(file) = &source.file {
        match read_end(file, FILE_BYTES).await {
            Ok(bytes) if !bytes.is_empty() => return String::from_utf8_lossy(&bytes).into_owned(),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return format!("Error on reading termination log {file}: {error}"),
        }
    }
    if !source.falls_back_to_log {
        return String::new();
    }
    match read_end(&source.log, LOG_WINDOW_BYTES).await {
        Ok(bytes) => end_of_log(&String::from_utf8_lossy(&bytes)),
        Err(error) => format!("Error on reading termination message from logs: {error}"),
    }
}

/// The last bytes of a file.
async fn read_end(path: &str, most: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path).await?;
    let length = file.metadata().await?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))
        .await?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// The last lines of a log in CRI format, without what the runtime put before them.
fn end_of_log(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    let mut text = String::new();
    for line in last {
        // Time, stream, tags, text. A line that was cut off at the front is left out.
        let mut fields = line.splitn(4, ' ');
        let tags = fields.nth(2);
        let (Some(tags), Some(content)) = (tags, fields.next()) else {
            continue;
        };
        text.push_str(content);
        if tags != "P" {
            text.push('\n');
        }
    }
    let from = text.len().saturating_sub(LOG_BYTES);
    text.split_off(text.ceil_char_boundary(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::observed::MessageSource;

    fn ended(source: MessageSource) -> Container {
        Container {
            state: State::Exited,
            message_source: source,
            ..Container::default()
        }
    }

    #[tokio::test]
    async fn termination_message_is_the_last_4096_bytes_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("message");
        std::fs::write(&file, format!("x{}", "y".repeat(4096))).unwrap();
        let mut container = ended(MessageSource {
            file: Some(file.to_str().unwrap().to_owned()),
            ..MessageSource::default()
        });
        container.message = "runtime".to_owned();
        add_message(&mut container).await;
        assert_eq!(container.message, format!("runtime: {}", "y".repeat(4096)));
    }

    #[tokio::test]
    async fn termination_message_falls_back_to_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("0.log");
        let line = "2026-01-01T00:00:00.000000000Z stderr F panic\n";
        std::fs::write(&log, line).unwrap();
        for (falls_back, expected) in [(true, "panic\n"), (false, "")] {
            let mut container = ended(MessageSource {
                file: Some(folder.path().join("none").to_str().unwrap().to_owned()),
                log: log.to_str().unwrap().to_owned(),
                falls_back_to_log: falls_back,
            });
            add_message(&mut container).await;
            assert_eq!(container.message, expected);
        }
    }

    #[test]
    fn log_message_is_the_last_80_lines_and_2048_bytes() {
        let line = |text: &str| format!("2026-01-01T00:00:00Z stdout F {text}\n");
        let many: String = (0..100).map(|n| line(&n.to_string())).collect();
        let text = end_of_log(&many);
        assert!(
            text.starts_with("20\n21\n") && text.ends_with("99\n"),
            "{text}"
        );
        let long = line(&"é".repeat(2000));
        assert!(end_of_log(&long).len() <= LOG_BYTES);
        let partial = "2026-01-01T00:00:00Z stdout P one \n2026-01-01T00:00:00Z stdout F line\n";
        assert_eq!(end_of_log(partial), "one line\n");
    }
}
