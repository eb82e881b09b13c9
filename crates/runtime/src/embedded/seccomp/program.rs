//! A profile as a program of the kernel's filter machine (classic BPF).
//!
//! The machine has one register. Jumps go forward only, conditional ones by at most 255 places. The
//! program first finds the part of the call's architecture; a part compares the number with each that
//! the profile names, and has the rules of a number behind its comparison. Numbers that are always
//! allowed the kernel finds out once and does not run the program for again.

use std::collections::BTreeMap;

use libcontainer::oci_spec::runtime::{
    LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompOperator, LinuxSyscall,
};
use serde::{Deserialize, Serialize};

use super::numbers::{Abi, NATIVE};

/// One instruction: the operation, the jumps if true and if false, and the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Instruction(
    pub(in super::super) u16,
    pub(in super::super) u8,
    pub(in super::super) u8,
    pub(in super::super) u32,
);

/// As many steps as the kernel takes.
const LONGEST: usize = 4096;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_GREATER: u16 = 0x25;
const IF_GREATER_OR_EQUAL: u16 = 0x35;

/// Where things are in what the kernel shows to a filter (`struct seccomp_data`).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
const MOST_ARGUMENTS: usize = 6;

/// Why there is no program for a profile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum ProgramError {
    #[error("seccomp action {0} is not supported: the runtime has no notification listener")]
    Notify(LinuxSeccompAction),
    #[error("seccomp rule for {name}: argument {index} does not exist, there are 0 to 5")]
    Argument { name: String, index: usize },
    #[error("seccomp profile has {0} steps, the kernel takes {LONGEST} at most")]
    TooLong(usize),
}

/// What happens to a call if all conditions hold.
#[derive(Clone, Debug)]
struct Rule {
    conditions: Vec<LinuxSeccompArg>,
    action: u32,
}

/// Makes the program of a profile.
pub(super) fn compile(profile: &LinuxSeccomp) -> Result<Vec<Instruction>, ProgramError> {
    let default = action(profile.default_action(), profile.default_errno_ret())?;
    let mut abis = vec![NATIVE];
    for arch in profile.architectures().iter().flatten() {
        if let Some(abi) = Abi::named(*arch)
            && !abis.contains(&abi)
        {
            abis.push(abi);
        }
    }
    let mut program = vec![Instruction(LOAD, 0, 0, ARCHITECTURE)];
    for abi in abis {
        let part = part(profile, abi, default)?;
        program.push(Instruction(IF_EQUAL, 1, 0, abi.audit()));
        program.push(skip(part.len()));
        program.extend(part);
    }
    // Of an architecture that the profile does not name.
    let kill = LinuxSeccompAction::ScmpActKillProcess.as_u32(None);
    program.push(Instruction(RETURN, 0, 0, kill));
    match program.len() {
        length if length > LONGEST => Err(ProgramError::TooLong(length)),
        _ => Ok(program),
    }
}

/// The part for one architecture. It always returns.
fn part(profile: &LinuxSeccomp, abi: Abi, default: u32) -> Result<Vec<Instruction>, ProgramError> {
    let mut rules: BTreeMap<u32, Vec<Rule>> = BTreeMap::new();
    for call in profile.syscalls().iter().flatten() {
        // Names of other architectures, or of newer kernels, are not known here.
        let known = call
            .names()
            .iter()
            .filter_map(|name| Some((name, abi.number(name)?)));
        for (name, number) in known {
            rules
                .entry(number)
                .or_default()
                .extend(of_call(call, name)?);
        }
    }
    let mut part = vec![Instruction(LOAD, 0, 0, NUMBER)];
    if let Some(end) = abi.end() {
        part.push(Instruction(IF_GREATER_OR_EQUAL, 0, 1, end));
        part.push(Instruction(RETURN, 0, 0, default));
    }
    if let Some(newest) = rules.keys().next_back()
        && !is_allowing(profile.default_action())
    {
        let missing = LinuxSeccompAction::ScmpActErrno.as_u32(Some(ENOSYS));
        part.push(Instruction(IF_GREATER, 0, 1, *newest));
        part.push(Instruction(RETURN, 0, 0, missing));
    }
    for (number, rules) in rules {
        let body = body(rules, default);
        part.push(Instruction(IF_EQUAL, 1, 0, number));
        part.push(skip(body.len()));
        part.extend(body);
    }
    part.push(Instruction(RETURN, 0, 0, default));
    Ok(part)
}

const ENOSYS: u32 = libc::ENOSYS.unsigned_abs();

/// Whether unknown calls are allowed, or left to a tracer.
fn is_allowing(action: LinuxSeccompAction) -> bool {
    use LinuxSeccompAction::{ScmpActAllow, ScmpActLog, ScmpActTrace};
    matches!(action, ScmpActAllow | ScmpActLog | ScmpActTrace)
}

fn action(action: LinuxSeccompAction, errno: Option<u32>) -> Result<u32, ProgramError> {
    match action {
        LinuxSeccompAction::ScmpActNotify => Err(ProgramError::Notify(action)),
        // The kernel has sixteen bits for the number.
        _ => Ok(action.as_u32(errno.map(|errno| errno & 0xffff))),
    }
}

