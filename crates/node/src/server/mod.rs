//! The kubelet's face: logs, commands, ports, figures, over TLS.
