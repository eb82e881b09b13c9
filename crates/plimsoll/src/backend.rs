//! Opening a server's store, and checking that its keys are still there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow};
use plimsoll_apiserver::encryption::{self, EncryptedStore, Keys};
use plimsoll_apiserver::store::{
    self, EtcdOptions, EtcdStore, EtcdTls, RangeRequest, RedbOptions, RedbStore, Store,
};

use crate::data_dir::{self, STORE_FILE};
use crate::failure::Advise;
use crate::input::read_bytes;
use crate::mistakes::mistakes;

/// Number of changes that the store buffers for the server.
const WATCH_BUFFER: usize = 65_536;

/// The key prefix of all objects, in every store.
const OBJECTS: &[u8] = b"/registry/";

/// Keys that cannot be replaced: certificates and tokens that they signed are valid only with them. A
/// lost certificate is signed again with its key.
const KEYS: [&str; 2] = ["ca.key", "service-account.key"];

/// The same for directories with separate authorities; those of earlier versions have one.
const SEPARATE_KEYS: [&str; 2] = ["client-ca.key", "kubelet-serving-ca.key"];

/// Any of these files marks a directory with separate authorities.
const SEPARATE: [&str; 3] = ["client-ca.crt", "kubelet-serving-ca.crt", "former-ca.crt"];

/// The kind of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A file in the data directory.
    Redb,
    /// The members of an etcd cluster.
    Etcd(Vec<String>),
}

/// Reads the value of `--store`.
pub(crate) fn parse_choice(text: &str) -> Result<Choice, String> {
    let expected = "expected redb, etcd://HOST:PORT[,HOST:PORT…] or etcds://HOST:PORT[,HOST:PORT…]";
    let (scheme, members) = match text.split_once("://") {
        None if text == "redb" => return Ok(Choice::Redb),
        Some(("etcd", members)) => ("http", members),
        Some(("etcds", members)) => ("https", members),
        _ => return Err(expected.to_owned()),
    };
    let members = members.split(',').filter(|member| !member.is_empty());
    let endpoints: Vec<String> = members
        .map(|member| format!("{scheme}://{member}"))
        .collect();
    match endpoints.is_empty() {
        true => Err(format!("missing etcd endpoint; {expected}")),
        false => Ok(Choice::Etcd(endpoints)),
    }
}

/// Files about TLS with etcd.
#[derive(Debug)]
pub(crate) struct EtcdFiles<'a> {
    pub(crate) ca: &'a Path,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

/// Size limits of the embedded store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum size; `None` for the size of the disk.
    pub(crate) quota_bytes: Option<u64>,
    /// Space reserved for deletes on a full disk.
    pub(crate) reserve_bytes: u64,
}

impl Limits {
    /// The limits of a server.
    pub(crate) fn of_a_server(quota_bytes: Option<u64>) -> Limits {
        Limits {
            quota_bytes,
            reserve_bytes: RedbOptions::default().reserve_bytes,
        }
    }

    /// The limits of a command that only reads: it reserves no space.
    pub(crate) fn of_a_reader() -> Limits {
        Limits {
            quota_bytes: None,
            reserve_bytes: 0,
        }
    }
}

/// Opens the store of a data directory.
pub(crate) async fn open(
    directory: &Path,
    choice: &Choice,
    etcd: Option<EtcdFiles<'_>>,
    limits: Limits,
) -> Result<Arc<dyn Store>> {
    let endpoints = match choice {
        Choice::Redb => return open_file(directory, limits).await,
        Choice::Etcd(endpoints) => endpoints.clone(),
    };
    let names = endpoints.join(", ");
    let options = EtcdOptions {
        endpoints,
        tls: etcd.map(etcd_tls).transpose()?,
        watch_buffer: WATCH_BUFFER,
        ..EtcdOptions::default()
    };
    let store = EtcdStore::connect(&options).await;
    let store = store.with_context(|| format!("cannot reach etcd at {names}"));
    Ok(Arc::new(store.hint(
        "check the etcd endpoints: etcdctl --endpoints ADDRESS endpoint health",
    )?))
}

