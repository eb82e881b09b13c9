use libcontainer::oci_spec::runtime::LinuxSeccompAction;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const X86_64: u32 = 0xc000_003e;
const X86: u32 = 0x4000_0003;
const ALLOW: u32 = 0x7fff_0000;
const FORBIDDEN: u32 = 0x0005_0001;
const MISSING: u32 = 0x0005_0026;
const KILL: u32 = 0x8000_0000;

/// What the kernel's machine makes of a call.
fn judge(program: &[Instruction], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = vec![number, arch, 0, 0];
    for argument in arguments {
        data.push(u32::try_from(argument & 0xffff_ffff).unwrap());
        data.push(u32::try_from(argument >> 32).unwrap());
    }
    let (mut at, mut register) = (0, 0);
    loop {
        let Instruction(code, yes, no, k) = program[at];
        at += 1;
        let so = match code {
            0x06 => return k,
            0x20 => {
                register = data[usize::try_from(k).unwrap() / 4];
                continue;
            }
            0x54 => {
                register &= k;
                continue;
            }
            0x05 => {
                at += usize::try_from(k).unwrap();
                continue;
            }
            0x15 => register == k,
            0x25 => register > k,
            0x35 => register >= k,
            _ => panic!("no such step: {code:#x}"),
        };
        at += usize::from(if so { yes } else { no });
    }
}

fn number(name: &str) -> u32 {
    numbers::Abi::X86_64.number(name).unwrap()
}

fn default_of(capabilities: &[&str]) -> Vec<Instruction> {
    let profile = default_profile(capabilities).unwrap();
    filter(&profile).unwrap().program
}

fn profile(value: serde_json::Value) -> LinuxSeccomp {
    serde_json::from_value(value).unwrap()
}

fn first(argument: u64) -> [u64; 6] {
    [argument, 0, 0, 0, 0, 0]
}

#[test]
fn default_profile_denies_calls_that_change_the_machine() {
    let program = default_of(&["CAP_CHOWN"]);
    for (name, argument, want) in [
        ("read", 0, ALLOW),
        ("mkdir", 0, ALLOW),
        ("arch_prctl", 0, ALLOW),
        ("ptrace", 0, ALLOW),
        ("mount", 0, FORBIDDEN),
        ("unshare", 0, FORBIDDEN),
        ("keyctl", 0, FORBIDDEN),
        ("io_uring_setup", 0, FORBIDDEN),
        ("chroot", 0, FORBIDDEN),
        ("clone", 0x11, ALLOW),
        ("clone", 0x1000_0011, FORBIDDEN),
        ("clone3", 0, MISSING),
        ("personality", 0, ALLOW),
        ("personality", 0xffff_ffff, ALLOW),
        ("personality", 0x4_0000, FORBIDDEN),
        ("socket", 2, ALLOW),
        ("socket", 38, FORBIDDEN),
        ("socket", 39, ALLOW),
        ("socket", 40, FORBIDDEN),
        ("socket", 41, ALLOW),
    ] {
        let got = judge(&program, X86_64, number(name), first(argument));
        assert_eq!(got, want, "{name}({argument:#x}): {got:#x}");
    }
}

#[test]
fn capabilities_open_their_calls() {
    let program = default_of(&["CAP_SYS_ADMIN", "CAP_SYS_CHROOT"]);
    for name in ["mount", "unshare", "clone3", "chroot"] {
        assert_eq!(
            judge(&program, X86_64, number(name), [0; 6]),
            ALLOW,
            "{name}"
        );
    }
    let flags = first(0x1000_0011);
    assert_eq!(judge(&program, X86_64, number("clone"), flags), ALLOW);
    assert_eq!(judge(&program, X86_64, number("reboot"), [0; 6]), FORBIDDEN);
}

#[test]
fn newer_system_calls_do_not_exist() {
    let program = default_of(&[]);
    assert_eq!(judge(&program, X86_64, 600, [0; 6]), MISSING);
    let allowing = profile(json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}],
    }));
    let program = filter(&allowing).unwrap().program;
    assert_eq!(judge(&program, X86_64, 600, [0; 6]), ALLOW);
    assert_eq!(
        judge(&program, X86_64, number("mkdir"), [0; 6]),
        0x0005_000d
    );
}

