use serde_json::json;

use super::*;

fn only(text: &str) -> Node {
    let mut parsed = parse(text.as_bytes());
    assert_eq!(parsed.problems, [], "{text}");
    assert_eq!(parsed.documents.len(), 1, "{text}");
    parsed.documents.remove(0)
}

fn json_of(text: &str) -> serde_json::Value {
    let mut problems = Vec::new();
    let value = only(text).to_json("", &mut problems);
    assert_eq!(problems, []);
    value
}

fn problem_of(text: &str) -> String {
    let problems = parse(text.as_bytes()).problems;
    problems.first().expect("a problem").detail.clone()
}

#[test]
fn unquoted_texts_have_kubectls_types() {
    let text = "[1, -2, 0x10, 010, 0b11, 1_000, 08, 1e3, .5, yes, off, n, ~, null, 1.2.3, 500Mi, \
                10%, 2001-12-14, 18446744073709551615, '1', \"yes\", !!str 5]";
    assert_eq!(
        json_of(text),
        json!([
            1,
            -2,
            16,
            8,
            3,
            1000,
            8,
            1000,
            0.5,
            true,
            false,
            false,
            null,
            null,
            "1.2.3",
            "500Mi",
            "10%",
            "2001-12-14",
            18446744073709551615u64,
            "1",
            "yes",
            "5"
        ])
    );
}

#[test]
fn keys_become_texts() {
    assert_eq!(
        json_of("{on: 1, 0x10: 2, a b: 3}"),
        json!({"true": 1, "16": 2, "a b": 3})
    );
}

#[test]
fn json_is_read_too() {
    let text = "{\n\t\"a\":\"\\u00e9\\/\",\"b\":[true,null,1.50],\"c\":{}}";
    assert_eq!(
        json_of(text),
        json!({"a": "é/", "b": [true, null, 1.5], "c": {}})
    );
}

#[test]
fn documents_are_separated_and_empty_ones_left_out() {
    let parsed = parse(b"---\n# nothing\n---\na: 1\n---\n---\nb: 2\n...\n");
    assert_eq!(parsed.documents.len(), 2);
    assert_eq!(parsed.documents[1].position.line, 7);
}

#[test]
fn every_node_knows_its_line_and_column() {
    let root = only("a:\n  b:\n    - x\n    - yy: 1\n");
    let list = root.get("a").unwrap().get("b").unwrap();
    let item = &list.as_sequence().unwrap()[1];
    assert_eq!(item.position, Position { line: 4, column: 7 });
    let one = item.get("yy").unwrap();
    assert_eq!(
        one.position,
        Position {
            line: 4,
            column: 11
        }
    );
}

#[test]
fn duplicate_keys_are_kept_and_reported() {
    let mut problems = Vec::new();
    let root = only("a: 1\nb: {c: 1, c: 2}\na: 3\n");
    assert_eq!(root.as_mapping().unwrap().len(), 3);
    assert_eq!(
        root.to_json("", &mut problems),
        json!({"a": 3, "b": {"c": 2}})
    );
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "a: Duplicate value: \"a\": the key is already set in line 1",
            "b.c: Duplicate value: \"c\": the key is already set in line 2",
        ]
    );
    assert_eq!(problems[0].position.unwrap().line, 3);
}

#[test]
fn aliases_are_copied_and_merged_keys_fill_gaps() {
    assert_eq!(
        json_of("base: &base {a: 1, b: 2}\nuse: {<<: *base, b: 3}\nagain: *base\n"),
        json!({"base": {"a": 1, "b": 2}, "use": {"a": 1, "b": 3}, "again": {"a": 1, "b": 2}})
    );
    assert_eq!(
        problem_of("a: {<<: 5}"),
        "yaml: line 1: map merge requires map or sequence of maps as the value"
    );
}

#[test]
fn aliases_cannot_blow_up() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(problem_of(&text).ends_with("document contains excessive aliasing"));
    assert!(problem_of("a: &a [*a]").ends_with("an anchor contains itself"));
}

