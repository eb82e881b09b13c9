//! What the runtime has of a pod: its sandboxes and containers, as they were at one moment.

use std::net::IpAddr;
use std::str::FromStr;

use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::wire::{
    ContainerState, ContainerStatus, LinuxContainerResources, Mount, NamespaceMode,
    PodSandboxState, PodSandboxStatus,
};

use super::spec::labels::{self, ContainerNotes};

/// The sandboxes and containers of one pod, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Sandboxes, newest first.
    pub sandboxes: Vec<Sandbox>,
    /// Containers of all sandboxes, newest first.
    pub containers: Vec<Container>,
}

/// A sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The runtime's id.
    pub id: String,
    /// The how-manieth of the pod it is, from 0.
    pub attempt: u32,
    /// Whether containers can run in it.
    pub is_ready: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it shares the network of the node.
    pub uses_host_network: bool,
    /// Whether the runtime reported its network at all.
    pub has_network: bool,
    /// Its addresses, the primary one first.
    pub ips: Vec<String>,
}

/// The state of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Made, not started.
    Created,
    /// Running.
    Running,
    /// Ended.
    Exited,
    /// The runtime does not know.
    #[default]
    Unknown,
}

impl State {
    /// As messages to users have it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Created => "created",
            State::Running => "running",
            State::Exited => "exited",
            State::Unknown => "unknown",
        }
    }
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container {
    /// The runtime's id.
    pub id: String,
    /// Its name in the pod.
    pub name: String,
    /// The sandbox it is in.
    pub sandbox_id: String,
    /// Its state.
    pub state: State,
    /// The image as requested.
    pub image: String,
    /// The image with its digest.
    pub image_ref: String,
    /// [`labels::container_hash`] of the container it was made from.
    pub hash: u64,
    /// How often the container of that name had been started before.
    pub restart_count: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was started, if it was.
    pub started_at: Option<Timestamp>,
    /// When it ended, if it has.
    pub finished_at: Option<Timestamp>,
    /// What it ended with.
    pub exit_code: i32,
    /// Why it ended, in one word.
    pub reason: String,
    /// Why it ended, for people: the runtime's words and the termination message.
    pub message: String,
    /// The limits the runtime says are in force.
    pub resources: Option<LinuxContainerResources>,
    /// Where its termination message may be found.
    pub message_source: MessageSource,
}

/// Where the termination message of a container may be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageSource {
    /// The file on the node that the container sees as its termination message path.
    pub file: Option<String>,
    /// Its log.
    pub log: String,
    /// Whether the log replaces an empty file after a failure.
    pub falls_back_to_log: bool,
}

impl Observed {
    /// Puts everything in order, newest first. Sandboxes and containers of a name are numbered, and
    /// the numbers say which is newer; the times do not when the clock was set back in between.
    pub fn new(mut sandboxes: Vec<Sandbox>, mut containers: Vec<Container>) -> Observed {
        sandboxes.sort_by(|a, b| {
            let key = |s: &Sandbox| (s.attempt, s.created_at);
            key(b).cmp(&key(a)).then_with(|| b.id.cmp(&a.id))
        });
        containers.sort_by(|a, b| {
            let key = |c: &Container| (c.restart_count, c.created_at);
            key(b).cmp(&key(a)).then_with(|| b.id.cmp(&a.id))
        });
        Observed {
            sandboxes,
            containers,
        }
    }

    /// The newest container of that name.
    pub fn latest(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|c| c.name == name)
    }

    /// Containers that run.
    pub fn running(&self) -> impl Iterator<Item = &Container> {
        let all = self.containers.iter();
        all.filter(|container| container.state == State::Running)
    }

    /// Whether anything runs or could.
    pub fn is_idle(&self) -> bool {
        self.running().next().is_none() && !self.sandboxes.iter().any(|s| s.is_ready)
    }

    /// The newest sandbox, if it is ready.
    pub fn active_sandbox(&self) -> Option<&Sandbox> {
        self.sandboxes.first().filter(|sandbox| sandbox.is_ready)
    }

    /// The addresses of the newest sandbox, if it is ready.
    pub fn ips(&self) -> &[String] {
        self.active_sandbox().map_or(&[], |sandbox| &sandbox.ips)
    }
}

