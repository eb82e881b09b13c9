//! Writes `crates/apiserver/src/kinds/definitions.json.gz`: the schemas of k8s-openapi for the kinds
//! that the API server serves.
//!
//! The API server embeds the file, because compiling k8s-openapi with its schemas takes minutes
//! and makes the program several megabytes larger.
//!
//! ```console
//! $ cargo run --manifest-path crates/apiserver/schemas/Cargo.toml            # writes the file
//! $ cargo run --manifest-path crates/apiserver/schemas/Cargo.toml -- --check # compares it
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::api::{
    apps, authentication, authorization, autoscaling, batch, certificates, coordination, core,
    events, node, policy, rbac, resource, scheduling, storage,
};
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::generate::SchemaSettings;
use serde_json::Value;

macro_rules! generate_for {
    ($generator:ident: $($ty:ty),* $(,)?) => {
        $(let _ = $generator.subschema_for::<$ty>();)*
    };
}

fn generate() -> BTreeMap<String, Value> {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.transforms.clear();
    });
    let mut generator = settings.into_generator();
    generate_for!(generator:
        core::v1::Binding, core::v1::ConfigMap, core::v1::Event, core::v1::LimitRange,
        core::v1::Namespace, core::v1::Node, core::v1::PersistentVolume,
        core::v1::PersistentVolumeClaim, core::v1::Pod, core::v1::PodTemplate,
        core::v1::ReplicationController, core::v1::ResourceQuota, core::v1::Secret,
        core::v1::Service, core::v1::ServiceAccount,
        apps::v1::ControllerRevision, apps::v1::DaemonSet, apps::v1::Deployment,
        apps::v1::ReplicaSet, apps::v1::StatefulSet,
        authentication::v1::SelfSubjectReview, authentication::v1::TokenRequest,
        authentication::v1::TokenReview,
        authorization::v1::LocalSubjectAccessReview, authorization::v1::SelfSubjectAccessReview,
        authorization::v1::SelfSubjectRulesReview, authorization::v1::SubjectAccessReview,
        autoscaling::v1::Scale,
        batch::v1::CronJob, batch::v1::Job,
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        events::v1::Event,
        node::v1::RuntimeClass,
        policy::v1::Eviction, policy::v1::PodDisruptionBudget,
        rbac::v1::ClusterRole, rbac::v1::ClusterRoleBinding, rbac::v1::Role, rbac::v1::RoleBinding,
        resource::v1::DeviceClass, resource::v1::ResourceClaim, resource::v1::ResourceSlice,
        scheduling::v1::PriorityClass,
        storage::v1::CSIDriver, storage::v1::CSINode, storage::v1::CSIStorageCapacity,
        storage::v1::StorageClass, storage::v1::VolumeAttachment,
        meta::v1::DeleteOptions, meta::v1::ListMeta, meta::v1::Patch, meta::v1::Status,
    );
    generator.take_definitions(false).into_iter().collect()
}


fn main() -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/kinds/definitions.json.gz");
    let done = if std::env::args().any(|word| word == "--check") {
        check(&path)
    } else {
        write(&path)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

fn write(path: &Path) -> std::io::Result<()> {
    let mut encoder = GzEncoder::new(std::fs::File::create(path)?, Compression::best());
    encoder.write_all(&serde_json::to_vec(&generate())?)?;
    encoder.finish()?;
    Ok(())
}

fn check(path: &Path) -> std::io::Result<()> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path)?).read_to_string(&mut text)?;
    let written: BTreeMap<String, Value> = serde_json::from_str(&text)?;
    if written == generate() {
        return Ok(());
    }
    Err(std::io::Error::other(
        "not what k8s-openapi says; run this program without --check and commit the file",
    ))
}