#[test]
fn each_architecture_has_its_numbers() {
    let program = default_of(&[]);
    let old = |name: &str| numbers::Abi::X86.number(name).unwrap();
    assert_eq!(judge(&program, X86, old("read"), [0; 6]), ALLOW);
    assert_eq!(judge(&program, X86, old("chown32"), [0; 6]), ALLOW);
    assert_eq!(judge(&program, X86, old("mount"), [0; 6]), FORBIDDEN);
    // x32, and a machine that is not this one.
    assert_eq!(judge(&program, X86_64, 0x4000_0000, [0; 6]), FORBIDDEN);
    assert_eq!(judge(&program, 0x1234, 0, [0; 6]), KILL);
    let own_only = profile(json!({"defaultAction": "SCMP_ACT_ALLOW"}));
    let program = filter(&own_only).unwrap().program;
    assert_eq!(judge(&program, X86, old("read"), [0; 6]), KILL);
}

#[test]
fn several_conditions_on_one_argument_are_alternatives() {
    let either = profile(json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ALLOW", "args": [
            {"index": 1, "value": 9, "op": "SCMP_CMP_EQ"},
            {"index": 1, "value": 15, "op": "SCMP_CMP_EQ"},
        ]}],
    }));
    let program = filter(&either).unwrap().program;
    for (signal, want) in [(9, ALLOW), (15, ALLOW), (1, FORBIDDEN)] {
        let got = judge(&program, X86_64, number("kill"), [0, signal, 0, 0, 0, 0]);
        assert_eq!(got, want, "{signal}");
    }
}

#[test]
fn unsupported_seccomp_rules_are_refused() {
    let notify = profile(json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}],
    }));
    assert_eq!(
        filter(&notify).unwrap_err(),
        ProgramError::Notify(LinuxSeccompAction::ScmpActNotify)
    );
    let seventh = profile(json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO",
            "args": [{"index": 6, "value": 0, "op": "SCMP_CMP_EQ"}]}],
    }));
    let refused = filter(&seventh).unwrap_err().to_string();
    assert_eq!(
        refused,
        "seccomp rule for mkdir: argument 6 does not exist, there are 0 to 5"
    );
}

#[test]
fn profiles_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json").to_string_lossy().into_owned();
    let missing = read_profile(&path).unwrap_err().to_string();
    assert!(
        missing.starts_with(&format!("cannot load seccomp profile {path:?}: ")),
        "{missing}"
    );
    std::fs::write(&path, "{}").unwrap();
    let wrong = read_profile(&path).unwrap_err().to_string();
    assert!(wrong.contains("missing field `defaultAction`"), "{wrong}");
}

/// What a condition says, without a machine.
fn holds(op: &str, argument: u64, value: u64, wanted: u64) -> bool {
    match op {
        "SCMP_CMP_NE" => argument != value,
        "SCMP_CMP_LT" => argument < value,
        "SCMP_CMP_LE" => argument <= value,
        "SCMP_CMP_EQ" => argument == value,
        "SCMP_CMP_GE" => argument >= value,
        "SCMP_CMP_GT" => argument > value,
        _ => argument & value == wanted,
    }
}

/// Numbers that often have equal halves.
fn close() -> impl Strategy<Value = u64> {
    let half = || {
        prop_oneof![
            Just(0_u64),
            Just(1),
            Just(2),
            Just(0xffff_ffff),
            0_u64..=0xffff_ffff
        ]
    };
    (half(), half()).prop_map(|(high, low)| high << 32 | low)
}

proptest! {
    #[test]
    fn conditions_compare_all_64_bits(
        conditions in proptest::collection::vec(
            (proptest::sample::select(vec![
                "SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE",
                "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ",
            ]), close(), close()), 1..=6),
        arguments in proptest::array::uniform6(close()),
    ) {
        let args: Vec<_> = conditions.iter().enumerate().map(|(index, (op, value, two))| {
            json!({"index": index, "op": op, "value": value, "valueTwo": two})
        }).collect();
        let one = profile(json!({
            "defaultAction": "SCMP_ACT_ERRNO",
            "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ALLOW", "args": args}],
        }));
        let mut each = conditions.iter().zip(arguments);
        let all = each.all(|((op, value, two), argument)| holds(op, argument, *value, *two));
        let got = judge(&filter(&one).unwrap().program, X86_64, number("mkdir"), arguments);
        prop_assert_eq!(got, if all { ALLOW } else { FORBIDDEN });
    }
}
