//! `dd`: copies blocks. Blocks are always read whole, also from pipes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Instant;

use super::space;
use crate::options::{path, size};
use crate::outcome::{Failure, Outcome, shown, warn};

/// The largest block, which is held in memory.
const MAX_BLOCK: u64 = 1 << 30;

#[derive(Default)]
struct Job {
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    block: Option<u64>,
    count: Option<u64>,
    skip: u64,
    seek: u64,
    keeps_rest: bool,
    syncs: bool,
    is_quiet: bool,
}

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let job = read(args)?;
    let block = job.block.unwrap_or(512);
    if block == 0 || block > MAX_BLOCK {
        return Err(Failure::usage(format!(
            "bs={block}: not from 1 to {MAX_BLOCK}"
        )));
    }
    let mut input: Box<dyn Read> = match &job.input {
        Some(name) => {
            let mut file =
                File::open(path(name)).map_err(|error| Failure::on(shown(name), error))?;
            let start = job.skip.saturating_mul(block);
            if start > 0 && file.metadata()?.is_file() {
                file.seek(SeekFrom::Start(start))
                    .map_err(|error| Failure::on(shown(name), error))?;
            } else {
                io::copy(&mut (&file).take(start), &mut io::sink())?;
            }
            Box::new(file)
        }
        None => {
            let mut input = io::stdin().lock();
            io::copy(
                &mut input.by_ref().take(job.skip.saturating_mul(block)),
                &mut io::sink(),
            )?;
            Box::new(input)
        }
    };
    let mut file = job
        .output
        .as_deref()
        .map(|name| open(name, &job, block))
        .transpose()?;
    let started = Instant::now();
    let mut buffer = vec![0; usize::try_from(block).unwrap_or(usize::MAX)];
    let (mut whole, mut partial, mut total) = (0_u64, 0_u64, 0_u64);
    let result = loop {
        if job.count.is_some_and(|count| whole + partial >= count) {
            break Ok(());
        }
        let length = fill(&mut input, &mut buffer)?;
        if length == 0 {
            break Ok(());
        }
        let piece = buffer.get(..length).unwrap_or_default();
        let written = match &mut file {
            Some(file) => file.write_all(piece),
            None => output.write_all(piece),
        };
        if let Err(error) = written {
            let name = job
                .output
                .as_deref()
                .map_or("standard output".into(), shown);
            break Err(Failure::on(name, error));
        }
        if length == buffer.len() {
            whole += 1
        } else {
            partial += 1
        }
        total += u64::try_from(length).unwrap_or(u64::MAX);
    };
    if let Some(file) = file.filter(|_| job.syncs) {
        file.sync_all()?;
    }
    if !job.is_quiet {
        let seconds = started.elapsed().as_secs_f64();
        let amount = space::human(total);
        warn(
            "dd",
            format_args!("{whole}+{partial} blocks, {total} bytes ({amount}) in {seconds:.2} s"),
        );
    }
    result.map(|()| 0)
}

fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn open(name: &[u8], job: &Job, block: u64) -> Result<File, Failure> {
    let failed = |error| Failure::on(shown(name), error);
    let mut options = OpenOptions::new();
    let is_cut = !job.keeps_rest && job.seek == 0;
    let mut file = options
        .write(true)
        .create(true)
        .truncate(is_cut)
        .open(path(name))
        .map_err(failed)?;
    if job.seek > 0 {
        let start = job.seek.saturating_mul(block);
        if !job.keeps_rest {
            file.set_len(start).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
    }
    Ok(file)
}

fn read(args: &[Vec<u8>]) -> Result<Job, Failure> {
    let mut job = Job::default();
    for arg in args {
        let wrong = || Failure::usage(format!("{}: unknown or wrong operand", shown(arg)));
        let place = arg
            .iter()
            .position(|byte| *byte == b'=')
            .ok_or_else(wrong)?;
        let (name, value) = arg.split_at(place);
        let value = value.get(1..).unwrap_or_default();
        let amount = || size(value).ok_or_else(wrong);
        match name {
            b"if" => job.input = Some(value.to_vec()),
            b"of" => job.output = Some(value.to_vec()),
            b"bs" => job.block = Some(amount()?),
            b"count" => job.count = Some(amount()?),
            b"skip" => job.skip = amount()?,
            b"seek" => job.seek = amount()?,
            b"conv" => {
                for conversion in value.split(|byte| *byte == b',') {
                    match conversion {
                        b"notrunc" => job.keeps_rest = true,
                        b"fsync" => job.syncs = true,
                        _ => return Err(wrong()),
                    }
                }
            }
            b"status" if value == b"none" => job.is_quiet = true,
            _ => return Err(wrong()),
        }
    }
    Ok(job)
}
