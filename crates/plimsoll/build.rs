//! How the program is linked.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|has| has == value);
    // Much of the program is generated: readers and writers of some thousand types, many of which
    // come out the same to the byte. Toolchains for this target bring LLD, which makes one of them;
    // other linkers may not know the option. Nothing here compares functions by their addresses.
    let has_lld = is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "release") && has_lld {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
