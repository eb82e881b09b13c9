//! `plimsoll node`: the node agent, joined to any Kubernetes API.

mod arguments;

pub(crate) use arguments::{DEFAULT_DATA_DIR, NodeArguments, RUNTIME_HELPER, subject};
