//! Trees to YAML text.

use super::{Content, Node, ScalarValue};

impl Node {
    /// The tree as block-style YAML that [`parse`](super::parse) reads back to the same values.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        match &self.content {
            Content::Scalar { .. } => {
                out.push_str(&scalar(self));
                out.push('\n');
            }
            _ if is_empty(self) => {
                out.push_str(empty(self));
                out.push('\n');
            }
            _ => write_block(self, 0, &mut out),
        }
        out
    }
}

/// Writes a collection that is not empty, one entry per line.
fn write_block(node: &Node, indent: usize, out: &mut String) {
    let margin = " ".repeat(indent);
    match &node.content {
        Content::Mapping(entries) => {
            for entry in entries {
                out.push_str(&format!("{margin}{}:", text(&entry.key)));
                // Lists stand at the margin of their key, as kubectl writes them.
                let deeper = match entry.value.content {
                    Content::Sequence(_) => indent,
                    _ => indent + 2,
                };
                write_value(&entry.value, deeper, out);
            }
        }
        Content::Sequence(items) => {
            for item in items {
                if is_empty(item) || matches!(item.content, Content::Scalar { .. }) {
                    out.push_str(&format!("{margin}-"));
                    write_value(item, indent, out);
                } else {
                    // The first line of a nested collection shares the line of its dash.
                    let mut nested = String::new();
                    write_block(item, indent + 2, &mut nested);
                    out.push_str(&format!("{margin}- {}", nested.trim_start()));
                }
            }
        }
        Content::Scalar { .. } => {}
    }
}

/// Writes what follows a key or a dash.
fn write_value(node: &Node, indent: usize, out: &mut String) {
    match &node.content {
        Content::Scalar { .. } => out.push_str(&format!(" {}\n", scalar(node))),
        _ if is_empty(node) => out.push_str(&format!(" {}\n", empty(node))),
        _ => {
            out.push('\n');
            write_block(node, indent, out);
        }
    }
}

fn is_empty(node: &Node) -> bool {
    match &node.content {
        Content::Mapping(entries) => entries.is_empty(),
        Content::Sequence(items) => items.is_empty(),
        Content::Scalar { .. } => false,
    }
}

fn empty(node: &Node) -> &'static str {
    match node.content {
        Content::Sequence(_) => "[]",
        _ => "{}",
    }
}

fn scalar(node: &Node) -> String {
    let Content::Scalar { text: raw, value } = &node.content else {
        return String::new();
    };
    match value {
        ScalarValue::Null => "null".to_owned(),
        ScalarValue::Bool(value) => value.to_string(),
        ScalarValue::Int(number) => number.to_string(),
        ScalarValue::Unsigned(number) => number.to_string(),
        // The digits as they were written; a float printed again may differ in the last one.
        ScalarValue::Float(_) => raw.clone(),
        ScalarValue::Text => text(raw),
    }
}

/// A text, quoted unless it cannot be taken for another type.
fn text(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    let means_itself = ScalarValue::of_plain(text) == ScalarValue::Text;
    if starts_plain && means_itself && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            ' '..='\u{7e}' => out.push(c),
            // Escapes by number also cover what a YAML text may not hold as it is.
            _ if u32::from(c) <= 0xff => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}
