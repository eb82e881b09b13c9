//! `tar`: packs and unpacks what `kubectl cp` sends and expects. No compression.
//!
//! `header` is the format: ustar, with long names in GNU's way when writing, in GNU's and PAX' when
//! reading. `create` packs, `extract` unpacks and lists. Owners are kept by number.

mod create;
mod extract;
mod header;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use crate::options::{Accepted, Options, path};
use crate::outcome::{Failure, Outcome, shown};
use crate::sys;

const ACCEPTED: Accepted = Accepted {
    flags: "cxtvmopOPQ",
    valued: "fCS",
    long: &[
        ("create", 'c'),
        ("extract", 'x'),
        ("list", 't'),
        ("verbose", 'v'),
        ("touch", 'm'),
        ("no-same-owner", 'o'),
        ("same-owner", 'Q'),
        ("preserve-permissions", 'p'),
        ("same-permissions", 'p'),
        ("no-same-permissions", 'P'),
        ("file", 'f'),
        ("directory", 'C'),
        ("strip-components", 'S'),
    ],
    stops_at_operand: false,
};

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let options = Options::parse(&with_dashes(args), ACCEPTED)?;
    let modes = ['c', 'x', 't']
        .into_iter()
        .filter(|letter| options.has(*letter));
    let [mode] = modes.collect::<Vec<_>>()[..] else {
        return Err(Failure::usage("give exactly one of c, x and t"));
    };
    let archive = options.value('f').unwrap_or(b"-");
    let failed = |error: io::Error| Failure::on(shown(archive), error);
    if mode == 'c' {
        let file = if archive == b"-" {
            None
        } else {
            Some(File::create(path(archive)).map_err(failed)?)
        };
        change_directory(&options)?;
        return create::run(&options, file, output);
    }
    let input: Box<dyn Read> = if archive == b"-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path(archive)).map_err(failed)?)
    };
    let input = BufReader::with_capacity(1 << 16, input);
    if mode == 't' {
        return extract::list(&options, input, output);
    }
    change_directory(&options)?;
    extract::run(&options, input, output)
}

/// The old notation, `tar cf FILE …`: letters first, then their values in the same order.
fn with_dashes(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let Some((letters, rest)) = args
        .split_first()
        .filter(|(first, _)| !first.starts_with(b"-"))
    else {
        return args.to_vec();
    };
    let mut rest = rest.iter();
    let mut words = Vec::new();
    for letter in letters {
        words.push(vec![b'-', *letter]);
        if ACCEPTED.valued.contains(char::from(*letter)) {
            words.extend(rest.next().cloned());
        }
    }
    words.extend(rest.cloned());
    words
}

fn change_directory(options: &Options) -> Result<(), Failure> {
    let Some(directory) = options.value('C') else {
        return Ok(());
    };
    std::env::set_current_dir(path(directory)).map_err(|error| Failure::on(shown(directory), error))
}

/// What of the archive's attributes the files get.
#[derive(Debug, Clone, Copy)]
struct Kept {
    owners: bool,
    permissions: bool,
    times: bool,
}

impl Kept {
    /// As GNU tar: root keeps owners and permissions unless an option disables that.
    fn new(options: &Options) -> Self {
        let is_root = sys::effective_user() == 0;
        Self {
            owners: (is_root || options.has('Q')) && !options.has('o'),
            permissions: (is_root || options.has('p')) && !options.has('P'),
            times: !options.has('m'),
        }
    }
}
