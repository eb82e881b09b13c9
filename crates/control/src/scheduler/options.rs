//! How a scheduler is run.

use std::net::SocketAddr;

use plimsoll_core::scheduling::configuration::Configuration;

/// How a scheduler is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Profiles, backoff and leader election, as a configuration file states them. Whether leaders
    /// are elected at all is `leader_election.leader_elect` in it.
    pub configuration: Configuration,
    /// The identity of this process in leader elections; a random name if there is none.
    pub identity: Option<String>,
    /// Where health, metrics and configuration are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// So many writes are under way at once.
    pub max_in_flight: usize,
    /// The seed for ties between nodes; random if there is none.
    pub seed: Option<u64>,
}

impl Options {
    /// Writes under way at once by default.
    pub const DEFAULT_MAX_IN_FLIGHT: usize = 128;

    /// The options for a configuration.
    pub fn new(configuration: Configuration) -> Options {
        Options {
            configuration,
            identity: None,
            listen: None,
            max_in_flight: Options::DEFAULT_MAX_IN_FLIGHT,
            seed: None,
        }
    }
}
