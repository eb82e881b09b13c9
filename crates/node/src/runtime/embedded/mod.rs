//! A runtime inside the agent's own binary: nothing to install.
