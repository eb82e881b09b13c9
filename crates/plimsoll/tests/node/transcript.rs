//! Commands and their output in blocks of documents marked `console`.

use std::fmt::Write as _;

/// A line that stands for any number of lines.
pub(crate) const OMITTED: &str = "…";

/// Units of numbers.
const UNITS: [&str; 8] = ["B", "Ki", "Mi", "Gi", "m", "s", "ms", "h"];

/// A command and its documented output; an empty output may be omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) output: String,
}

/// The blocks of a document, each with its steps.
pub(crate) fn blocks(document: &str) -> Vec<Vec<Step>> {
    let parts = document.split("```console\n").skip(1);
    let texts = parts.map(|part| part.split("```").next().unwrap_or_default());
    texts.map(steps).collect()
}

fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        let command = line.strip_prefix("# ").or(line.strip_prefix("$ "));
        let is_nested = steps
            .last()
            .is_some_and(|step| step.output.contains(OMITTED));
        match (command, steps.last_mut()) {
            // What a demonstration prints has commands in it too.
            (Some(command), _) if !is_nested => steps.push(Step {
                command: command.to_owned(),
                output: String::new(),
            }),
            (_, Some(step)) => writeln!(step.output, "{line}").unwrap(),
            (_, None) => panic!("a block begins without a command: {block}"),
        }
    }
    steps
}

/// Whether a program printed the documented output, apart from measured amounts and line breaks.
pub(crate) fn compare(shown: &str, printed: &str) -> Result<(), String> {
    if shown.is_empty() {
        return Ok(());
    }
    let all = masked(printed);
    let lines: Vec<&str> = shown.lines().collect();
    let is_whole = !lines.contains(&OMITTED);
    let mut rest = all.as_str();
    for part in lines.split(|line| *line == OMITTED) {
        let part = masked(&part.join("\n"));
        let found = rest.find(&part).filter(|_| !is_whole || rest == part);
        let Some(place) = found else {
            return Err(format!(
                "shown:\n{part}\nprinted:\n{rest}\n--- in full:\n{printed}"
            ));
        };
        rest = &rest[place + part.len()..];
    }
    Ok(())
}

/// The text on one line, without numbers and their units, and with one word for each drawn bar.
fn masked(text: &str) -> String {
    let text = text.replace("less than 0.1s", "0.1s");
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let follows_number = words.last().is_some_and(|last| last.ends_with('#'));
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        match words.last_mut() {
            Some(last) if follows_number && UNITS.contains(&name.trim_end_matches("/s")) => {
                last.push_str(&word[name.len()..]);
            }
            _ if is_bar(word) => words.push("BAR".to_owned()),
            _ => words.push(masked_word(word)),
        }
    }
    words.join(" ")
}

fn is_bar(word: &str) -> bool {
    word.chars().count() > 20 && word.chars().all(|c| "█░▒RLASH".contains(c))
}

fn masked_word(word: &str) -> String {
    let mut masked = String::new();
    let mut rest = word;
    while let Some(place) = rest.find(|c: char| c.is_ascii_digit()) {
        masked.push_str(rest[..place].trim_end_matches('-'));
        masked.push('#');
        rest = rest[place..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let name = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        if UNITS.contains(&&rest[..name]) {
            rest = &rest[name..];
        }
    }
    masked + rest
}

#[test]
fn reads_commands_with_their_output() {
    let page = "text\n```console\n# one\n1\n$ two\n```\n```sh\nno\n```\n```console\n# three\n…\n# x\n```\n";
    let step = |command: &str, output: &str| Step {
        command: command.to_owned(),
        output: output.to_owned(),
    };
    assert_eq!(
        blocks(page),
        [
            vec![step("one", "1\n"), step("two", "")],
            vec![step("three", "…\n# x\n")]
        ]
    );
}

#[test]
fn masks_only_measured_values() {
    let shown = "memory █████████████████████░░░░\n342 Mi of 512 Mi (66%), in 2.3s at -49.9 Mi/s";
    let printed = "memory   ████████████████████████░ 9 Ki of\n512 Mi (1%), in 12s at -5 Mi/s\n";
    assert_eq!(compare(shown, printed), Ok(()));
    assert!(compare("memory crossed", "memory not crossed").is_err());
    assert!(compare("a\n…\nc 5Ki.", "a\nb\nc 7Mi.\nd").is_ok());
    assert!(compare("c\n…\na", "a\nb\nc").is_err());
}
