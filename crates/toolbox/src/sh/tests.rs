//! No input makes the reader of scripts panic, and none keeps it busy for long.

use proptest::prelude::*;

use super::parser::{ParseError, Parser};
use super::{arithmetic, pattern};

const WORDS: &[&str] = &[
    "echo", "x", " ", "\n", ";", "&", "|", "&&", "||", "!", "(", ")", "{ ", " }", "if ", "then ",
    "elif ", "else ", "fi", "while ", "until ", "do ", "done", "for ", " in ", "case ", "esac",
    ";;", "$", "${", "}", "$(", "$((", "))", "`", "\"", "'", "\\", "<", ">", ">>", "<<E\n", "E\n",
    "<<-'E'", "2>&1", "=", "x=1", "#", ":-", "%", "*", "[", "]", "~", "f()", "\u{e4}",
];

fn script() -> impl Strategy<Value = Vec<u8>> {
    let near = proptest::collection::vec(proptest::sample::select(WORDS), 0..40);
    prop_oneof![
        1 => any::<Vec<u8>>(),
        4 => near.prop_map(|words| words.concat().into_bytes()),
    ]
}

fn read(text: &[u8], is_final: bool) -> Result<(), ParseError> {
    let mut parser = Parser::new(text, is_final);
    while parser.line()?.is_some() {}
    Ok(())
}

struct Nothing;

impl arithmetic::Scope for Nothing {
    fn get(&mut self, _: &[u8]) -> Result<i64, String> {
        Ok(3)
    }

    fn set(&mut self, _: &[u8], _: i64) -> Result<(), String> {
        Ok(())
    }
}

proptest! {
    #[test]
    fn every_script_is_read_or_refused(text in script()) {
        let whole = read(&text, true);
        // A script that is refused stays refused with any continuation: only a complete script is
        // executed.
        if whole.is_ok() {
            prop_assert!(!matches!(read(&text, false), Err(ParseError::Syntax(_))));
        }
    }

    #[test]
    fn every_expression_is_computed_or_refused(
        text in prop_oneof![any::<Vec<u8>>(), "[-0-9x+*/%()<>=!~&|^?:, ]{0,40}".prop_map(String::into_bytes)],
    ) {
        let _ = arithmetic::evaluate(&text, &mut Nothing);
    }

    #[test]
    fn every_pattern_matches_or_does_not(pattern in "[\\]\\[*?!^a-c:-]{0,12}", text in "[a-c\u{e4}-]{0,8}") {
        let symbols: Vec<pattern::Symbol> =
            pattern.bytes().map(|byte| pattern::Symbol { byte, is_quoted: false }).collect();
        let _ = pattern::matches(&symbols, text.as_bytes());
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [
        ("(", ")"),
        ("{ ", ";}"),
        ("$(", ")"),
        ("$((", "))"),
        ("${x:-", "}"),
        ("\"$(", ")\""),
        ("if ", ""),
    ] {
        let text = open.repeat(10_000) + "x" + &close.repeat(10_000);
        assert!(
            matches!(read(text.as_bytes(), true), Err(ParseError::Syntax(_))),
            "{open}"
        );
    }
    // As deep as may be, a subshell in each that looks like arithmetic at first.
    let text = "$((".repeat(48) + "x" + &") )".repeat(48);
    assert_eq!(read(text.as_bytes(), true), Ok(()));
}

#[test]
fn unfinished_scripts_are_incomplete() {
    for text in [
        "if x",
        "while x; do",
        "echo 'a",
        "echo \"a",
        "echo $(",
        "cat <<E\nx\n",
        "f() {",
        "case x in",
        "a &&",
        "x |",
        "echo ${x",
        "echo $((1",
    ] {
        assert!(
            matches!(read(text.as_bytes(), false), Err(ParseError::Incomplete(_))),
            "{text}"
        );
    }
}

#[test]
fn wrong_scripts_are_refused() {
    for text in [
        ")",
        "fi",
        "if ; then",
        "{ }",
        "( )",
        "a ;; b",
        "for 1 in x; do y; done",
        "& x",
        "echo ${x!}",
        "case x y",
        "f() echo",
        "| x",
        "`\"`",
        "echo ${x:1}",
    ] {
        assert!(
            matches!(read(text.as_bytes(), false), Err(ParseError::Syntax(_))),
            "{text}"
        );
    }
}
