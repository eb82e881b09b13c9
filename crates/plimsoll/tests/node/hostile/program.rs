//! Programs that make one system call, for images: busybox has no applet for most of them.

/// Ends with 0 if the call succeeds, with the number of the error if not.
pub(super) fn call(number: u32, arguments: [i32; 4]) -> Vec<u8> {
    elf(&[code(number, arguments), FAILURE.to_vec(), EXIT.to_vec()].concat())
}

/// Ends with what the call gives.
pub(super) fn answer(number: u32) -> Vec<u8> {
    elf(&[code(number, [0; 4]), RESULT.to_vec(), EXIT.to_vec()].concat())
}

/// Numbers of system calls on x86-64.
#[cfg(target_arch = "x86_64")]
pub(super) mod number {
    pub(in super::super) const SOCKET: u32 = 41;
    pub(in super::super) const GETEUID: u32 = 107;
    pub(in super::super) const SYSLOG: u32 = 103;
    pub(in super::super) const KEXEC_LOAD: u32 = 246;
    pub(in super::super) const KEYCTL: u32 = 250;
    pub(in super::super) const BPF: u32 = 321;
    pub(in super::super) const USERFAULTFD: u32 = 323;
}

/// Numbers of system calls on ARM.
#[cfg(target_arch = "aarch64")]
pub(super) mod number {
    pub(in super::super) const SOCKET: u32 = 198;
    pub(in super::super) const GETEUID: u32 = 175;
    pub(in super::super) const SYSLOG: u32 = 116;
    pub(in super::super) const KEXEC_LOAD: u32 = 104;
    pub(in super::super) const KEYCTL: u32 = 219;
    pub(in super::super) const BPF: u32 = 280;
    pub(in super::super) const USERFAULTFD: u32 = 282;
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

#[cfg(target_arch = "x86_64")]
fn code(number: u32, [first, second, third, fourth]: [i32; 4]) -> Vec<u8> {
    let mut code = vec![0xb8];
    code.extend(number.to_le_bytes());
    // Sign-extended: mov r64, imm32.
    for (opcode, value) in [
        ([0x48, 0xc7, 0xc7], first),
        ([0x48, 0xc7, 0xc6], second),
        ([0x48, 0xc7, 0xc2], third),
        ([0x49, 0xc7, 0xc2], fourth),
    ] {
        code.extend(opcode);
        code.extend(value.to_le_bytes());
    }
    code.extend(SYSCALL);
    code
}

#[cfg(target_arch = "x86_64")]
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// From the answer of a call to the argument of the next: an error's number, or 0.
#[cfg(target_arch = "x86_64")]
const FAILURE: [u8; 10] = [
    0x31, 0xff, // xor edi, edi
    0x85, 0xc0, // test eax, eax
    0x79, 0x04, // jns over the next two
    0x89, 0xc7, // mov edi, eax
    0xf7, 0xdf, // neg edi
];

/// As it is.
#[cfg(target_arch = "x86_64")]
const RESULT: [u8; 2] = [0x89, 0xc7]; // mov edi, eax

#[cfg(target_arch = "x86_64")]
const EXIT: [u8; 7] = [0xb8, 0x3c, 0x00, 0x00, 0x00, 0x0f, 0x05]; // mov eax, 60; syscall

#[cfg(target_arch = "aarch64")]
fn code(number: u32, arguments: [i32; 4]) -> Vec<u8> {
    // movz, movk, and sxtw into the argument's register.
    let load = |register: u32, value: u32| {
        [
            0x5280_0000 | (value & 0xffff) << 5 | register,
            0x72a0_0000 | (value >> 16) << 5 | register,
            0x9340_7c00 | register << 5 | register,
        ]
    };
    let mut words: Vec<u32> = Vec::new();
    for (register, value) in (0..).zip(arguments) {
        words.extend(load(register, value.cast_unsigned()));
    }
    words.extend(load(8, number));
    words.push(0xd400_0001); // svc 0
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// From the answer of a call to the argument of the next: an error's number, or 0.
#[cfg(target_arch = "aarch64")]
const FAILURE: [u8; 8] = [
    0x1f, 0x00, 0x00, 0xf1, // cmp x0, 0
    0xe0, 0xa7, 0x80, 0xda, // csneg x0, xzr, x0, ge
];

/// As it is.
#[cfg(target_arch = "aarch64")]
const RESULT: [u8; 0] = [];

#[cfg(target_arch = "aarch64")]
const EXIT: [u8; 8] = [
    0xa8, 0x0b, 0x80, 0xd2, // mov x8, 93
    0x01, 0x00, 0x00, 0xd4, // svc 0
];

/// A static program of this code.
fn elf(code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let size = HEADERS + code.len() as u64;
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    for half in [2, MACHINE] {
        elf.extend(half.to_le_bytes());
    }
    elf.extend(1_u32.to_le_bytes());
    // Where it begins, where the program's headers are, and no sections.
    for word in [BASE + HEADERS, 64, 0] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        elf.extend(half.to_le_bytes());
    }
    // One segment, loaded to be read and run.
    for word in [1_u32, 5] {
        elf.extend(word.to_le_bytes());
    }
    for word in [0, BASE, BASE, size, size, 0x1000] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend_from_slice(code);
    elf
}
