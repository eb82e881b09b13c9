//! How many connections a client may have.
//!
//! Any client that reaches the port can open connections, so each address has few until its client
//! has authenticated; after that they count for the user. When there is one too many, the oldest is
//! closed: a legitimate client has authenticated long before, and a client that floods the port
//! closes its own connections, not those of a later client at the same address.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Maximum of unauthenticated connections per address.
const EACH_ADDRESS: usize = 128;

/// Maximum per user: pods on all nodes may share a service account.
const EACH_USER: usize = 4096;

/// What a connection counts for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Address(IpAddr),
    User(String),
}

impl Owner {
    fn most(&self) -> usize {
        match self {
            Owner::Address(_) => EACH_ADDRESS,
            Owner::User(_) => EACH_USER,
        }
    }
}

/// All open connections.
#[derive(Debug, Default)]
pub(in crate::server) struct Connections {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_number: u64,
    /// By owner, oldest first.
    open: BTreeMap<Owner, VecDeque<Open>>,
}

#[derive(Debug)]
struct Open {
    number: u64,
    has_to_close: Arc<Notify>,
}

/// An open connection; no longer counted when dropped.
#[derive(Debug)]
pub(in crate::server) struct Connection {
    all: Arc<Connections>,
    number: u64,
    owner: Mutex<Owner>,
    has_to_close: Arc<Notify>,
}

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection from an address.
    pub(in crate::server) fn open(self: &Arc<Self>, address: IpAddr) -> Connection {
        let owner = Owner::Address(source_of(address));
        let has_to_close = Arc::new(Notify::new());
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        state.add(&owner, number, &has_to_close);
        drop(state);
        Connection {
            all: Arc::clone(self),
            number,
            owner: Mutex::new(owner),
            has_to_close,
        }
    }
}

impl State {
    fn add(&mut self, owner: &Owner, number: u64, has_to_close: &Arc<Notify>) {
        let others = self.open.entry(owner.clone()).or_default();
        if others.len() >= owner.most()
            && let Some(oldest) = others.pop_front()
        {
            tracing::debug!(?owner, "too many connections, closed the oldest");
            oldest.has_to_close.notify_one();
        }
        others.push_back(Open {
            number,
            has_to_close: Arc::clone(has_to_close),
        });
    }

    fn remove(&mut self, owner: &Owner, number: u64) {
        if let Some(others) = self.open.get_mut(owner) {
            others.retain(|other| other.number != number);
            if others.is_empty() {
                self.open.remove(owner);
            }
        }
    }
}

impl Connection {
    /// The client has authenticated as this user.
    pub(in crate::server) fn is_of(&self, user: &str) {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*owner, Owner::User(known) if known == user) {
            return;
        }
        let before = std::mem::replace(&mut *owner, Owner::User(user.to_owned()));
        let mut state = self.all.state();
        state.remove(&before, self.number);
        state.add(&owner, self.number, &self.has_to_close);
    }

    /// Resolves when the connection has to be closed in favour of others.
    pub(in crate::server) async fn has_to_close(&self) {
        self.has_to_close.notified().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        self.all.state().remove(&owner, self.number);
    }
}

/// What counts as one address: for IPv6 the network, since each host has too many addresses to
/// count.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn has_to_close(connection: &Connection) -> bool {
        connection.has_to_close().now_or_never().is_some()
    }

    #[test]
    fn oldest_connection_of_an_address_is_closed() {
        let all = Arc::new(Connections::default());
        let open = |address: &str| all.open(address.parse().unwrap());
        let known = open("10.0.0.1");
        known.is_of("admin");
        let other = open("10.0.0.2");
        let many: Vec<Connection> = (0..EACH_ADDRESS).map(|_| open("10.0.0.1")).collect();
        assert!(!many.iter().any(has_to_close));
        let one_more = open("::ffff:10.0.0.1");
        assert!(has_to_close(&many[0]) && !has_to_close(&many[1]));
        assert!(!has_to_close(&known) && !has_to_close(&other));
        drop((many, one_more, other, known));
        assert!(all.state().open.is_empty());
    }

    #[test]
    fn oldest_connection_of_a_user_is_closed_across_addresses() {
        let all = Arc::new(Connections::default());
        let open = |address: &str, user: &str| {
            let connection = all.open(address.parse().unwrap());
            connection.is_of(user);
            connection
        };
        let other = open("10.0.0.1", "other");
        let many = (0..EACH_USER).map(|_| open("10.0.0.1", "greedy"));
        let many: Vec<Connection> = many.collect();
        assert!(!has_to_close(&many[0]));
        let _one_more = open("10.0.0.2", "greedy");
        assert!(has_to_close(&many[0]) && !has_to_close(&many[1]));
        assert!(!has_to_close(&other));
    }

    #[test]
    fn hosts_of_one_ipv6_network_count_together() {
        let source = |address: &str| source_of(address.parse().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
    }
}
