//! Names of users and groups, from `/etc/passwd` and `/etc/group` only.

use std::fs::File;
use std::io::Read;

/// More of a file than this is not read.
const MAX_BYTES: u64 = 1 << 20;

/// The name with this number in a file of lines `name:x:number:…`.
fn lookup(file: &str, number: u32) -> Option<String> {
    let mut text = String::new();
    File::open(file)
        .ok()?
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    let line = text.lines().find(|line| {
        let field = line.split(':').nth(2);
        field.is_some_and(|field| field.parse() == Ok(number))
    })?;
    line.split(':').next().map(str::to_owned)
}

pub(super) fn user_name(number: u32) -> Option<String> {
    lookup("/etc/passwd", number)
}

pub(super) fn group_name(number: u32) -> Option<String> {
    lookup("/etc/group", number)
}

/// The name, or the number where there is none.
pub(super) fn user(number: u32) -> String {
    user_name(number).unwrap_or_else(|| number.to_string())
}

/// The name, or the number where there is none.
pub(super) fn group(number: u32) -> String {
    group_name(number).unwrap_or_else(|| number.to_string())
}
