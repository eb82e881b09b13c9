//! Small images for tests, in every form in which images travel.
//!
//! [`Image::busybox`] is one that really runs; [`Tree`] and [`Layer`] make others. An image turns
//! into an archive of either kind, or goes to a [`crate::registry::Registry`].

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The path of Debian's `busybox-static`.
const BUSYBOX: &str = "/bin/busybox";

/// Writes a busybox image as `docker save` would: `busybox.tar` in a folder. Returns its path.
///
/// # Panics
///
/// With an install hint if this machine has no busybox.
pub fn busybox_archive(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("busybox.tar");
    std::fs::write(&path, Image::busybox().docker_archive(&[name])).expect("the folder exists");
    path
}

/// As [`busybox_archive`], in the OCI layout: `busybox-oci.tar`.
pub fn busybox_oci_archive(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("busybox-oci.tar");
    std::fs::write(&path, Image::busybox().oci_archive(&[name])).expect("the folder exists");
    path
}

/// `sha256:` and the digest of some bytes.
pub fn digest(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// An image: its layers and its configuration.
#[derive(Clone, Debug)]
pub struct Image {
    /// Lowest first.
    pub layers: Vec<Layer>,
    /// The `config` part of the image's configuration.
    pub config: Value,
}

impl Image {
    /// An image of some layers, lowest first, that runs `sh`.
    pub fn new(layers: Vec<Layer>) -> Image {
        let config = json!({
            "Cmd": ["sh"],
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        });
        Image { layers, config }
    }

    /// This machine's busybox with all its applets.
    ///
    /// # Panics
    ///
    /// With an install hint if this machine has none.
    pub fn busybox() -> Image {
        Image::new(vec![Layer::gzip(busybox_tree())])
    }

    /// The image's configuration.
    pub fn configuration(&self) -> Vec<u8> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let diff_ids: Vec<String> = self.layers.iter().map(|l| digest(&l.tar)).collect();
        let value = json!({
            "architecture": architecture,
            "os": "linux",
            "config": self.config,
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        value.to_string().into_bytes()
    }

    /// The id that CRI gives the image: the digest of its configuration.
    pub fn id(&self) -> String {
        digest(&self.configuration())
    }

    /// Its manifest, as OCI writes it.
    pub fn manifest(&self) -> Vec<u8> {
        self.manifest_of_types(
            "application/vnd.oci.image.manifest.v1+json",
            "application/vnd.oci.image.config.v1+json",
        )
    }

    /// Its manifest, as docker writes it (schema 2).
    pub fn docker_manifest(&self) -> Vec<u8> {
        self.manifest_of_types(
            "application/vnd.docker.distribution.manifest.v2+json",
            "application/vnd.docker.container.image.v1+json",
        )
    }

    fn manifest_of_types(&self, own: &str, config: &str) -> Vec<u8> {
        let descriptor = |media_type: &str, bytes: &[u8]| json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() });
        let layers = self
            .layers
            .iter()
            .map(|l| descriptor(l.media_type, &l.blob));
        let value = json!({
            "schemaVersion": 2,
            "mediaType": own,
            "config": descriptor(config, &self.configuration()),
            "layers": layers.collect::<Vec<_>>(),
        });
        value.to_string().into_bytes()
    }

    /// The image under these names, as `docker save` writes it.
    pub fn docker_archive(&self, names: &[&str]) -> Vec<u8> {
        let hex = |bytes: &[u8]| digest(bytes).replace("sha256:", "");
        let configuration = self.configuration();
        let config_name = format!("{}.json", hex(&configuration));
        let layer_name = |layer: &Layer| format!("{}/layer.tar", hex(&layer.tar));
        let manifest = json!([{
            "Config": config_name,
            "RepoTags": names,
            "Layers": self.layers.iter().map(layer_name).collect::<Vec<_>>(),
        }]);
        let mut tree = Tree::new();
        for layer in &self.layers {
            tree = tree.file(&layer_name(layer), 0o644, &layer.tar);
        }
        tree.file(&config_name, 0o644, &configuration)
            .file("manifest.json", 0o644, manifest.to_string().as_bytes())
            .into_tar()
    }

    /// The image under these names, as an archive of an OCI layout.
    pub fn oci_archive(&self, names: &[&str]) -> Vec<u8> {
        let manifest = self.manifest();
        let entry = |name: &&str| {
            json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": digest(&manifest),
                "size": manifest.len(),
                "annotations": { "org.opencontainers.image.ref.name": name },
            })
        };
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": names.iter().map(entry).collect::<Vec<_>>(),
        });
        let blob_name = |bytes: &[u8]| format!("blobs/{}", digest(bytes).replace(':', "/"));
        let configuration = self.configuration();
        let mut tree = Tree::new()
            .file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)
            .file("index.json", 0o644, index.to_string().as_bytes())
            .file(&blob_name(&manifest), 0o644, &manifest)
            .file(&blob_name(&configuration), 0o644, &configuration);
        for layer in &self.layers {
            tree = tree.file(&blob_name(&layer.blob), 0o644, &layer.blob);
        }
        tree.into_tar()
    }
}

