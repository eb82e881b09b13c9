//! Hearing from logind that the machine is to be switched off, and having it wait.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use zbus::Connection;

/// Where logind's settings may be overridden, and the file that does.
const SETTINGS: &str = "/etc/systemd/logind.conf.d";
const OVERRIDE: &str = "99-kubelet.conf";
const HANG_UP: i32 = 1;
/// How often the agent checks whether logind uses the override, with growing pauses.
const TRIES: u32 = 5;
const FIRST_LOOK: Duration = Duration::from_millis(100);

#[zbus::proxy(
    interface = "org.freedesktop.login1.Manager",
    default_service = "org.freedesktop.login1",
    default_path = "/org/freedesktop/login1"
)]
trait Manager {
    fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::Result<zbus::OwnedFd>;

    #[zbus(property(emits_changed_signal = "false"), name = "InhibitDelayMaxUSec")]
    fn longest_delay_micros(&self) -> zbus::Result<u64>;

    #[zbus(signal)]
    fn prepare_for_shutdown(&self, start: bool) -> zbus::Result<()>;
}

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
trait Systemd {
    fn kill_unit(&self, name: &str, who: &str, signal: i32) -> zbus::Result<()>;
}

/// Shutdowns of this machine cannot be detected.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogindError {
    #[error("cannot connect to logind")]
    Bus(#[from] zbus::Error),
    #[error("cannot write {SETTINGS}/{OVERRIDE}")]
    Override(#[source] io::Error),
    #[error(
        "logind delays shutdown by at most {granted:?}, which is less than the required {wanted:?}"
    )]
    TooShort { granted: Duration, wanted: Duration },
}

/// A connection to logind, which waits while a lock is held.
pub(super) struct Logind<'a> {
    manager: ManagerProxy<'a>,
    announcements: PrepareForShutdownStream,
    /// Closing it lets the machine go off.
    lock: Option<OwnedFd>,
}

impl Logind<'_> {
    /// Has logind delay a shutdown for that long, and announce it.
    pub(super) async fn open(wanted: Duration) -> Result<Logind<'static>, LogindError> {
        let bus = Connection::system().await?;
        Logind::on(&bus, wanted, Path::new(SETTINGS)).await
    }

    async fn on(
        bus: &Connection,
        wanted: Duration,
        settings: &Path,
    ) -> Result<Logind<'static>, LogindError> {
        let manager = ManagerProxy::new(bus).await?;
        let granted = longest_delay(&manager).await?;
        if granted < wanted {
            raise_delay(bus, &manager, wanted, settings).await?;
        }
        let announcements = manager.receive_prepare_for_shutdown().await?;
        let mut logind = Logind {
            manager,
            announcements,
            lock: None,
        };
        logind.inhibit().await?;
        Ok(logind)
    }

    /// Takes a lock, in the place of one that is held.
    pub(super) async fn inhibit(&mut self) -> Result<(), LogindError> {
        let why = "Kubelet needs time to handle node shutdown";
        let lock = self.manager.inhibit("shutdown", "kubelet", why, "delay");
        self.lock = Some(lock.await?.into());
        Ok(())
    }

    /// Lets the machine go off.
    pub(super) fn release(&mut self) {
        self.lock = None;
    }

    /// The next announcement: `true` of a shutdown, `false` that there is none after all. `None` if
    /// the connection to logind is closed.
    pub(super) async fn next(&mut self) -> Option<bool> {
        loop {
            let announcement = self.announcements.next().await?;
            if let Ok(args) = announcement.args() {
                return Some(args.start);
            }
        }
    }
}

async fn longest_delay(manager: &ManagerProxy<'_>) -> zbus::Result<Duration> {
    let micros = manager.longest_delay_micros().await?;
    Ok(Duration::from_micros(micros))
}

