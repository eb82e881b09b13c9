//! The top-level modules of each crate use each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{fail_on, is_test_code, production_part, rust_files};

/// Which names a module or file uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Code before its inline tests, without comments.
fn without_comments(text: &str) -> String {
    let lines = production_part(text).lines();
    let code: Vec<&str> = lines
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    code.join("\n")
}

/// What a module so many levels below the root uses of the root: the first names of paths that
/// begin with `crate::`, or with a `super::` for each level.
fn names_of_root(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (prefix, levels) in [("crate::", depth), ("super::", 1)] {
        for (at, _) in code.match_indices(prefix) {
            let before = &code[..at];
            if before.ends_with(is_name) || before.ends_with("::") {
                continue;
            }
            let (mut rest, mut levels) = (&code[at + prefix.len()..], levels);
            while let Some(further) = rest.strip_prefix("super::") {
                (rest, levels) = (further, levels + 1);
            }
            if levels >= depth {
                names.extend(first_names(rest));
            }
        }
    }
    names
}

/// The first name of a path, or of each path in braces.
fn first_names(path: &str) -> Vec<String> {
    let Some(list) = path.strip_prefix('{') else {
        return vec![path.chars().take_while(|c| is_name(*c)).collect()];
    };
    let mut names = vec![String::new()];
    let (mut depth, mut is_first) = (0_u32, true);
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(String::new());
                is_first = true;
            }
            c if c.is_whitespace() => {}
            c if is_name(c) && is_first => {
                if let Some(name) = names.last_mut() {
                    name.push(c);
                }
            }
            _ => is_first = false,
        }
    }
    names
}

/// The names that a root file takes from its modules, each with the module.
fn taken_from_modules(root: &str) -> BTreeMap<String, String> {
    let uses = root.split("use ").skip(1);
    let statements = uses.filter_map(|rest| rest.split_once(';')?.0.split_once("::"));
    let names = statements.flat_map(|(module, rest)| {
        let names = rest.split(|c| !is_name(c)).filter(|name| !name.is_empty());
        names.map(move |name| (name.to_owned(), module.trim().to_owned()))
    });
    names.collect()
}

/// A way from a module back to itself.
fn find_cycle(uses: &Uses) -> Option<Vec<&str>> {
    fn search<'a>(
        from: &'a str,
        uses: &'a Uses,
        path: &mut Vec<&'a str>,
        searched: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = path.iter().position(|module| *module == from) {
            return Some([&path[start..], &[from]].concat());
        }
        if !searched.insert(from) {
            return None;
        }
        path.push(from);
        let mut used = uses.get(from).into_iter().flatten();
        let found = used.find_map(|module| search(module, uses, path, searched));
        path.pop();
        found
    }
    let mut searched = BTreeSet::new();
    let mut modules = uses.keys();
    modules.find_map(|module| search(module, uses, &mut Vec::new(), &mut searched))
}

/// The path below `src` of a file of a crate, and the crate's directory.
fn in_crate(path: &Path) -> Option<(&str, &Path)> {
    let (package, file) = path
        .strip_prefix("crates")
        .ok()?
        .to_str()?
        .split_once('/')?;
    Some((package, Path::new(file.strip_prefix("src/")?)))
}

#[test]
fn names_are_read_from_paths_that_begin_at_the_root() {
    let code = "use crate::{a::{b, c}, d};\nuse super::super::e::f;\nuse super::g;\ncrate::i::j();";
    let names: Vec<String> = names_of_root(code, 2).into_iter().collect();
    assert_eq!(names, ["a", "d", "e", "i"]);
    let names: Vec<String> = names_of_root(code, 1).into_iter().collect();
    assert_eq!(names, ["a", "d", "e", "g", "i"]);
    let taken = taken_from_modules("pub use a::{B, c::D};\nuse std::fs;");
    assert_eq!(taken["D"], "a");
}

#[test]
fn a_cycle_is_found() {
    let uses = |edges: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (from, to) in edges {
            let used = uses.entry((*from).to_owned()).or_default();
            used.insert((*to).to_owned());
        }
        uses
    };
    let ring = uses(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
    assert_eq!(find_cycle(&ring), Some(vec!["b", "c", "d", "b"]));
    let tree = uses(&[("a", "b"), ("b", "c"), ("a", "c")]);
    assert_eq!(find_cycle(&tree), None);
}

/// Tests may use what they like.
#[test]
fn modules_of_a_crate_form_no_cycle() {
    let files = rust_files();
    let mut taken: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    let mut crates: BTreeMap<&str, Uses> = BTreeMap::new();
    for (path, text) in &files {
        let Some((package, file)) = in_crate(path) else {
            continue;
        };
        if matches!(file.to_str(), Some("lib.rs" | "main.rs")) {
            let names = taken_from_modules(&without_comments(text));
            taken.entry(package).or_default().extend(names);
            continue;
        }
        let Some(top) = file.iter().next().filter(|_| !is_test_code(path)) else {
            continue;
        };
        let depth = file.iter().count() - usize::from(file.ends_with("mod.rs"));
        let module = top.to_string_lossy().trim_end_matches(".rs").to_owned();
        let names = names_of_root(&without_comments(text), depth);
        let uses = crates.entry(package).or_default();
        uses.entry(module).or_default().extend(names);
    }
    let mut cycles = Vec::new();
    for (package, uses) in &crates {
        let module_of = |name: &String| match uses.contains_key(name) {
            true => name.clone(),
            false => taken[package].get(name).unwrap_or(name).clone(),
        };
        let others = |(module, names): (&String, &BTreeSet<String>)| {
            let used = names.iter().map(module_of);
            (module.clone(), used.filter(|used| used != module).collect())
        };
        let uses: Uses = uses.iter().map(others).collect();
        if let Some(cycle) = find_cycle(&uses) {
            cycles.push(format!("{package}: {}", cycle.join(" -> ")));
        }
    }
    fail_on("modules of a crate that use each other", &cycles);
}
