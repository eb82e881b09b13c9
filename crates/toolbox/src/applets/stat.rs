//! `stat`.

use std::fs::{self, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use super::{date, ls, users};
use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown, warn};

const DEFAULT: &str = "  File: %n\n  Size: %s  Blocks: %b  %F\nDevice: %d  Inode: %i  Links: %h\nAccess: (%a/%A)  Uid: (%u/%U)  Gid: (%g/%G)\nAccess: %x\nModify: %y\nChange: %z";

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "L",
        valued: "c",
        long: &[("format", 'c')],
        ..Accepted::default()
    };
    let options = Options::parse(args, accepted)?;
    let format = options.text('c')?.unwrap_or(DEFAULT);
    let mut status = 0;
    for name in options.some_operands("path")? {
        let found = if options.has('L') {
            fs::metadata(path(name))
        } else {
            fs::symlink_metadata(path(name))
        };
        match found {
            Ok(found) => writeln!(output, "{}", describe(format, &shown(name), &found)?)?,
            Err(error) => {
                warn("stat", format_args!("{}: {error}", shown(name)));
                status = 1;
            }
        }
    }
    Ok(status)
}

fn describe(format: &str, name: &str, found: &Metadata) -> Result<String, Failure> {
    let time = |seconds: i64, nanoseconds: i64| {
        date::nanoseconds(seconds, u32::try_from(nanoseconds).unwrap_or(0))
    };
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        text.push_str(&match rest.next() {
            Some('n') => name.to_owned(),
            Some('s') => found.len().to_string(),
            Some('b') => found.blocks().to_string(),
            Some('B') => "512".to_owned(),
            Some('F') => kind(found).to_owned(),
            Some('d') => found.dev().to_string(),
            Some('i') => found.ino().to_string(),
            Some('h') => found.nlink().to_string(),
            Some('a') => format!("{:o}", found.mode() & 0o7777),
            Some('A') => ls::mode_text(found.mode()),
            Some('u') => found.uid().to_string(),
            Some('U') => users::user(found.uid()),
            Some('g') => found.gid().to_string(),
            Some('G') => users::group(found.gid()),
            Some('x') => time(found.atime(), found.atime_nsec()),
            Some('y') => time(found.mtime(), found.mtime_nsec()),
            Some('z') => time(found.ctime(), found.ctime_nsec()),
            Some('X') => found.atime().to_string(),
            Some('Y') => found.mtime().to_string(),
            Some('Z') => found.ctime().to_string(),
            Some('%') => "%".to_owned(),
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(Failure::usage(format!(
                    "%{other}: unknown part of a format"
                )));
            }
        });
    }
    Ok(text)
}

fn kind(found: &Metadata) -> &'static str {
    match found.mode() & 0o170_000 {
        0o040_000 => "directory",
        0o120_000 => "symbolic link",
        0o020_000 => "character special file",
        0o060_000 => "block special file",
        0o010_000 => "fifo",
        0o140_000 => "socket",
        _ if found.len() == 0 => "regular empty file",
        _ => "regular file",
    }
}