/// The rules for one of the calls that are named together. Of several conditions on one argument, one
/// has to hold; of those on different arguments, all have to.
fn of_call(call: &LinuxSyscall, name: &str) -> Result<Vec<Rule>, ProgramError> {
    let action = action(call.action(), call.errno_ret())?;
    let conditions: Vec<LinuxSeccompArg> = call.args().iter().flatten().copied().collect();
    if let Some(wrong) = conditions.iter().find(|one| one.index() >= MOST_ARGUMENTS) {
        return Err(ProgramError::Argument {
            name: name.to_owned(),
            index: wrong.index(),
        });
    }
    let mut counts = [0; MOST_ARGUMENTS];
    for condition in &conditions {
        counts[condition.index()] += 1;
    }
    if counts.iter().all(|count| *count <= 1) {
        return Ok(vec![Rule { conditions, action }]);
    }
    let alone = conditions.into_iter().map(|condition| Rule {
        conditions: vec![condition],
        action,
    });
    Ok(alone.collect())
}

/// The rules of one number. It always returns.
fn body(rules: Vec<Rule>, default: u32) -> Vec<Instruction> {
    // What holds for all calls of the number is for those that no condition picked out.
    let (certain, conditional): (Vec<Rule>, Vec<Rule>) = rules
        .into_iter()
        .partition(|rule| rule.conditions.is_empty());
    let mut body = Vec::new();
    for rule in conditional {
        let parts: Vec<Vec<Step>> = rule.conditions.iter().map(condition).collect();
        let length: usize = parts.iter().map(Vec::len).sum();
        let mut left = length;
        for part in parts {
            left -= part.len();
            let mut rest = part.len();
            for step in part {
                rest -= 1;
                // Behind the condition; behind the rule's return.
                body.push(step.place(rest, rest + left + 1));
            }
        }
        body.push(Instruction(RETURN, 0, 0, rule.action));
    }
    let last = certain.first().map_or(default, |rule| rule.action);
    body.push(Instruction(RETURN, 0, 0, last));
    body
}

/// A step of a condition, whose jumps are not in places yet.
#[derive(Clone, Copy, Debug)]
enum Step {
    Do(u16, u32),
    Test(u16, u32, To, To),
}

#[derive(Clone, Copy, Debug)]
enum To {
    Next,
    Holds,
    Fails,
}

impl Step {
    /// With the distances to where the condition holds and to where it does not. A rule has six
    /// conditions of six steps at most, so they fit.
    fn place(self, holds: usize, fails: usize) -> Instruction {
        let distance = |to: To| match to {
            To::Next => 0,
            To::Holds => u8::try_from(holds).unwrap_or(u8::MAX),
            To::Fails => u8::try_from(fails).unwrap_or(u8::MAX),
        };
        match self {
            Step::Do(code, number) => Instruction(code, 0, 0, number),
            Step::Test(code, number, yes, no) => {
                Instruction(code, distance(yes), distance(no), number)
            }
        }
    }
}

/// A condition on an argument of 64 bits, with a machine of 32.
fn condition(of: &LinuxSeccompArg) -> Vec<Step> {
    use LinuxSeccompOperator::{
        ScmpCmpEq, ScmpCmpGe, ScmpCmpGt, ScmpCmpLe, ScmpCmpLt, ScmpCmpMaskedEq, ScmpCmpNe,
    };
    let index = u32::try_from(of.index()).unwrap_or_default();
    let low_at = ARGUMENTS + 8 * index;
    let (low, high) = (Step::Do(LOAD, low_at), Step::Do(LOAD, low_at + 4));
    let (value_low, value_high) = halves(of.value());
    let greater = |code: u16, holds: To, fails: To| {
        vec![
            high,
            Step::Test(IF_GREATER, value_high, holds, To::Next),
            Step::Test(IF_EQUAL, value_high, To::Next, fails),
            low,
            Step::Test(code, value_low, holds, fails),
        ]
    };
    match of.op() {
        ScmpCmpEq => vec![
            high,
            Step::Test(IF_EQUAL, value_high, To::Next, To::Fails),
            low,
            Step::Test(IF_EQUAL, value_low, To::Holds, To::Fails),
        ],
        ScmpCmpNe => vec![
            high,
            Step::Test(IF_EQUAL, value_high, To::Next, To::Holds),
            low,
            Step::Test(IF_EQUAL, value_low, To::Fails, To::Holds),
        ],
        ScmpCmpGt => greater(IF_GREATER, To::Holds, To::Fails),
        ScmpCmpGe => greater(IF_GREATER_OR_EQUAL, To::Holds, To::Fails),
        ScmpCmpLe => greater(IF_GREATER, To::Fails, To::Holds),
        ScmpCmpLt => greater(IF_GREATER_OR_EQUAL, To::Fails, To::Holds),
        ScmpCmpMaskedEq => {
            let (wanted_low, wanted_high) = halves(of.value_two().unwrap_or_default());
            vec![
                high,
                Step::Do(AND, value_high),
                Step::Test(IF_EQUAL, wanted_high, To::Next, To::Fails),
                low,
                Step::Do(AND, value_low),
                Step::Test(IF_EQUAL, wanted_low, To::Holds, To::Fails),
            ]
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "halves")]
fn halves(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

/// Skips so many steps.
fn skip(length: usize) -> Instruction {
    Instruction(JUMP, 0, 0, u32::try_from(length).unwrap_or(u32::MAX))
}
