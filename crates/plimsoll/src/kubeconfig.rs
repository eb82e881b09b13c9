//! `plimsoll kubeconfig`: the admin's kubeconfig of the cluster on this machine.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::failure::Advise;

/// The file that `plimsoll up` and `plimsoll server` write in their data directory.
pub(crate) const ADMIN: &str = "admin.kubeconfig";

/// Arguments of `plimsoll kubeconfig`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Use the cluster of plimsoll up with kubectl, as root
  plimsoll kubeconfig --merge
  kubectl get nodes
  # Write the kubeconfig to a file
  plimsoll kubeconfig > plimsoll.kubeconfig")]
pub(crate) struct Arguments {
    /// Data directory of the cluster.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/plimsoll")]
    data_dir: PathBuf,

    /// Merge into ~/.kube/config and make it the current context [env: KUBECONFIG].
    #[arg(long)]
    merge: bool,

    /// Name of the merged context, cluster and user.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "plimsoll",
        requires = "merge"
    )]
    context: String,
}

/// Prints the kubeconfig, or merges it into the user's.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let text = print_or_merge(arguments)?;
    crate::print::write(&format!("{}\n", text.trim_end()))?;
    Ok(ExitCode::SUCCESS)
}

fn print_or_merge(arguments: &Arguments) -> Result<String> {
    let source = arguments.data_dir.join(ADMIN);
    let text = std::fs::read_to_string(&source)
        .with_context(|| format!("cannot read {}", source.display()))
        .hint("start the cluster with \"plimsoll up\", or name its directory with --data-dir")?;
    if !arguments.merge {
        return Ok(text);
    }
    let admin = parse(&text).with_context(|| format!("cannot read {}", source.display()))?;
    let target = user_file()?;
    let lock = Lock::acquire(&target)?;
    let merged = merge(read(&target)?, &admin, &arguments.context)
        .with_context(|| format!("cannot merge into {}", target.display()))?;
    write(&target, &merged)?;
    drop(lock);
    let (name, path) = (&arguments.context, target.display());
    Ok(format!(
        "Added context {name:?} to {path} and made it the current context."
    ))
}

/// The file that kubectl writes to: the first of `KUBECONFIG`, or `~/.kube/config`.
fn user_file() -> Result<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG");
    let first = listed.and_then(|paths| std::env::split_paths(&paths).next());
    if let Some(path) = first.filter(|path| !path.as_os_str().is_empty()) {
        return Ok(path);
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.context("neither KUBECONFIG nor HOME is set")?;
    Ok(Path::new(&home).join(".kube/config"))
}

fn read(path: &Path) -> Result<Value> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => {
            parse(&text).with_context(|| format!("cannot read {}", path.display()))
        }
        Ok(_) => Ok(empty()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(empty()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn empty() -> Value {
    json!({ "apiVersion": "v1", "kind": "Config", "preferences": {} })
}

fn parse(text: &str) -> Result<Value> {
    let value: Value = serde_saphyr::from_str(text)?;
    if !value.is_object() {
        bail!("not a kubeconfig: expected a mapping");
    }
    Ok(value)
}

/// Puts the cluster, the user and the context of `admin` into `config`, all under one name.
fn merge(mut config: Value, admin: &Value, name: &str) -> Result<Value> {
    for (list, part) in [("clusters", "cluster"), ("users", "user")] {
        let part_of_admin = &admin[list][0][part];
        if part_of_admin.is_null() {
            bail!("the cluster's kubeconfig has no {list}[0].{part}");
        }
        set(
            &mut config,
            list,
            json!({ "name": name, part: part_of_admin }),
        )?;
    }
    let context = json!({ "name": name, "context": { "cluster": name, "user": name } });
    set(&mut config, "contexts", context)?;
    config["current-context"] = name.into();
    Ok(config)
}

/// Replaces the entry of a list that has the same name, or adds it.
fn set(config: &mut Value, list: &str, entry: Value) -> Result<()> {
    let entries = &mut config[list];
    if entries.is_null() {
        *entries = json!([]);
    }
    let Some(entries) = entries.as_array_mut() else {
        bail!("{list} is not a list");
    };
    match entries.iter_mut().find(|old| old["name"] == entry["name"]) {
        Some(old) => *old = entry,
        None => entries.push(entry),
    }
    Ok(())
}

/// Writes a temporary file and renames it, so that the file is complete at any time.
fn write(path: &Path, config: &Value) -> Result<()> {
    let text = serde_saphyr::to_string(config)?;
    // A symbolic link is kept and its target replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = private(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, &path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

fn private(path: impl AsRef<Path>) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// The lock file that kubectl uses for its own changes.
struct Lock(PathBuf);

impl Lock {
    fn acquire(config: &Path) -> Result<Lock> {
        if let Some(directory) = config.parent() {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        let mut path = config.to_owned().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        private(&path).with_context(|| {
            format!(
                "cannot lock {}: remove {} if no kubectl runs",
                config.display(),
                path.display()
            )
        })?;
        Ok(Lock(path))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A lock file that stays is named by the next command.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin() -> Value {
        json!({
            "clusters": [{ "name": "a", "cluster": { "server": "https://127.0.0.1:6443" } }],
            "users": [{ "name": "b", "user": { "token": "t" } }],
        })
    }

    #[test]
    fn merging_keeps_other_clusters_and_unknown_fields() {
        let config = json!({
            "clusters": [{ "name": "other", "cluster": { "server": "https://x", "new": 1 } }],
            "current-context": "other", "extensions": [],
        });
        let merged = merge(config, &admin(), "plimsoll").unwrap();
        assert_eq!(merged["clusters"][0]["cluster"]["new"], 1);
        assert_eq!(
            merged["clusters"][1]["cluster"]["server"],
            "https://127.0.0.1:6443"
        );
        assert_eq!(
            merged["users"][0],
            json!({ "name": "plimsoll", "user": { "token": "t" } })
        );
        assert_eq!(merged["current-context"], "plimsoll");
        assert!(merged["extensions"].is_array());
    }

    #[test]
    fn merging_twice_changes_nothing() {
        let once = merge(empty(), &admin(), "plimsoll").unwrap();
        assert_eq!(merge(once.clone(), &admin(), "plimsoll").unwrap(), once);
    }

    #[test]
    fn refuses_a_file_with_malformed_lists() {
        let config = json!({ "clusters": "none" });
        let error = merge(config, &admin(), "plimsoll").unwrap_err();
        assert_eq!(error.to_string(), "clusters is not a list");
    }
}
