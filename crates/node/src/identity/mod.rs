//! The identity of a node: keys, signing requests, and how a machine comes to have a certificate.
//!
//! A machine joins as kubeadm's do: with a token it reads the cluster's address and certificate authority,
//! checks that against a pin, and requests a certificate for its later requests.
//! Keys are made here and never leave.
//!
//! Reading order: [`pin`] (trusted authorities), [`request`] (signing requests), `signing` (submitting
//! them), `discovery` (a server that is not known yet), [`join`] (all of it), [`kubeconfig`] (keeping it), [`exchange`] and [`renewal`] (exchanging it
//! before it ends).

mod discovery;
pub mod exchange;
pub mod join;
pub mod kubeconfig;
pub mod pin;
pub mod renewal;
pub mod request;
mod signing;

pub use signing::{SigningError, request_serving_certificate};