#[test]
fn nesting_is_bounded_also_through_aliases() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(parse(nested(MAX_DEPTH).as_bytes()).problems, []);
    assert!(problem_of(&nested(MAX_DEPTH + 1)).contains("levels deep"));
    assert!(problem_of(&nested(100_000)).contains("line 1"));
    let half = nested(60);
    let through_alias = format!("a: &a {half}\nb: {}*a{}\n", "[".repeat(60), "]".repeat(60));
    assert!(problem_of(&through_alias).contains("levels deep"));
}

#[test]
fn malformed_text_is_reported_with_position() {
    assert!(problem_of("a: 1\nb: [1\n").starts_with("yaml: line "));
    assert_eq!(
        parse(b"a: 1\n\xff\xfe").problems[0].detail,
        "yaml: line 2: the text is not UTF-8"
    );
    let huge = vec![b' '; MAX_BYTES + 1];
    assert!(parse(&huge).problems[0].detail.contains("too many"));
    assert_eq!(
        problem_of("? [a]\n: 1\n"),
        "yaml: line 1: a key is a list, it must be a text"
    );
}

#[test]
fn numbers_outside_json_are_reported() {
    let mut problems = Vec::new();
    only("a: .nan").to_json("", &mut problems);
    assert_eq!(
        problems[0].to_string(),
        "a: Invalid value: .nan: JSON has no such number"
    );
}

#[test]
fn paths_bracket_keys_that_are_not_plain_words() {
    assert_eq!(child_path("", "a"), "a");
    assert_eq!(child_path("a", "b-c"), "a.b-c");
    assert_eq!(
        child_path("evictionHard", "memory.available"),
        "evictionHard[memory.available]"
    );
}

#[test]
fn a_quoted_merge_key_is_a_name_like_any_other() {
    let parsed = parse(b"\"<<\": 1\n");
    assert_eq!(parsed.problems, []);
    assert!(parsed.documents[0].get("<<").is_some());
    let merged = parse(b"<<: {a: 1}\n");
    assert!(merged.documents[0].get("a").is_some());
}

#[test]
fn json_becomes_a_tree_and_json_again() {
    let value = json!({"a": [1, -2, 18446744073709551615u64, 0.5, null, true], "b": {"c": "1"}});
    let tree = Node::from_json(&value, Position { line: 1, column: 1 });
    assert_eq!(tree.to_json("", &mut Vec::new()), value);
    assert_eq!(
        tree.get("b").unwrap().get("c").unwrap().as_text(),
        Some("1")
    );
}

#[test]
fn path_resolves_to_node_or_nearest_parent() {
    let tree = only("a:\n- b: 1\n  c: 2\n");
    let line = |path: &str| tree.position_of(path).line;
    assert_eq!((line("a[0].c"), line("a[0].d"), line("d")), (3, 2, 1));
}

#[test]
fn a_path_leads_to_keys_with_dots_and_to_the_last_of_equal_keys() {
    let tree = only("a:\n  b.c/d: 1\n  b: {c: 2}\n  x: 3\n  x: 4\ne: [5, {f: 6}]\n");
    let at = |path: &str| {
        let at = tree.locate(path).position();
        (at.line, at.column)
    };
    assert_eq!(at("a[b.c/d]"), (2, 10));
    assert_eq!(at("a.b.c/d"), (2, 10));
    assert_eq!(at("a.b.c"), (3, 10));
    assert_eq!(at("a.x"), (5, 6));
    assert_eq!(tree.locate_first("a.x").position().line, 4);
    // The key of a collection, and of what is around a missing value.
    assert_eq!((at("a.b"), at("a.nothing")), ((3, 3), (1, 1)));
    assert_eq!(
        (at("e[1].f"), at("e[1].g"), at("e[7]")),
        ((6, 12), (6, 8), (6, 1))
    );
}
