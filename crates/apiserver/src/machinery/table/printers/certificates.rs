//! Certificates.

use plimsoll_core::object::timestamp::Timestamp;

use crate::machinery::table::age::human_duration;
use crate::machinery::table::column::{AGE, Column, NAME};
use crate::machinery::table::printer::{Printer, row};
use crate::machinery::table::view::View;

// Upstream describes the columns in the words of a version that is no longer served.
const SIGNER_NAME: &str = "Requested signer for the request. It is a qualified name in the form: \
    `scope-hostname.io/name`. If empty, it will be defaulted:\n 1. If it's a kubelet client \
    certificate, it is assigned\n    \"kubernetes.io/kube-apiserver-client-kubelet\".\n 2. If \
    it's a kubelet serving certificate, it is assigned\n    \"kubernetes.io/kubelet-serving\".\n \
    3. Otherwise, it is assigned \"kubernetes.io/legacy-unknown\".\nDistribution of trust for \
    signers happens out of band. You can select on this field using `spec.signerName`.";
const REQUEST: &str = "Base64-encoded PKCS#10 CSR data";
const EXPIRATION: &str = "expirationSeconds is the requested duration of validity of the issued \
    certificate. The certificate signer may issue a certificate with a different validity \
    duration so a client must check the delta between the notBefore and and notAfter fields in \
    the issued certificate to determine the actual duration.\n\nThe v1.22+ in-tree \
    implementations of the well-known Kubernetes signers will honor this field as long as the \
    requested duration is not greater than the maximum duration they will honor per the \
    --cluster-signing-duration CLI flag to the Kubernetes controller manager.\n\nCertificate \
    signers may not honor this field for various reasons:\n\n  1. Old signer that is unaware of \
    the field (such as the in-tree\n     implementations prior to v1.22)\n  2. Signer whose \
    configured maximum is shorter than the requested duration\n  3. Signer whose configured \
    minimum is longer than the requested duration\n\nThe minimum valid value for \
    expirationSeconds is 600, i.e. 10 minutes.";
const CONDITIONS: &str = "Conditions applied to the request, such as approval or denial.";

pub(super) const SIGNING_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        Column::text("SignerName", SIGNER_NAME),
        Column::text("Requestor", REQUEST),
        Column::text("RequestedDuration", EXPIRATION),
        Column::text("Condition", CONDITIONS),
    ],
    row: |object| {
        row![
            object.name(),
            object.age(),
            object.text_or("/spec/signerName", "<none>"),
            object.text("/spec/username"),
            requested_duration(object),
            condition(object),
        ]
    },
};

fn requested_duration(object: View<'_>) -> String {
    if !object.has("/spec/expirationSeconds") {
        return "<none>".to_owned();
    }
    let seconds = object.integer("/spec/expirationSeconds");
    human_duration(Timestamp::from_secs(0), Timestamp::from_secs(seconds))
}

fn condition(object: View<'_>) -> String {
    let has = |sort| {
        let mut conditions = object.items("/status/conditions");
        conditions.any(|condition| condition.text("/type") == sort)
    };
    let mut text = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !object.text("/status/certificate").is_empty() {
        text.push_str(",Issued");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn csr_row_shows_its_condition() {
        let mut csr = json!({
            "metadata": {"name": "csr-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"username": "alice", "expirationSeconds": 3600},
        });
        let now = Timestamp::from_rfc3339("2026-01-01T00:01:00Z").expect("a time");
        let cells = |csr: &serde_json::Value| (SIGNING_REQUEST.row)(View::new(csr, now)).cells;
        let shown = ["csr-1", "60s", "<none>", "alice", "60m", "Pending"];
        assert_eq!(cells(&csr), shown);
        csr["status"] = json!({
            "certificate": "YQ==",
            "conditions": [{"type": "Approved"}, {"type": "Failed"}],
        });
        assert_eq!(cells(&csr)[5], "Approved,Failed,Issued");
    }
}
