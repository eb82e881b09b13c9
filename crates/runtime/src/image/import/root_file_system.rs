//! The tar or directory of a root file system becomes an image of one layer.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::Path;

use super::super::catalogue::Record;
use super::super::configuration::{Configuration, RootFs, Start, architecture};
use super::super::digest::Hashing;
use super::super::file::{self, Doing};
use super::super::installation::{Installation, Names};
use super::super::reference::Reference;
use super::super::store::Store;
use super::{Error, Options};

/// The default PATH of containers.
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes a tar of a directory.
pub(super) fn pack(directory: &Path, tar: &Path) -> Result<File, file::Error> {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(tar)
        .doing("create", tar)?;
    let write = || -> io::Result<File> {
        let mut builder = tar::Builder::new(BufWriter::new(file));
        builder.follow_symlinks(false);
        builder.sparse(false);
        builder.append_dir_all("", directory)?;
        let mut writer = builder.into_inner()?;
        writer.flush()?;
        let mut file = writer.into_inner().map_err(io::Error::from)?;
        file.rewind()?;
        Ok(file)
    };
    write().doing("create a tar archive of", directory)
}

/// Makes an image of a plain tar.
pub(super) fn import(
    store: &Store,
    mut tar: File,
    name: &Reference,
    options: &Options,
) -> Result<Record, Error> {
    let failed = |source| Error::Install {
        image: name.to_string(),
        source,
    };
    let unreadable = |source| Error::Part {
        path: "the whole".to_owned(),
        source,
    };
    let mut hashing = Hashing::new(io::sink());
    io::copy(&mut tar, &mut hashing)
        .and_then(|_| tar.rewind())
        .map_err(unreadable)?;
    let (diff_id, _) = hashing.finish();
    let configuration = Configuration {
        architecture: architecture().to_owned(),
        os: "linux".to_owned(),
        config: Some(Start {
            env: options
                .start
                .env
                .clone()
                .or_else(|| Some(vec![SEARCH_PATH.to_owned()])),
            ..options.start.clone()
        }),
        rootfs: RootFs {
            kind: "layers".to_owned(),
            diff_ids: vec![diff_id],
        },
    };
    let configuration = serde_json::to_vec(&configuration).map_err(|source| Error::Json {
        path: "configuration".to_owned(),
        source,
    })?;
    let mut installation = Installation::begin(store, configuration, None, 1).map_err(failed)?;
    if !installation.missing_layers().is_empty() {
        installation
            .unpack_layer(0, BufReader::new(tar))
            .map_err(failed)?;
    }
    let names = Names {
        tags: [name.to_string()].into(),
        digests: Default::default(),
        pinned: options.pinned,
    };
    installation.finish(names).map_err(failed)
}