impl Sandbox {
    /// Reads the runtime's answer.
    pub fn from_wire(status: &PodSandboxStatus) -> Sandbox {
        let options = status.linux.as_ref().and_then(|linux| {
            let namespaces = linux.namespaces.as_ref()?;
            namespaces.options.as_ref()
        });
        let network = status.network.as_ref();
        let ips = network.map_or_else(Vec::new, |network| {
            let primary = Some(network.ip.as_str()).filter(|ip| !ip.is_empty());
            let additional = network.additional_ips.iter().map(|ip| ip.ip.as_str());
            primary
                .into_iter()
                .chain(additional)
                .map(str::to_owned)
                .collect()
        });
        let are_addresses = ips.iter().all(|ip| IpAddr::from_str(ip).is_ok());
        Sandbox {
            id: status.id.clone(),
            attempt: status.metadata.as_ref().map_or(0, |meta| meta.attempt),
            is_ready: status.state == PodSandboxState::SandboxReady as i32,
            created_at: Timestamp::from_nanos(status.created_at),
            uses_host_network: options.is_some_and(|o| o.network == NamespaceMode::Node as i32),
            has_network: network.is_some(),
            ips: if are_addresses { ips } else { Vec::new() },
        }
    }
}

impl Container {
    /// Reads the runtime's answer; the caller reads the termination message from its file.
    pub fn from_wire(status: &ContainerStatus, sandbox_id: &str) -> Container {
        let state = match ContainerState::try_from(status.state) {
            Ok(ContainerState::ContainerCreated) => State::Created,
            Ok(ContainerState::ContainerRunning) => State::Running,
            Ok(ContainerState::ContainerExited) => State::Exited,
            Ok(ContainerState::ContainerUnknown) | Err(_) => State::Unknown,
        };
        let metadata = status.metadata.as_ref();
        let named = status.labels.get(labels::CONTAINER_NAME).cloned();
        let name = named.or_else(|| metadata.map(|meta| meta.name.clone()));
        let notes = ContainerNotes::from_annotations(&status.annotations);
        let has_ended = state == State::Exited;
        let ended = |text: &str| {
            if has_ended {
                text.to_owned()
            } else {
                String::new()
            }
        };
        Container {
            id: status.id.clone(),
            name: name.unwrap_or_default(),
            sandbox_id: sandbox_id.to_owned(),
            state,
            image: status
                .image
                .as_ref()
                .map(|image| image.image.clone())
                .unwrap_or_default(),
            image_ref: status.image_ref.clone(),
            hash: notes.hash,
            restart_count: notes.restart_count,
            created_at: Timestamp::from_nanos(status.created_at),
            started_at: (state != State::Created)
                .then_some(status.started_at)
                .filter(|nanos| *nanos > 0)
                .map(Timestamp::from_nanos),
            finished_at: (has_ended && status.finished_at > 0)
                .then(|| Timestamp::from_nanos(status.finished_at)),
            exit_code: if has_ended { status.exit_code } else { 0 },
            reason: ended(&status.reason),
            message: ended(&status.message),
            resources: status.resources.as_ref().and_then(|r| r.linux.clone()),
            message_source: message_source(status, &notes),
        }
    }
}

fn message_source(status: &ContainerStatus, notes: &ContainerNotes) -> MessageSource {
    let path = &notes.termination_message_path;
    let is_mount = |mount: &&Mount| mount.container_path == *path;
    let mount = status.mounts.iter().find(is_mount);
    MessageSource {
        file: mount
            .filter(|_| !path.is_empty())
            .map(|mount| mount.host_path.clone()),
        log: status.log_path.clone(),
        // What could not even be started has no log.
        falls_back_to_log: notes.termination_message_policy == "FallbackToLogsOnError"
            && status.exit_code != 0
            && status.reason != "ContainerCannotRun",
    }
}