/// One layer: a tar, and the bytes in which it travels.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The tar.
    pub tar: Vec<u8>,
    /// The tar, maybe compressed.
    pub blob: Vec<u8>,
    /// Its media type.
    pub media_type: &'static str,
}

impl Layer {
    /// An uncompressed layer.
    pub fn plain(tar: Vec<u8>) -> Layer {
        Layer {
            blob: tar.clone(),
            tar,
            media_type: "application/vnd.oci.image.layer.v1.tar",
        }
    }

    /// A layer that travels compressed with gzip.
    pub fn gzip(tar: Vec<u8>) -> Layer {
        Layer {
            blob: gzip(&tar),
            tar,
            media_type: "application/vnd.oci.image.layer.v1.tar+gzip",
        }
    }

    /// A layer that travels compressed with zstd.
    pub fn zstd(tar: Vec<u8>) -> Layer {
        Layer {
            blob: zstd::encode_all(tar.as_slice(), 0).expect("memory takes all bytes"),
            tar,
            media_type: "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }
}

/// Some bytes, compressed with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory takes all bytes")
}

/// A tree of files that becomes a tar. All belong to root and are dated to the epoch.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    kind: tar::EntryType,
    path: String,
    mode: u32,
    content: Vec<u8>,
    target: Option<String>,
}

impl Tree {
    /// Nothing yet.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// With a directory.
    #[must_use]
    pub fn directory(self, path: &str, mode: u32) -> Tree {
        self.entry(tar::EntryType::Directory, path, mode, &[], None)
    }

    /// With a file.
    #[must_use]
    pub fn file(self, path: &str, mode: u32, content: &[u8]) -> Tree {
        self.entry(tar::EntryType::Regular, path, mode, content, None)
    }

    /// With a symbolic link.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Tree {
        self.entry(tar::EntryType::Symlink, path, 0o777, &[], Some(target))
    }

    /// With a second name of an earlier file.
    #[must_use]
    pub fn hard_link(self, path: &str, target: &str) -> Tree {
        self.entry(tar::EntryType::Link, path, 0o644, &[], Some(target))
    }

    /// As a tar.
    pub fn into_tar(self) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for entry in self.entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(entry.kind);
            header.set_mode(entry.mode);
            header.set_size(entry.content.len() as u64);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            let written = match &entry.target {
                Some(target) => tar.append_link(&mut header, &entry.path, target),
                None => tar.append_data(&mut header, &entry.path, entry.content.as_slice()),
            };
            written.unwrap_or_else(|e| panic!("{}: {e}", entry.path));
        }
        tar.into_inner().expect("memory takes all bytes")
    }

    fn entry(
        mut self,
        kind: tar::EntryType,
        path: &str,
        mode: u32,
        content: &[u8],
        target: Option<&str>,
    ) -> Tree {
        self.entries.push(Entry {
            kind,
            path: path.to_owned(),
            mode,
            content: content.to_vec(),
            target: target.map(str::to_owned),
        });
        self
    }
}

fn busybox_tree() -> Vec<u8> {
    let hint = "hint: apt-get install busybox-static, or run scripts/test";
    let program =
        std::fs::read(BUSYBOX).unwrap_or_else(|e| panic!("cannot read {BUSYBOX}: {e}\n{hint}"));
    let listing = Command::new(BUSYBOX)
        .arg("--list")
        .output()
        .unwrap_or_else(|e| panic!("cannot run {BUSYBOX}: {e}\n{hint}"));
    let applets = String::from_utf8(listing.stdout).expect("applets have plain names");

    let mut tree = Tree::new().directory("bin", 0o755);
    tree = tree.file("bin/busybox", 0o755, &program);
    for applet in applets.lines().filter(|name| *name != "busybox") {
        tree = tree.symlink(&format!("bin/{applet}"), "busybox");
    }
    for directory in ["dev", "etc", "home", "proc", "sys", "usr", "var", "var/run"] {
        tree = tree.directory(directory, 0o755);
    }
    tree.directory("root", 0o700)
        .directory("tmp", 0o1777)
        .file(
            "etc/passwd",
            0o644,
            b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
        )
        .file(
            "etc/group",
            0o644,
            b"root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n",
        )
        .into_tar()
}
