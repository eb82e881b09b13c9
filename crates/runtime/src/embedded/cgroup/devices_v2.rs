//! Device rules on cgroup v2: a small program in the kernel.
//!
//! The kernel runs the program at each access with the kind of device, the access and the numbers;
//! it answers 1 to allow, 0 to forbid. Each rule becomes a run of comparisons that falls through to
//! "allow" or jumps on to the next rule.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use super::devices::{Kind, Rule};

/// One instruction of the kernel's virtual machine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// Target register in the lower half, source register in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Operations, from the kernel's `linux/bpf.h` and `linux/bpf_common.h`.
mod op {
    /// Load 32 bits from memory.
    pub(super) const LOAD: u8 = 0x61;
    /// 32-bit operations with an immediate value.
    pub(super) const AND: u8 = 0x54;
    pub(super) const SHIFT_RIGHT: u8 = 0x74;
    /// 32-bit copy of a register.
    pub(super) const COPY: u8 = 0xbc;
    /// Set a register.
    pub(super) const SET: u8 = 0xb7;
    /// Jump if not equal to an immediate value (32 bits).
    pub(super) const JUMP_NOT_EQUAL: u8 = 0x56;
    pub(super) const EXIT: u8 = 0x95;
}

/// Registers: the answer, what the program is given, and where it keeps its parts.
const ANSWER: u8 = 0;
const CONTEXT: u8 = 1;
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const MAJOR: u8 = 4;
const MINOR: u8 = 5;
const SCRATCH: u8 = 6;

/// Values of the kernel's `struct bpf_cgroup_dev_ctx`.
const KIND_BLOCK: i32 = 1;
const KIND_CHAR: i32 = 2;
const ACCESS_MAKE: i32 = 1;
const ACCESS_READ: i32 = 2;
const ACCESS_WRITE: i32 = 4;

fn instruction(code: u8, target: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers: target | (source << 4),
        offset,
        immediate,
    }
}

/// The program for the rules. Everything they do not mention is forbidden.
fn program(rules: &[Rule]) -> Vec<Instruction> {
    let mut program = vec![
        // The first word holds the access in its upper and the kind in its lower half.
        instruction(op::LOAD, KIND, CONTEXT, 0, 0),
        instruction(op::COPY, ACCESS, KIND, 0, 0),
        instruction(op::AND, KIND, 0, 0, 0xffff),
        instruction(op::SHIFT_RIGHT, ACCESS, 0, 0, 16),
        instruction(op::LOAD, MAJOR, CONTEXT, 4, 0),
        instruction(op::LOAD, MINOR, CONTEXT, 8, 0),
    ];
    for rule in rules {
        program.extend(rule_program(rule));
    }
    program.push(instruction(op::SET, ANSWER, 0, 0, 0));
    program.push(instruction(op::EXIT, 0, 0, 0, 0));
    program
}

fn rule_program(rule: &Rule) -> Vec<Instruction> {
    let kind = match rule.kind {
        Kind::Block => KIND_BLOCK,
        Kind::Char => KIND_CHAR,
    };
    let mut forbidden = 0;
    for (is_allowed, access) in [
        (rule.read, ACCESS_READ),
        (rule.write, ACCESS_WRITE),
        (rule.make, ACCESS_MAKE),
    ] {
        if !is_allowed {
            forbidden |= access;
        }
    }
    let unless = |register, value: i32| instruction(op::JUMP_NOT_EQUAL, register, 0, 0, value);
    let mut part = vec![
        unless(KIND, kind),
        // No bit of the access may be one that is forbidden.
        instruction(op::COPY, SCRATCH, ACCESS, 0, 0),
        instruction(op::AND, SCRATCH, 0, 0, forbidden),
        unless(SCRATCH, 0),
    ];
    part.extend(rule.major.map(|major| unless(MAJOR, major.cast_signed())));
    part.extend(rule.minor.map(|minor| unless(MINOR, minor.cast_signed())));
    part.push(instruction(op::SET, ANSWER, 0, 0, 1));
    part.push(instruction(op::EXIT, 0, 0, 0, 0));
    // All jumps go behind the rule; its length fits many times.
    let length = part.len();
    for (at, instruction) in part.iter_mut().enumerate() {
        if instruction.code == op::JUMP_NOT_EQUAL {
            instruction.offset = i16::try_from(length - at - 1).unwrap_or(i16::MAX);
        }
    }
    part
}

