//! `certificates.k8s.io/v1`.

use super::Group;
use super::kind::{Kind, Subresource};
use super::selectable::{Read, Selectable};

const V1: (&str, &str) = ("certificates.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[Kind::cluster(
        V1,
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "certificatesigningrequest",
    )
    .short(&["csr"])
    .with(&[
        Subresource::view("approval", "CertificateSigningRequest"),
        Subresource::view("status", "CertificateSigningRequest"),
    ])
    .selectable(
        Selectable::fields(&[("spec.signerName", Read::Text("/spec/signerName"))])
            .without_namespace(),
    )],
};
