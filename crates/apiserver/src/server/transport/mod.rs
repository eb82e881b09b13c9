//! From sockets to requests: connections and their limits.
//!
//! `listener` accepts connections, with `tls` (certificates on them), `priority` (threads for nodes and
//! administrators), `connections` (how many a client may have) and `resets` (requests that clients
//! cancel). `local` is the client inside of the process, which needs no socket.

pub(super) mod connections;
pub(super) mod listener;
pub(super) mod local;
pub(super) mod priority;
pub(super) mod resets;
pub(super) mod tls;
