//! Files generated from the command definitions: completion scripts and manual pages.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::plimsoll;

/// The commands that the help of `command` lists.
fn commands_of(command: &[String]) -> Vec<String> {
    let mut line: Vec<&str> = command.iter().map(String::as_str).collect();
    line.push("--help");
    let help = plimsoll(&line, "").stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// All commands, each with its words.
fn all_commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        for name in commands_of(&found[at]) {
            let mut command = found[at].clone();
            command.push(name);
            found.push(command);
        }
        at += 1;
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

fn has_program(name: &str) -> bool {
    let mut command = Command::new(name);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let directory = folder.path().join("made/man1");
    let run = plimsoll(&["man", &directory.display().to_string()], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let expected: BTreeSet<String> = all_commands()
        .into_iter()
        .map(|command| [&["plimsoll".to_owned()], &command[..]].concat().join("-") + ".1")
        .collect();
    let entries = std::fs::read_dir(&directory)
        .expect("a directory")
        .flatten();
    let written: BTreeSet<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(written, expected);
    for page in &written {
        let path = directory.join(page);
        let text = std::fs::read_to_string(&path).expect("a page");
        assert!(text.contains(".SH NAME"), "{page}");
        assert!(text.contains("Exit codes:"), "{page}");
        is_well_formed(&path);
    }
}

/// Asks groff, where it is installed.
fn is_well_formed(page: &Path) {
    if !has_program("groff") {
        return;
    }
    let output = Command::new("groff")
        .args(["-k", "-man", "-Tutf8", "-ww", "-z"])
        .arg(page)
        .output()
        .expect("groff runs");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.is_empty(),
        "{}: {printed}",
        page.display()
    );
}

#[test]
fn manual_pages_that_cannot_be_written_are_an_error() {
    let run = plimsoll(&["man", "/dev/null/man1"], "");
    assert_eq!(run.code, Some(1));
    let expected = "error: cannot write manual pages to /dev/null/man1\n  ";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
}

#[test]
fn completion_scripts_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = plimsoll(&["completion", shell], "").stdout;
        for command in all_commands() {
            let Some(name) = command.last() else { continue };
            assert!(script.contains(name.as_str()), "{shell}: {name}");
        }
        if has_program(shell) {
            accepts(shell, &script);
        }
        let help = plimsoll(&["completion", "--help"], "").stdout;
        assert!(
            help.contains(&format!("plimsoll completion {shell}")),
            "{help}"
        );
    }
    assert_eq!(plimsoll(&["completion", "tcsh"], "").code, Some(2));
}

/// The shell reads the script without running it.
fn accepts(shell: &str, script: &str) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), script).expect("the file is ours");
    let output = Command::new(shell).arg("-n").arg(file.path()).output();
    let output = output.expect("the shell runs");
    assert!(output.status.success(), "{shell}: {output:?}");
}

#[test]
fn bash_completes_commands() {
    if !has_program("bash") {
        return;
    }
    let script = plimsoll(&["completion", "bash"], "").stdout;
    let ask = format!(
        "{script}\nCOMP_WORDS=(plimsoll token ''); COMP_CWORD=2\n\
         _plimsoll plimsoll '' token\necho \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash")
        .args(["-c", &ask])
        .output()
        .expect("bash runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    for name in ["create", "delete", "list"] {
        assert!(
            printed.split_whitespace().any(|word| word == name),
            "{output:?}"
        );
    }
}
