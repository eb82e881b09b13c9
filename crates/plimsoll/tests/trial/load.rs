//! The program in the pods. Its role is argument zero.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use crate::mem_info::{MemInfo, Reread};
use crate::outcome::unix_nanos;

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;
/// How often the hog takes a bite.
const BITE: Duration = Duration::from_millis(10);
/// How often a keeper runs, and how many pages it touches then.
const BEAT: Duration = Duration::from_millis(50);
const PAGES_PER_BEAT: usize = 512;
/// A keeper that was kept waiting for less does not note it down.
const WORTH_NOTING: Duration = Duration::from_millis(5);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Take memory at a steady rate.
    Hog,
    /// Hold some memory, use it, and note down when that took long.
    Keeper,
    /// Read a file again and again, every part of it twice.
    Reader,
}

impl Role {
    /// By the name of the program.
    pub(crate) fn called(name: &str) -> Option<Role> {
        match name {
            "hog" => Some(Role::Hog),
            "keeper" | "small" => Some(Role::Keeper),
            "reader" => Some(Role::Reader),
            _ => None,
        }
    }
}

/// Words of the command line: `--name value`.
pub(crate) struct Words(pub(crate) Vec<String>);

impl Words {
    fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        let at = self.0.iter().position(|word| word == name)?;
        self.0.get(at + 1)?.parse().ok()
    }

    fn log(&self) -> File {
        let path: String = self.get("--log").expect("--log FILE");
        let mut options = OpenOptions::new();
        options.create(true).append(true).open(path).unwrap()
    }
}

/// Does it until killed.
pub(crate) fn run(role: Role, words: &Words) -> ! {
    match role {
        Role::Hog => take_memory(words),
        Role::Keeper => keep_memory(words),
        Role::Reader => read_again_and_again(words),
    }
}

fn take_memory(words: &Words) -> ! {
    // The first process of a container ignores SIGTERM unless it has a handler.
    if words.0.iter().any(|word| word == "--polite") {
        std::thread::spawn(end_on_sigterm);
    }
    let rate: f64 = words.get("--rate").expect("--rate MIB_PER_SECOND");
    let prefill: i64 = words.get("--prefill-to").expect("--prefill-to MIB_LEFT");
    let hold: u64 = words.get("--hold").expect("--hold MILLISECONDS");
    let mut held = Vec::new();
    let mut memory = Reread::open("/proc/meminfo").unwrap();
    loop {
        let ahead = MemInfo::parse(memory.read()).left() / 1024 - prefill;
        if ahead <= 0 {
            break;
        }
        held.push(taken(if ahead > 64 { 16 * MIB } else { 2 * MIB }));
    }
    sleep(Duration::from_millis(hold));
    let begun = Instant::now();
    let mut bytes = 0;
    loop {
        let wanted = pages(begun.elapsed().as_secs_f64() * rate * MIB as f64) * PAGE;
        if wanted > bytes {
            held.push(taken(wanted - bytes));
            bytes = wanted;
        }
        sleep(BITE);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "far from the limits of either"
)]
fn pages(bytes: f64) -> usize {
    bytes as usize / PAGE
}

/// Memory that is really there.
fn taken(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    memory
}

fn end_on_sigterm() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        signal(SignalKind::terminate()).unwrap().recv().await;
    });
    std::process::exit(143);
}

fn keep_memory(words: &Words) -> ! {
    let mib: usize = words.get("--mib").expect("--mib NUMBER");
    let mut log = words.log();
    let mut memory = taken(mib * MIB);
    let mut at = 0;
    let mut due = Instant::now();
    loop {
        due += BEAT;
        sleep(due.saturating_duration_since(Instant::now()));
        for _ in 0..PAGES_PER_BEAT {
            memory[at] = memory[at].wrapping_add(1);
            at = (at + PAGE) % memory.len();
        }
        let late = due.elapsed();
        if late >= WORTH_NOTING {
            let _ = writeln!(log, "{} {}", unix_nanos(), late.as_nanos());
        }
        if late >= BEAT {
            due = Instant::now();
        }
    }
}

fn read_again_and_again(words: &Words) -> ! {
    let path: String = words.get("--file").expect("--file PATH");
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; MIB];
    loop {
        file.seek(SeekFrom::Start(0)).unwrap();
        loop {
            let length = file.read(&mut buffer).unwrap();
            // What is read a second time is active from then on.
            let at = file.stream_position().unwrap() - length as u64;
            file.read_exact_at(&mut buffer[..length], at).unwrap();
            if length == 0 {
                break;
            }
        }
        sleep(Duration::from_millis(500));
    }
}