async fn raise_delay(
    bus: &Connection,
    manager: &ManagerProxy<'_>,
    wanted: Duration,
    settings: &Path,
) -> Result<(), LogindError> {
    let text = format!(
        "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={}\n",
        wanted.as_secs()
    );
    let written = std::fs::create_dir_all(settings);
    let written = written.and_then(|()| std::fs::write(settings.join(OVERRIDE), text));
    written.map_err(LogindError::Override)?;
    let systemd = SystemdProxy::new(bus).await?;
    let unit = "systemd-logind.service";
    systemd.kill_unit(unit, "all", HANG_UP).await?;
    let mut granted = Duration::ZERO;
    for attempt in 0..TRIES {
        tokio::time::sleep(FIRST_LOOK * 2_u32.pow(attempt)).await;
        granted = longest_delay(manager).await?;
        if granted >= wanted {
            return Ok(());
        }
    }
    Err(LogindError::TooShort { granted, wanted })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use zbus::object_server::SignalEmitter;

    use super::*;

    /// What logind has: the longest delay in microseconds, and how it came to another.
    struct FakeManager {
        delay: Arc<AtomicU64>,
        locks: std::sync::mpsc::Sender<(String, std::io::PipeReader)>,
    }

    #[zbus::interface(name = "org.freedesktop.login1.Manager")]
    impl FakeManager {
        fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::OwnedFd {
            let (read, write) = std::io::pipe().unwrap();
            let asked = format!("{what} {who} {mode}: {why}");
            self.locks.send((asked, read)).unwrap();
            zbus::OwnedFd::from(OwnedFd::from(write))
        }

        #[zbus(property, name = "InhibitDelayMaxUSec")]
        fn longest_delay_micros(&self) -> u64 {
            self.delay.load(Ordering::Relaxed)
        }

        #[zbus(signal)]
        async fn prepare_for_shutdown(emitter: &SignalEmitter<'_>, start: bool)
        -> zbus::Result<()>;
    }

    /// Reads its settings again when hung up on.
    struct FakeSystemd {
        delay: Arc<AtomicU64>,
        settings: std::path::PathBuf,
    }

    #[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
    impl FakeSystemd {
        fn kill_unit(&self, name: &str, who: &str, signal: i32) {
            assert_eq!((name, who, signal), ("systemd-logind.service", "all", 1));
            let text = std::fs::read_to_string(self.settings.join(OVERRIDE)).unwrap();
            let secs = text.trim().rsplit('=').next().unwrap();
            let micros = secs.parse::<u64>().unwrap() * 1_000_000;
            self.delay.store(micros, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn inhibitor_lock_delays_the_shutdown_signal() {
        let settings = tempfile::tempdir().unwrap();
        let delay = Arc::new(AtomicU64::new(5_000_000));
        let (locks, taken) = std::sync::mpsc::channel();
        let (server_end, client_end) = UnixStream::pair().unwrap();
        let guid = zbus::Guid::generate();
        let manager = FakeManager {
            delay: Arc::clone(&delay),
            locks,
        };
        let systemd = FakeSystemd {
            delay: Arc::clone(&delay),
            settings: settings.path().to_owned(),
        };
        let server = zbus::connection::Builder::unix_stream(server_end)
            .server(guid)
            .p2p()
            .serve_at("/org/freedesktop/login1", manager)
            .serve_at("/org/freedesktop/systemd1", systemd)
            .build();
        let client = zbus::connection::Builder::unix_stream(client_end)
            .p2p()
            .build();
        let (server, client) = tokio::try_join!(server, client).unwrap();

        let wanted = Duration::from_secs(30);
        let mut logind = Logind::on(&client, wanted, settings.path()).await.unwrap();
        assert_eq!(delay.load(Ordering::Relaxed), 30_000_000);
        let (asked, mut lock) = taken.recv().unwrap();
        assert_eq!(
            asked,
            "shutdown kubelet delay: Kubelet needs time to handle node shutdown"
        );
        let manager = server
            .object_server()
            .interface::<_, FakeManager>("/org/freedesktop/login1")
            .await
            .unwrap();
        for start in [true, false] {
            let announced = FakeManager::prepare_for_shutdown(manager.signal_emitter(), start);
            announced.await.unwrap();
            assert_eq!(logind.next().await, Some(start));
        }
        // The lock is given back when it is let go of.
        logind.release();
        let end =
            tokio::task::spawn_blocking(move || std::io::Read::read(&mut lock, &mut [0]).unwrap());
        assert_eq!(end.await.unwrap(), 0);
    }
}
