//! `plimsoll image`: the images of the embedded runtime on this machine.
//!
//! It works on the store itself, beside an agent that may use it at the same time.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Error, Result, bail};
use clap::{Args, Subcommand};
use plimsoll_report::text::Table;
use plimsoll_runtime::image::catalogue::Record;
use plimsoll_runtime::image::configuration::Start;
use plimsoll_runtime::image::import::{self, Options, Source};
use plimsoll_runtime::image::pull::credentials;
use plimsoll_runtime::image::{self, Reference, Registries, Store};
use plimsoll_runtime::wire::AuthConfig;

use crate::exit::Exit;
use crate::failure::Advise;
use crate::node::{image_size, parse_image_size};

/// Arguments of `plimsoll image`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Import an archive of docker save
  plimsoll image import busybox.tar
  # Create an image from a directory and never remove it as unused
  plimsoll image import --name busybox:local --pin rootfs/
  # Pull an image
  plimsoll image pull registry.example/app:1")]
pub(crate) struct Arguments {
    /// Data directory of the node.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/lib/plimsoll",
        global = true
    )]
    data_dir: PathBuf,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Import images from docker or OCI archives or from a root file system.
    Import(Import),
    /// List images.
    #[command(visible_alias = "list")]
    Ls,
    /// Pull images from their registries.
    Pull(Pull),
    /// Remove images.
    #[command(visible_alias = "remove")]
    Rm(Remove),
}

#[derive(Debug, Args)]
struct Import {
    /// Docker or OCI archives, or tars or directories of root file systems; `-` for standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Name of the image; required for a root file system.
    #[arg(long)]
    name: Option<Reference>,

    /// Exclude the images from garbage collection, such as those that no registry has.
    #[arg(long)]
    pin: bool,

    #[command(flatten)]
    size: SizeArguments,

    #[command(flatten)]
    start: StartArguments,
}

#[derive(Debug, Args)]
struct SizeArguments {
    /// Maximum unpacked size of an image, such as `20Gi` [default: half of the image disk].
    #[arg(long, value_name = "QUANTITY", value_parser = parse_image_size)]
    max_image_size: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration of an image from a root file system")]
struct StartArguments {
    /// Entrypoint, as words separated by spaces; pods override it with `command`.
    #[arg(long, value_name = "WORDS")]
    entrypoint: Option<String>,

    /// Arguments of the entrypoint, as words separated by spaces; pods override them with `args`.
    #[arg(long, value_name = "WORDS")]
    cmd: Option<String>,

    /// Environment variable; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// User and optional group of the process, by name or id.
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,

    /// Working directory of the process.
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
}

#[derive(Debug, Args)]
struct Pull {
    /// Images to pull.
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<Reference>,

    /// User name for the registry.
    #[arg(long, requires = "password_stdin")]
    username: Option<String>,

    /// Read the password for the registry from standard input.
    #[arg(long, requires = "username")]
    password_stdin: bool,

    /// Registry to use without TLS, besides those on loopback addresses; may be repeated.
    #[arg(long, value_name = "HOST[:PORT]")]
    insecure_registry: Vec<String>,

    /// Exclude the images from garbage collection.
    #[arg(long)]
    pin: bool,

    #[command(flatten)]
    size: SizeArguments,
}

#[derive(Debug, Args)]
struct Remove {
    /// Names or ids of images to remove.
    ///
    /// A name is removed from its image, and the image with its last name.
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<String>,

    /// Also remove images in use; their containers keep running.
    #[arg(long)]
    force: bool,
}

/// Runs the sub-command; stops at the first failure.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let directory = arguments.data_dir.join(image::DIRECTORY);
    let max_image_size = match &arguments.command {
        Command::Import(arguments) => arguments.size.max_image_size,
        Command::Pull(arguments) => arguments.size.max_image_size,
        Command::Ls | Command::Rm(_) => None,
    };
    let done = Store::open_with(&directory, image_size(max_image_size))
        .context("cannot open the image store")
        .and_then(|store| match &arguments.command {
            Command::Import(arguments) => import(&store, arguments),
            Command::Ls => list(&store),
            Command::Pull(arguments) => pull(&store, arguments),
            Command::Rm(arguments) => remove(&store, arguments),
        });
    done.map_err(advise)?;
    Ok(Exit::Success.into())
}

