//! The grammar of the `Accept` header.
//!
//! Matches v1.36 vendor/github.com/munnerz/goautoneg: spaces count only where it looks for them,
//! and what does not parse is skipped.

/// More clauses than any client sends; later ones are ignored, so that a long header cannot
/// cost more than its length.
const MAX_CLAUSES: usize = 64;

/// One media type that the client accepts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Whether the clause names that media type.
    pub(super) fn matches(&self, media_type: &str) -> bool {
        let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, ""));
        match (self.kind, self.subtype) {
            ("*", "*") => true,
            (k, "*") => k == kind,
            (k, s) => k == kind && s == subtype,
        }
    }

    /// The value of a parameter; the last one counts.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut named = self.parameters.iter().rev();
        named.find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn parse(part: &'a str) -> Option<Clause<'a>> {
        let part = trim(part);
        let (essence, parameters) = split(part, ';');
        let (kind, rest) = split(essence, '/');
        let kind = trim(kind);
        let subtype = match split(rest, '/') {
            _ if rest.is_empty() && kind == "*" => "*",
            _ if rest.is_empty() => return None,
            (subtype, "") => trim(subtype),
            _ => return None,
        };
        let mut clause = Clause {
            kind,
            subtype,
            quality: 1.0,
            parameters: Vec::new(),
        };
        for parameter in parameters.split(';') {
            clause.add(parameter);
        }
        Some(clause)
    }

    fn add(&mut self, parameter: &'a str) {
        let (name, rest) = split(parameter, '=');
        let (value, rest_of_value) = split(rest, '=');
        if rest.is_empty() || !rest_of_value.is_empty() {
            return;
        }
        match trim(name) {
            "q" => self.quality = value.parse().unwrap_or_default(),
            name => self.parameters.push((name, trim(value))),
        }
    }

    /// Upstream's order is not transitive; with an insertion sort it is still well defined.
    fn precedes(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses in the order of preference.
pub(super) fn parse_accept(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .take(MAX_CLAUSES)
        .filter_map(Clause::parse)
        .collect();
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

/// The text before and after the first separator.
fn split(text: &str, separator: char) -> (&str, &str) {
    text.split_once(separator).unwrap_or((text, ""))
}

fn trim(text: &str) -> &str {
    text.trim_matches(' ')
}
