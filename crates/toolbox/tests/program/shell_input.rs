//! Commands that come from standard input.

use crate::toolbox::Toolbox;

#[test]
fn input_is_executed_line_by_line() {
    let toolbox = Toolbox::new();
    for (input, expected, status) in [
        ("echo a\necho b", "a\nb\n", 0),
        ("read x\ndata\necho got $x\n", "got data\n", 0),
        ("cat\nrest of\nthe input\n", "rest of\nthe input\n", 0),
        (
            "if true\nthen echo a\nfi\ncat <<E\ndoc\nE\nexit 3\necho no\n",
            "a\ndoc\n",
            3,
        ),
        ("echo a\n)\necho no\n", "a\n", 2),
        ("f() {\n echo $1\n}\nf x\n", "x\n", 0),
        ("", "", 0),
    ] {
        let output = toolbox.pipe(&["sh"], input);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{input}");
        assert_eq!(output.status.code(), Some(status), "{input}");
    }
    let output = toolbox.pipe(&["sh", "-s", "x", "y"], "echo $1 $#");
    assert_eq!(output.stdout, b"x 2\n");
}

#[test]
fn interactive_shell_prompts_and_survives_errors() {
    let toolbox = Toolbox::new();
    let output = toolbox.pipe(
        &["sh", "-i"],
        "echo a\n)\n${x?gone}\necho b $?\nfor i in 1\ndo echo $i\ndone\n",
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nb 2\n1\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains(" # ") || errors.contains(" $ "), "{errors}");
    assert!(
        errors.contains("> ") && errors.contains("x: gone"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(0));
}
