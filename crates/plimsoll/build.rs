//! How the program is linked, what it knows about its build, and the toolbox that it carries.

use std::env;
use std::path::Path;
use std::process::Command;

#[path = "build/revision.rs"]
mod revision;
#[path = "build/toolbox.rs"]
mod toolbox;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/revision.rs");
    println!("cargo:rerun-if-changed=build/toolbox.rs");
    link();
    describe();
    toolbox::compile();
}

fn link() {
    // Much of the program is generated: readers and writers of some thousand types, many of which
    // come out the same to the byte. Toolchains for this target bring LLD, which makes one of them;
    // other linkers may not know the option. Nothing here compares functions by their addresses.
    let has_lld = is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_optimized() && has_lld {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// What `plimsoll version` prints.
fn describe() {
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=PLIMSOLL_TARGET={target}");
    let compiler = env::var_os("RUSTC").unwrap_or("rustc".into());
    let version = Command::new(compiler).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let version = version.unwrap_or_default();
    println!("cargo:rustc-env=PLIMSOLL_RUST_VERSION={version}");
    // A commit changes nothing else in this package, whose tests take a minute to link. Builds for
    // development leave it out rather than link them again after each.
    if !is_optimized() {
        return;
    }
    if let Some(revision) = revision::read(Path::new(".")) {
        println!("cargo:rustc-env=PLIMSOLL_GIT_COMMIT={}", revision.commit);
        println!("cargo:rustc-env=PLIMSOLL_BUILD_DATE={}", revision.date);
        for file in revision.watched {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
}

/// Whether this is a build for use. `PROFILE` names what a profile inherits and not what it is.
fn is_optimized() -> bool {
    is("DEBUG", "false")
}

fn is(key: &str, value: &str) -> bool {
    env::var(key).is_ok_and(|has| has == value)
}
