//! The program of the built-in image.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The toolbox is the program of the built-in image. It has to run in an empty root, so it is
/// linked statically, which Cargo cannot do for one member of a workspace; it has no
/// dependencies, so the compiler alone is enough.
pub(super) fn compile() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = Path::new("../toolbox/src");
    println!("cargo:rerun-if-changed={}", source.display());
    let program = out.join("toolbox");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let mut compile = Command::new(compiler);
    compile
        .args([
            "--edition=2024",
            "--crate-name=plimsoll_toolbox",
            "--crate-type=bin",
        ])
        .args(["--target", &target])
        .args(["-Copt-level=z", "-Cpanic=abort", "-Ccodegen-units=1"])
        .args([
            "-Cstrip=symbols",
            "-Ctarget-feature=+crt-static",
            "--cap-lints=allow",
        ])
        .arg("-o")
        .arg(&program)
        .arg(source.join("main.rs"));
    run(
        &mut compile,
        "cannot compile crates/toolbox as a static program; on Debian, libc6-dev is needed",
    );
    let names = run(
        Command::new(&program).arg("--list"),
        "cannot run the toolbox; it has to be compiled on a machine of the same kind",
    );
    std::fs::write(out.join("toolbox.names"), names).expect("OUT_DIR is writable");
}

fn run(command: &mut Command, otherwise: &str) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{otherwise}: {error}"));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{otherwise}\n{printed}");
    output.stdout
}