fn import(store: &Store, arguments: &Import) -> Result<()> {
    let options = Options {
        name: arguments.name.clone(),
        start: arguments.start.start(),
        pinned: arguments.pin,
    };
    for file in &arguments.files {
        let source = match file.as_str() {
            "-" => Source::StandardInput,
            path => Source::Path(path.into()),
        };
        let records = store
            .import(&source, &options)
            .with_context(|| format!("cannot import {source}"))?;
        for record in records {
            print(&format!("imported {}", described(&record)))?;
        }
    }
    Ok(())
}

impl StartArguments {
    fn start(&self) -> Start {
        let words = |text: &String| text.split_whitespace().map(str::to_owned).collect();
        Start {
            user: self.user.clone(),
            env: (!self.env.is_empty()).then(|| self.env.clone()),
            entrypoint: self.entrypoint.as_ref().map(words),
            cmd: self.cmd.as_ref().map(words),
            working_dir: self.workdir.clone(),
            ..Start::default()
        }
    }
}

fn pull(store: &Store, arguments: &Pull) -> Result<()> {
    let mut password = String::new();
    if arguments.password_stdin {
        let read = std::io::stdin().read_to_string(&mut password);
        read.context("cannot read the password")?;
    }
    let auth = arguments.username.as_ref().map(|username| AuthConfig {
        username: username.clone(),
        password: password.trim_end_matches(['\r', '\n']).to_owned(),
        ..AuthConfig::default()
    });
    let registries = Registries {
        insecure: arguments.insecure_registry.clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    for name in &arguments.images {
        let pulled = runtime.block_on(async {
            let auth = credentials(name, auth.as_ref())?;
            store.pull(name, auth, &registries, arguments.pin).await
        });
        let record = pulled.with_context(|| format!("cannot pull {name}"))?;
        print(&format!("pulled {}", described(&record)))?;
    }
    Ok(())
}

fn list(store: &Store) -> Result<()> {
    let mut table = Table::new(["NAME", "ID", "SIZE", "PINNED"]);
    let mut rows = Vec::new();
    for record in store.catalogue()?.images() {
        let pinned = if record.pinned { "yes" } else { "" };
        for name in names(record) {
            rows.push([name, short_id(record), size(record.size), pinned.to_owned()]);
        }
    }
    rows.sort();
    for row in rows {
        table.row(row);
    }
    print(&table.lines().join("\n"))
}

fn remove(store: &Store, arguments: &Remove) -> Result<()> {
    for text in &arguments.images {
        let catalogue = store.catalogue()?;
        let Some(record) = catalogue.find(text) else {
            bail!("image {text:?} not found");
        };
        let users = store.roots().of_image(&record.id)?;
        if !users.is_empty() && !arguments.force {
            bail!("image {text:?} is in use by {}", users.join(", "));
        }
        let by_name: Option<Reference> = text.parse().ok();
        match by_name.filter(|name| catalogue.by_name(name) == Some(record)) {
            Some(name) => store.remove_name(&name)?,
            None => store.remove(&record.id)?,
        };
        print(&format!("removed {text}"))?;
    }
    Ok(())
}

fn described(record: &Record) -> String {
    let names = names(record).join(", ");
    format!("{names} ({}, {})", short_id(record), size(record.size))
}

/// The names of an image: its tags, or its digests if it has none.
fn names(record: &Record) -> Vec<String> {
    let names = if record.tags.is_empty() {
        &record.digests
    } else {
        &record.tags
    };
    if names.is_empty() {
        return vec!["<none>".to_owned()];
    }
    names.iter().cloned().collect()
}

fn short_id(record: &Record) -> String {
    record.id.hex().chars().take(12).collect()
}

/// With one decimal, in the largest unit that is not too large.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut of_unit: u128 = 1;
    while u128::from(bytes) >= of_unit * 1024 && unit + 1 < units.len() {
        of_unit *= 1024;
        unit += 1;
    }
    let tenths = (u128::from(bytes) * 10 + of_unit / 2) / of_unit;
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, units[unit]),
    }
}

fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}

fn advise(error: Error) -> Error {
    if let Some(import::Error::NoName { .. }) = error.downcast_ref() {
        return error.hint("plimsoll image import --name NAME:TAG --entrypoint PROGRAM FILE");
    }
    let is_denied = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::PermissionDenied)
    };
    match error.chain().any(is_denied) {
        true => error.hint(
            "run this as the user of the agent (root), or name a directory of your own with --data-dir",
        ),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_a_binary_unit() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_992_294, "1.9 MiB"),
            (5 << 40, "5.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
