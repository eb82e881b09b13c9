//! The agent: registers a node, keeps it alive in the API, and runs its pods.
