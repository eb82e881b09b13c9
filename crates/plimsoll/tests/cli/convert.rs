//! `plimsoll config convert`.

use crate::plimsoll;

#[test]
fn document_is_printed_to_stdout_and_notes_to_stderr() {
    let run = plimsoll(&["config", "convert", "examples/node-config.yaml"], "");
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!(run.transcript());
}

/// The converted file means what the original meant.
#[test]
fn the_converted_file_has_the_same_load_line() {
    let capacity = ["--capacity", "memory=32Gi"];
    let converted = plimsoll(&["config", "convert", "examples/node-config.yaml"], "").stdout;
    let load_line = |arguments: &[&str], stdin: &str| {
        let run = plimsoll(&[&["check"], &capacity[..], arguments].concat(), stdin);
        let lines = run
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("LOAD LINE"));
        lines
            .take_while(|line| !line.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        load_line(&["-"], &converted),
        load_line(&["examples/node-config.yaml"], "")
    );
}

#[test]
fn a_file_with_errors_is_not_converted() {
    let run = plimsoll(
        &["config", "convert", "examples/okd/transition-period.yaml"],
        "",
    );
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stdout, "");
    insta::assert_snapshot!(run.transcript());
}

#[test]
fn json_is_offered_too() {
    let run = plimsoll(
        &[
            "config",
            "convert",
            "-o",
            "json",
            "examples/okd/qos-reserved.yaml",
        ],
        "",
    );
    let document: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(document["qosReserved"]["memory"], "50%");
}

/// The kubelet would accept the file, and evict without end.
#[test]
fn a_file_with_thresholds_out_of_reach_is_not_converted() {
    let text = "kind: NodeConfig\napiVersion: v1\nkubeletArguments:\n  eviction-hard:\n  \
                - nodefs.inodesFree<100Mi\n";
    let run = plimsoll(&["config", "convert", "-"], text);
    assert_eq!(run.code, Some(1), "{}", run.transcript());
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr
            .contains("kubeletArguments.eviction-hard[nodefs.inodesFree]")
    );
}