async fn open_file(directory: &Path, limits: Limits) -> Result<Arc<dyn Store>> {
    let path = directory.join(STORE_FILE);
    let options = RedbOptions {
        watch_buffer: WATCH_BUFFER,
        quota_bytes: limits.quota_bytes,
        reserve_bytes: limits.reserve_bytes,
        ..RedbOptions::default()
    };
    let opening = path.clone();
    let opened = tokio::task::spawn_blocking(move || RedbStore::open(&opening, &options)).await;
    match opened.context("cannot open the store")? {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(advise(error, directory, &path)),
    }
}

fn advise(error: store::Error, directory: &Path, path: &Path) -> Error {
    let hint = match &error {
        store::Error::InUse { .. } => return data_dir::in_use(directory, path),
        store::Error::NotAStore { .. } | store::Error::Corrupt { .. } => format!(
            "restore {0} from a snapshot (plimsoll store restore), or move it away to start with \
             an empty cluster: mv {0} {0}.damaged",
            path.display()
        ),
        store::Error::Full { .. } => format!("free space for {}", directory.display()),
        _ => return Error::from(error).context("cannot open the store"),
    };
    Error::from(error)
        .context("cannot open the store")
        .hint(hint)
}

/// Encrypts values of a store as an EncryptionConfiguration says, which is reloaded when it changes.
pub(crate) fn encrypted(store: Arc<dyn Store>, file: &Path) -> Result<Arc<dyn Store>> {
    let (keys, text) = read_configuration(file)?;
    let store = Arc::new(EncryptedStore::new(store, keys));
    encryption::follow(&store, file.to_owned(), text);
    Ok(store)
}

/// The keys in an EncryptionConfiguration.
pub(crate) fn read_keys(file: &Path) -> Result<Keys> {
    read_configuration(file).map(|(keys, _)| keys)
}

fn read_configuration(file: &Path) -> Result<(Keys, String)> {
    let name = file.display().to_string();
    let text = String::from_utf8(read_bytes(&name)?);
    let text = text.with_context(|| format!("{name} is not text"))?;
    let keys = Keys::parse(&text).map_err(|problems| mistakes(&name, &problems))?;
    Ok((keys, text))
}

fn etcd_tls(files: EtcdFiles<'_>) -> Result<EtcdTls> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(EtcdTls {
        ca_pem: read(files.ca)?,
        client_pem: Some((read(files.certificate)?, read(files.key)?)),
    })
}

/// Fails if the store has objects but keys are missing that they depend on.
pub(crate) async fn refuse_new_keys(store: &dyn Store, certificates: &Path) -> Result<()> {
    let is_there = |name: &&str| certificates.join(name).exists();
    let separate_keys = SEPARATE_KEYS
        .iter()
        .filter(|_| SEPARATE.iter().any(is_there));
    let names = KEYS.iter().chain(separate_keys);
    let missing = names.filter(|name| !is_there(name));
    let missing: Vec<PathBuf> = missing.map(|name| certificates.join(name)).collect();
    if missing.is_empty() || !has_objects(store).await? {
        return Ok(());
    }
    let names = missing.iter().map(|path| path.display().to_string());
    let names = names.collect::<Vec<_>>().join(" and ");
    let (is_missing, new) = match missing.len() {
        1 => ("is missing", "a new one"),
        _ => ("are missing", "new ones"),
    };
    let effect = format!(
        "with {new}, the kubeconfigs, node certificates and service account tokens of the cluster \
         would stop working"
    );
    let error = anyhow!(effect).context(format!("the store has objects, but {names} {is_missing}"));
    Err(error
        .hint(format!("restore {} from a backup", certificates.display()))
        .hint(
            "or give --new-authority to start with new keys; nodes have to join again, and pods to \
             be restarted",
        ))
}

async fn has_objects(store: &dyn Store) -> Result<bool> {
    let range = RangeRequest {
        limit: Some(1),
        ..RangeRequest::prefix(OBJECTS)
    };
    let page = store.range(range).await.context("cannot read the store")?;
    Ok(!page.entries.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_redb_or_etcd_members() {
        assert_eq!(parse_choice("redb"), Ok(Choice::Redb));
        let members = ["http://a:1", "http://b:2"].map(str::to_owned).to_vec();
        assert_eq!(parse_choice("etcd://a:1,b:2"), Ok(Choice::Etcd(members)));
        for wrong in ["", "etcd", "etcd://", "etcd://,", "sqlite://x", "redb://x"] {
            assert!(
                parse_choice(wrong).unwrap_err().contains("expected redb"),
                "{wrong}"
            );
        }
    }
}
