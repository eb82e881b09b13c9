//! `ps`: the processes, from `/proc`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use super::{space, users};
use crate::outcome::{Failure, Outcome, shown};

/// The kernel reports times of processes in hundredths of a second.
const TICKS_PER_SECOND: u64 = 100;

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    // All processes are listed in any case, so that the usual options mean the same.
    const KNOWN: [&[u8]; 9] = [
        b"-e", b"-A", b"-f", b"-ef", b"a", b"x", b"ax", b"aux", b"-aux",
    ];
    if let Some(unknown) = args.iter().find(|arg| !KNOWN.contains(&arg.as_slice())) {
        return Err(Failure::usage(format!(
            "{}: unknown option",
            shown(unknown)
        )));
    }
    let listing = fs::read_dir("/proc").map_err(|error| Failure::on("/proc", error))?;
    let names = listing.flatten().map(|entry| entry.file_name());
    let mut processes: Vec<u32> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    processes.sort_unstable();
    writeln!(
        output,
        "{:>7} {:>7} {:<8} {:<1} {:>6} {:>8} COMMAND",
        "PID", "PPID", "USER", "S", "RSS", "TIME"
    )?;
    for process in processes {
        // A process that has ended in the meantime has no line.
        if let Some(line) = describe(process) {
            output.write_all(&line)?;
        }
    }
    Ok(0)
}

fn describe(process: u32) -> Option<Vec<u8>> {
    let folder = format!("/proc/{process}");
    let stat = fs::read(format!("{folder}/stat")).ok()?;
    let stat = shown(&stat);
    // The name is in parentheses and may contain anything, also parentheses.
    let (name, rest) = stat.split_once(" (")?.1.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok());
    let (state, parent) = (fields.first()?, number(1)?);
    let seconds = (number(11)? + number(12)?) / TICKS_PER_SECOND;
    let user = users::user(fs::metadata(&folder).ok()?.uid());
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let resident = space::human(resident.unwrap_or(0) << 10);
    let time = format!("{}:{:02}", seconds / 60, seconds % 60);
    let mut line =
        format!("{process:>7} {parent:>7} {user:<8} {state:<1} {resident:>6} {time:>8} ")
            .into_bytes();
    let mut command = fs::read(format!("{folder}/cmdline")).unwrap_or_default();
    while command.last() == Some(&0) {
        command.pop();
    }
    if command.is_empty() {
        command = format!("[{name}]").into_bytes();
    }
    // One line per process, whatever its arguments are.
    let one_line = command
        .into_iter()
        .map(|byte| if byte.is_ascii_control() { b' ' } else { byte });
    line.extend(one_line);
    line.push(b'\n');
    Some(line)
}
