//! Regular expressions without backtracking: a set of states moves along the text, so that a line
//! takes time in proportion to its length times that of the pattern.
//!
//! The subset: `.`, `[…]` with classes, `*`, `^`, `$`, groups, alternatives, `+`, `?`, and `{m,n}`
//! up to 255, in the notation of grep (`\(`, `\|`, `\+`, `\?`, `\{`) or of grep -E. Also `\w`, `\W`,
//! `\s`, `\S`, `\b`, `\<` and `\>`. There are no references back to groups.

use crate::character_class;

/// How deep groups may be nested.
const MAX_DEPTH: usize = 100;

/// The most states of one expression: repetitions of repetitions multiply.
const MAX_STATES: usize = 20_000;

const MAX_REPETITIONS: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Nothing,
    Any,
    Character(char),
    Set {
        is_negated: bool,
        members: Vec<Member>,
    },
    Start,
    End,
    WordStart,
    WordEnd,
    WordEdge,
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeat {
        node: Box<Node>,
        least: usize,
        most: Option<usize>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Member {
    Range(char, char),
    Class(String),
}

#[derive(Debug, Clone)]
enum State {
    One(Node),
    /// A condition that takes no character.
    Zero(Node),
    Split(usize, usize),
    Jump(usize),
    Match,
}

#[derive(Debug)]
pub(super) struct Regex {
    states: Vec<State>,
    ignores_case: bool,
}

impl Regex {
    pub(super) fn new(
        pattern: &str,
        is_extended: bool,
        ignores_case: bool,
    ) -> Result<Self, String> {
        let characters: Vec<char> = pattern.chars().collect();
        let mut reader = Reader {
            characters: &characters,
            at: 0,
            is_extended,
            depth: 0,
        };
        let node = reader.either()?;
        if reader.at < characters.len() {
            return Err("a closing parenthesis has no opening one".to_owned());
        }
        let mut regex = Self {
            states: Vec::new(),
            ignores_case,
        };
        regex.compile(&node)?;
        regex.states.push(State::Match);
        Ok(regex)
    }

    fn push(&mut self, state: State) -> Result<usize, String> {
        if self.states.len() >= MAX_STATES {
            return Err("the pattern is too large".to_owned());
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    fn set(&mut self, place: usize, state: State) {
        if let Some(slot) = self.states.get_mut(place) {
            *slot = state;
        }
    }

    fn compile(&mut self, node: &Node) -> Result<(), String> {
        match node {
            Node::Nothing => {}
            Node::Any | Node::Character(_) | Node::Set { .. } => {
                self.push(State::One(node.clone()))?;
            }
            Node::Start | Node::End | Node::WordStart | Node::WordEnd | Node::WordEdge => {
                self.push(State::Zero(node.clone()))?;
            }
            Node::Sequence(nodes) => {
                for node in nodes {
                    self.compile(node)?;
                }
            }
            Node::Either(nodes) => {
                let mut ends = Vec::new();
                let count = nodes.len();
                for (place, node) in nodes.iter().enumerate() {
                    if place + 1 == count {
                        self.compile(node)?;
                        break;
                    }
                    let split = self.push(State::Match)?;
                    self.compile(node)?;
                    ends.push(self.push(State::Match)?);
                    let next = self.states.len();
                    self.set(split, State::Split(split + 1, next));
                }
                let end = self.states.len();
                for jump in ends {
                    self.set(jump, State::Jump(end));
                }
            }
            Node::Repeat { node, least, most } => {
                for _ in 0..*least {
                    self.compile(node)?;
                }
                match most {
                    None => {
                        let split = self.push(State::Match)?;
                        self.compile(node)?;
                        self.push(State::Jump(split))?;
                        let end = self.states.len();
                        self.set(split, State::Split(split + 1, end));
                    }
                    Some(most) => {
                        let mut splits = Vec::new();
                        for _ in *least..*most {
                            splits.push(self.push(State::Match)?);
                            self.compile(node)?;
                        }
                        let end = self.states.len();
                        for split in splits {
                            self.set(split, State::Split(split + 1, end));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The first and, from there, the longest match: its range in characters of the line.
    pub(super) fn find(&self, line: &[char], from: usize) -> Option<(usize, usize)> {
        (from..=line.len()).find_map(|start| Some((start, self.longest(line, start)?)))
    }

    /// Whether the line has a match anywhere, in one pass.
    pub(super) fn is_match(&self, line: &[char]) -> bool {
        let mut active = Active::new(self.states.len());
        for at in 0..=line.len() {
            // A match may begin at every character.
            active.add(self, 0, line, at);
            if active.has_matched {
                return true;
            }
            active = self.step(&active, line, at);
            if active.has_matched {
                return true;
            }
        }
        false
    }

    fn longest(&self, line: &[char], start: usize) -> Option<usize> {
        let mut active = Active::new(self.states.len());
        active.add(self, 0, line, start);
        let mut end = None;
        for at in start..=line.len() {
            if active.has_matched {
                end = Some(at);
            }
            if active.states.is_empty() {
                break;
            }
            active = self.step(&active, line, at);
        }
        end
    }

    fn step(&self, active: &Active, line: &[char], at: usize) -> Active {
        let mut next = Active::new(self.states.len());
        let Some(character) = line.get(at).copied() else {
            return next;
        };
        for place in &active.states {
            if let Some(State::One(node)) = self.states.get(*place)
                && self.accepts(node, character)
            {
                next.add(self, place + 1, line, at + 1);
            }
        }
        next
    }

    fn accepts(&self, node: &Node, character: char) -> bool {
        if !self.ignores_case {
            return is_one(node, character);
        }
        // A set matches both cases, but is negated as a whole.
        if let Node::Set {
            is_negated,
            members,
        } = node
        {
            let is_member = variants(character).any(|variant| is_in(members, variant));
            return is_member != *is_negated;
        }
        if let Node::Character(own) = node {
            return variants(*own).any(|own| variants(character).any(|other| own == other));
        }
        is_one(node, character)
    }
}

fn variants(character: char) -> impl Iterator<Item = char> {
    let lower = character.to_lowercase().next();
    let upper = character.to_uppercase().next();
    [Some(character), lower, upper].into_iter().flatten()
}

fn is_one(node: &Node, character: char) -> bool {
    match node {
        Node::Any => true,
        Node::Character(own) => *own == character,
        Node::Set {
            is_negated,
            members,
        } => is_in(members, character) != *is_negated,
        _ => false,
    }
}

fn is_in(members: &[Member], character: char) -> bool {
    members.iter().any(|member| match member {
        Member::Range(low, high) => (*low..=*high).contains(&character),
        Member::Class(name) => character_class::contains(name.as_bytes(), character),
    })
}

fn is_word(character: Option<&char>) -> bool {
    character.is_some_and(|character| character.is_alphanumeric() || *character == '_')
}

fn holds(node: &Node, line: &[char], at: usize) -> bool {
    let before = is_word(at.checked_sub(1).and_then(|place| line.get(place)));
    let after = is_word(line.get(at));
    match node {
        Node::Start => at == 0,
        Node::End => at == line.len(),
        Node::WordStart => !before && after,
        Node::WordEnd => before && !after,
        _ => before != after,
    }
}

/// The states in which a match may be, each once.
struct Active {
    states: Vec<usize>,
    is_known: Vec<bool>,
    has_matched: bool,
}

impl Active {
    fn new(count: usize) -> Self {
        Self {
            states: Vec::new(),
            is_known: vec![false; count],
            has_matched: false,
        }
    }

    /// Adds a state and all that it leads to without taking a character.
    fn add(&mut self, regex: &Regex, place: usize, line: &[char], at: usize) {
        let mut left = vec![place];
        while let Some(place) = left.pop() {
            match self.is_known.get_mut(place) {
                Some(is_known) if !*is_known => *is_known = true,
                _ => continue,
            }
            match regex.states.get(place) {
                Some(State::One(_)) => self.states.push(place),
                Some(State::Zero(node)) if holds(node, line, at) => left.push(place + 1),
                Some(State::Split(first, second)) => left.extend([*second, *first]),
                Some(State::Jump(target)) => left.push(*target),
                Some(State::Match) => self.has_matched = true,
                Some(State::Zero(_)) | None => {}
            }
        }
    }
}

struct Reader<'a> {
    characters: &'a [char],
    at: usize,
    is_extended: bool,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    /// Whether an operator comes next: with a backslash in basic patterns, without in extended ones.
    fn is_operator(&self, operator: char) -> bool {
        if self.is_extended {
            return self.peek() == Some(operator);
        }
        self.peek() == Some('\\') && self.characters.get(self.at + 1) == Some(&operator)
    }

    fn take(&mut self, operator: char) -> bool {
        let is_next = self.is_operator(operator);
        if is_next {
            self.at += if self.is_extended { 1 } else { 2 };
        }
        is_next
    }

    fn either(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.sequence()?];
        while self.take('|') {
            nodes.push(self.sequence()?);
        }
        Ok(match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            last => {
                nodes.extend(last);
                Node::Either(nodes)
            }
        })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while self.peek().is_some() && !self.is_operator('|') {
            if self.is_operator(')') && (self.depth > 0 || !self.is_extended) {
                if self.depth == 0 {
                    return Err("a closing parenthesis has no opening one".to_owned());
                }
                break;
            }
            let node = self.atom(nodes.is_empty())?;
            nodes.push(self.repeated(node)?);
        }
        Ok(Node::Sequence(nodes))
    }

    fn repeated(&mut self, mut node: Node) -> Result<Node, String> {
        loop {
            let (least, most) = if self.peek() == Some('*') {
                self.at += 1;
                (0, None)
            } else if self.take('+') {
                (1, None)
            } else if self.take('?') {
                (0, Some(1))
            } else if self.take('{') {
                self.bounds()?
            } else {
                return Ok(node);
            };
            // Repetitions of repetitions nest as groups do.
            if depth(&node) > MAX_DEPTH {
                return Err(format!("nested more than {MAX_DEPTH} levels deep"));
            }
            node = Node::Repeat {
                node: Box::new(node),
                least,
                most,
            };
        }
    }

    fn number(&mut self) -> Result<Option<usize>, String> {
        let mut digits = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            digits.push(digit);
            self.at += 1;
        }
        if digits.is_empty() {
            return Ok(None);
        }
        let number = digits
            .parse()
            .ok()
            .filter(|number| *number <= MAX_REPETITIONS);
        number
            .map(Some)
            .ok_or_else(|| format!("more than {MAX_REPETITIONS} repetitions"))
    }

    fn bounds(&mut self) -> Result<(usize, Option<usize>), String> {
        let least = self.number()?;
        let has_comma = self.peek() == Some(',');
        self.at += usize::from(has_comma);
        let most = if has_comma { self.number()? } else { least };
        if !self.take('}') || least.is_none() && most.is_none() {
            return Err("a repetition is not of the form {m,n}".to_owned());
        }
        let least = least.unwrap_or(0);
        if most.is_some_and(|most| most < least) {
            return Err("a repetition ends before it begins".to_owned());
        }
        Ok((least, most))
    }

    fn atom(&mut self, is_first: bool) -> Result<Node, String> {
        if self.is_operator('(') {
            self.take('(');
            if self.depth >= MAX_DEPTH {
                return Err(format!("nested more than {MAX_DEPTH} levels deep"));
            }
            self.depth += 1;
            let node = self.either()?;
            self.depth -= 1;
            if !self.take(')') {
                return Err("a closing parenthesis is missing".to_owned());
            }
            return Ok(node);
        }
        let Some(character) = self.peek() else {
            return Ok(Node::Nothing);
        };
        self.at += 1;
        let is_at_end = self.at == self.characters.len()
            || self.is_operator('|')
            || self.is_operator(')') && self.depth > 0;
        Ok(match character {
            '.' => Node::Any,
            '[' => self.set()?,
            '^' if is_first || self.is_extended => Node::Start,
            '$' if is_at_end || self.is_extended => Node::End,
            '*' | '+' | '?' if self.is_extended && is_first => {
                return Err(format!("{character} repeats nothing"));
            }
            '\\' => self.escape()?,
            character => Node::Character(character),
        })
    }

    fn escape(&mut self) -> Result<Node, String> {
        let Some(character) = self.peek() else {
            return Err("the pattern ends in a backslash".to_owned());
        };
        self.at += 1;
        let class = |is_negated: bool, names: &[&str]| {
            let mut members: Vec<Member> = names
                .iter()
                .map(|name| Member::Class((*name).to_owned()))
                .collect();
            if names == ["alnum"] {
                members.push(Member::Range('_', '_'));
            }
            Node::Set {
                is_negated,
                members,
            }
        };
        Ok(match character {
            'w' => class(false, &["alnum"]),
            'W' => class(true, &["alnum"]),
            's' => class(false, &["space"]),
            'S' => class(true, &["space"]),
            'b' => Node::WordEdge,
            '<' => Node::WordStart,
            '>' => Node::WordEnd,
            '1'..='9' => return Err("references back to groups are not supported".to_owned()),
            character => Node::Character(character),
        })
    }

    fn set(&mut self) -> Result<Node, String> {
        let missing = || "a closing bracket is missing".to_owned();
        let is_negated = self.peek() == Some('^');
        self.at += usize::from(is_negated);
        let start = self.at;
        let mut members = Vec::new();
        loop {
            let first = self.peek().ok_or_else(missing)?;
            self.at += 1;
            if first == ']' && self.at > start + 1 {
                return Ok(Node::Set {
                    is_negated,
                    members,
                });
            }
            if first == '[' && self.peek() == Some(':') {
                let rest = self.characters.get(self.at + 1..).unwrap_or_default();
                let length = rest
                    .iter()
                    .position(|character| *character == ':')
                    .ok_or_else(missing)?;
                let name: String = rest.iter().take(length).collect();
                self.at += length + 2;
                if self.peek() != Some(']') {
                    return Err(missing());
                }
                self.at += 1;
                members.push(Member::Class(name));
                continue;
            }
            let mut last = first;
            if self.peek() == Some('-')
                && let Some(end) = self.characters.get(self.at + 1).filter(|end| **end != ']')
            {
                last = *end;
                self.at += 2;
            }
            if last < first {
                return Err(format!("the range {first}-{last} ends before it begins"));
            }
            members.push(Member::Range(first, last));
        }
    }
}

fn depth(node: &Node) -> usize {
    let mut depth = 0;
    let mut node = node;
    while let Node::Repeat { node: inner, .. } = node {
        depth += 1;
        node = inner;
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, is_extended: bool, text: &str) -> Option<(usize, usize)> {
        let line: Vec<char> = text.chars().collect();
        let regex = Regex::new(pattern, is_extended, false).unwrap();
        let found = regex.find(&line, 0);
        assert_eq!(regex.is_match(&line), found.is_some(), "{pattern} {text}");
        found
    }

    #[test]
    fn finds_the_first_and_longest_match() {
        for (pattern, is_extended, text, expected) in [
            ("a+b", true, "xaaab", Some((1, 5))),
            ("a+b", false, "aab a+b", Some((4, 7))),
            ("a\\+b", false, "xaaab", Some((1, 5))),
            ("^$", true, "", Some((0, 0))),
            ("^b", true, "ab", None),
            ("x|yz|y", true, "ayz", Some((1, 3))),
            ("(ab){2,3}", true, "ababababab", Some((0, 6))),
            ("(ab){2}c", true, "xababc", Some((1, 6))),
            ("[^0-9]+", true, "12ab3", Some((2, 4))),
            ("[[:digit:]]\\{3\\}", false, "a1234", Some((1, 4))),
            ("a\\.b", true, "axb a.b", Some((4, 7))),
            ("(a*)*b", true, "aaac", None),
            ("a**", true, "baa", Some((0, 0))),
            ("\\bfoo\\b", true, "food foo", Some((5, 8))),
            ("\\w+", true, "  a_1 ", Some((2, 5))),
            ("[]x]", true, "]", Some((0, 1))),
            ("ü.", true, "süß", Some((1, 3))),
            ("a$b", false, "a$b", Some((0, 3))),
            ("()", true, "a", Some((0, 0))),
            ("a{0}b", true, "ab", Some((1, 2))),
        ] {
            assert_eq!(
                find(pattern, is_extended, text),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn ignores_case_on_request() {
        for (pattern, text, expected) in [
            ("FOO", "foo", true),
            ("[a-c]X", "Bx", true),
            ("[^a]", "A", false),
            ("Ü", "ü", true),
        ] {
            let line: Vec<char> = text.chars().collect();
            let regex = Regex::new(pattern, true, true).unwrap();
            assert_eq!(regex.is_match(&line), expected, "{pattern}");
        }
    }

    #[test]
    fn wrong_patterns_are_errors() {
        for pattern in [
            "(a",
            "[a",
            "a{2,1}",
            "a{999}",
            "*a",
            "a\\",
            "(a)\\1",
            "[z-a]",
            "((a{255}){255}){255}",
        ] {
            assert!(Regex::new(pattern, true, false).is_err(), "{pattern}");
        }
        assert!(Regex::new(&"(".repeat(100_000), true, false).is_err());
        assert!(Regex::new(&format!("a{}", "*".repeat(100_000)), true, false).is_err());
        assert!(Regex::new("a\\)", false, false).is_err());
    }

    #[test]
    fn runs_in_polynomial_time() {
        let line: Vec<char> = "a".repeat(2_000).chars().collect();
        let regex = Regex::new("(a|aa)+b", true, false).unwrap();
        assert!(!regex.is_match(&line));
    }
}