/// Puts the rules in force for the processes of a cgroup.
pub(super) fn attach(dir: &Path, rules: &[Rule]) -> io::Result<()> {
    let cgroup = File::open(dir)?;
    let program = load(&program(rules))?;
    attach_program(cgroup.as_raw_fd(), program.as_raw_fd())
}

/// `bpf(2)` commands and arguments.
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
/// Programs of the cgroups above, systemd's for example, still run as well.
const ATTACH_BESIDE_OTHERS: u32 = 2;

#[repr(C)]
struct LoadArguments {
    program_type: u32,
    length: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
}

#[repr(C)]
struct AttachArguments {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

#[expect(unsafe_code, reason = "no safe crate wraps bpf")]
fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let length = u32::try_from(program.len()).map_err(io::Error::other)?;
    let arguments = LoadArguments {
        program_type: PROG_TYPE_CGROUP_DEVICE,
        length,
        instructions: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buffer: 0,
    };
    // SAFETY: the arguments are laid out as the kernel has them and point to memory that outlives
    // the call; the kernel checks the program before it takes it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_LOAD,
            &raw const arguments,
            size_of::<LoadArguments>(),
        )
    };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[expect(unsafe_code, reason = "no safe crate wraps bpf")]
fn attach_program(cgroup: RawFd, program: RawFd) -> io::Result<()> {
    let arguments = AttachArguments {
        target: cgroup.cast_unsigned(),
        program: program.cast_unsigned(),
        kind: ATTACH_CGROUP_DEVICE,
        flags: ATTACH_BESIDE_OTHERS,
    };
    // SAFETY: the arguments are laid out as the kernel has them and outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_ATTACH,
            &raw const arguments,
            size_of::<AttachArguments>(),
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::devices::rules;
    use super::*;

    /// Runs a program as the kernel would.
    fn run(program: &[Instruction], kind: i32, access: i32, major: i32, minor: i32) -> i32 {
        let context = [(access << 16) | kind, major, minor];
        let mut registers = [0_i32; 16];
        let mut at = 0;
        loop {
            let now = program[at];
            let (target, source) = (now.registers & 0xf, now.registers >> 4);
            let (target, source) = (usize::from(target), usize::from(source));
            at += 1;
            match now.code {
                op::LOAD => registers[target] = context[usize::try_from(now.offset / 4).unwrap()],
                op::COPY => registers[target] = registers[source],
                op::SET => registers[target] = now.immediate,
                op::AND => registers[target] &= now.immediate,
                op::SHIFT_RIGHT => registers[target] >>= now.immediate,
                op::JUMP_NOT_EQUAL if registers[target] != now.immediate => {
                    at += usize::try_from(now.offset).unwrap();
                }
                op::JUMP_NOT_EQUAL => {}
                op::EXIT => return registers[usize::from(ANSWER)],
                other => panic!("unknown operation {other:#x}"),
            }
        }
    }

    #[test]
    fn device_programs_allow_only_the_listed_devices() {
        let program = program(&rules(&[]));
        let read_write = ACCESS_READ | ACCESS_WRITE;
        for (kind, access, major, minor, want) in [
            (KIND_CHAR, read_write, 1, 3, 1),
            (KIND_CHAR, read_write, 1, 1, 0),
            (KIND_CHAR, ACCESS_MAKE, 1, 1, 1),
            (KIND_BLOCK, ACCESS_MAKE, 8, 0, 1),
            (KIND_BLOCK, ACCESS_READ, 8, 0, 0),
            (KIND_BLOCK, ACCESS_READ | ACCESS_MAKE, 1, 3, 0),
            (KIND_CHAR, read_write, 136, 7, 1),
        ] {
            let got = run(&program, kind, access, major, minor);
            assert_eq!(got, want, "{kind} {access} {major}:{minor}");
        }
    }
}
