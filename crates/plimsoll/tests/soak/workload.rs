//! The pods of a soak, and the purpose of each.

use std::fmt;

use fastrand::Rng;
use plimsoll_core::object::pod::QosClass;
use serde_json::{Value, json};

use crate::cluster::IMAGE;
use crate::manifest::{WAIT, container, pod};

/// A second image, so that there is more than one.
pub(crate) const OTHER_IMAGE: &str = "plimsoll.test/other:1";

/// A configuration that pods mount.
pub(crate) const CONFIG_MAP: &str = "words";

/// The label that says what a pod is there for.
const ROLE_LABEL: &str = "role";

/// What a pod is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Waits, and exits on SIGTERM.
    Calm,
    /// Waits, and does not listen.
    Stubborn,
    /// Holds memory within its request.
    Keeper,
    /// Ends well.
    Finisher,
    /// Ends badly, and is not started again.
    Failure,
    /// Ends badly again and again.
    Crasher,
    /// Takes more than its own limit.
    Glutton,
    /// Takes all memory there is.
    Hog,
}

impl Role {
    pub(crate) const ALL: [Role; 8] = [
        Role::Calm,
        Role::Stubborn,
        Role::Keeper,
        Role::Finisher,
        Role::Failure,
        Role::Crasher,
        Role::Glutton,
        Role::Hog,
    ];

    /// Any role but a hog, with those that stay twice as often.
    pub(crate) fn any(random: &mut Rng) -> Role {
        match random.u8(0..10) {
            0..=1 => Role::Calm,
            2..=3 => Role::Stubborn,
            4..=5 => Role::Keeper,
            6 => Role::Finisher,
            7 => Role::Failure,
            8 => Role::Crasher,
            _ => Role::Glutton,
        }
    }

    /// Whether it runs from its start to its deletion, and is never started again.
    pub(crate) fn stays(self) -> bool {
        matches!(self, Role::Calm | Role::Stubborn | Role::Keeper)
    }

    /// By the label of a pod.
    pub(crate) fn of(pod: &Value) -> Option<Role> {
        let label = pod["metadata"]["labels"][ROLE_LABEL].as_str()?;
        Role::ALL.into_iter().find(|role| role.to_string() == label)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Calm => "calm",
            Role::Stubborn => "stubborn",
            Role::Keeper => "keeper",
            Role::Finisher => "finisher",
            Role::Failure => "failure",
            Role::Crasher => "crasher",
            Role::Glutton => "glutton",
            Role::Hog => "hog",
        })
    }
}

/// The manifest of a pod, with everything that does not matter to its role at random.
pub(crate) fn manifest(name: &str, role: Role, random: &mut Rng) -> Value {
    let script = script(role, random);
    shaped(name, role, &script, random)
}

/// The pods on the node when a hog takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// Possibly none, not even the agent.
    None,
    /// The agent, and no other hog.
    Agent,
    /// The agent and other hogs.
    Hogs,
}

/// The manifest of a hog.
pub(crate) fn hog_manifest(name: &str, company: Company, random: &mut Rng) -> Value {
    let script = hog(random, company);
    shaped(name, Role::Hog, &script, random)
}

fn script(role: Role, random: &mut Rng) -> String {
    match role {
        Role::Calm => format!("echo begun; {WAIT}"),
        Role::Stubborn => "echo begun; exec sleep 100000".to_owned(),
        Role::Keeper => format!("echo begun; head -c 20m /dev/zero > /memory/f; {WAIT}"),
        Role::Finisher => "echo begun; sleep 0.2".to_owned(),
        Role::Failure => "echo begun; exit 3".to_owned(),
        Role::Crasher => "echo begun; sleep 0.1; exit 4".to_owned(),
        Role::Glutton => "echo begun; exec dd if=/dev/zero of=/dev/null bs=64M count=1".to_owned(),
        Role::Hog => hog(random, Company::Agent),
    }
}

fn shaped(name: &str, role: Role, script: &str, random: &mut Rng) -> Value {
    let mut main = container("main", script);
    main["image"] = json!(if random.bool() { IMAGE } else { OTHER_IMAGE });
    main["resources"] = resources(role, random);
    let mut volumes = volumes(random);
    volumes.push(json!({ "name": "memory", "emptyDir": { "medium": "Memory" } }));
    let mounts = volumes.iter().map(|volume| {
        let name = volume["name"].as_str().unwrap_or_default();
        json!({ "name": name, "mountPath": format!("/{name}") })
    });
    main["volumeMounts"] = mounts.collect();
    let mut pod = pod(name, &[main]);
    pod["metadata"]["labels"] = json!({ ROLE_LABEL: role.to_string() });
    pod["spec"]["volumes"] = json!(volumes);
    let restart = match role {
        Role::Finisher | Role::Failure | Role::Glutton | Role::Hog => "Never",
        Role::Calm | Role::Stubborn | Role::Keeper | Role::Crasher => "Always",
    };
    pod["spec"]["restartPolicy"] = json!(restart);
    pod
}

/// A script that takes memory: as fast as the machine can where no limit applies, otherwise
/// so fast that an agent without optimization on a busy machine is.
fn hog(random: &mut Rng, company: Company) -> String {
    let bite = random.u8(2..=8);
    // Takes it bite by bite. Being the first process, it does not listen, and is the one that the
    // kernel kills.
    let pours = format!(
        "mkfifo /memory/p; (while true; do head -c {bite}m /dev/zero; sleep 0.02; done > /memory/p) & \
         exec tail -c 2000m < /memory/p"
    );
    // Takes it process by process: each fills its buffer and waits for a reader.
    let spreads = format!(
        "mkfifo /memory/p; exec 3<>/memory/p; while true; do \
         dd if=/dev/zero bs={bite}M count=1 >&3 2>/dev/null & sleep 0.02; done"
    );
    let kinds = match company {
        Company::None => 0..2,
        Company::Hogs => 1..5,
        Company::Agent => 1..6,
    };
    match random.u8(kinds) {
        0 => "echo begun; exec dd if=/dev/zero of=/dev/null bs=540M count=100000".to_owned(),
        1 => format!("echo begun; {pours}"),
        2 => format!("echo begun; {spreads}"),
        3 => format!("echo begun; trap 'exit 143' TERM; {spreads}"),
        // Files in memory stay when the process is gone; the kernel would kill one after the other
        // for them.
        4 => format!(
            "echo begun; i=0; while true; do dd if=/dev/zero of=/memory/$i bs={bite}M count=1; \
             i=$((i+1)); sleep 0.02; done 2>/dev/null"
        ),
        // Enough for the soft line, at once.
        _ => {
            format!("echo begun; (exec dd if=/dev/zero of=/dev/null bs=460M count=100000) & {WAIT}")
        }
    }
}

fn resources(role: Role, random: &mut Rng) -> Value {
    // With less cpu for a limit, one that the kernel kills takes a minute to pay for its last moments.
    let amounts = |memory: &str| json!({ "cpu": "250m", "memory": memory });
    let of_class = |class: QosClass, memory: &str| match class {
        QosClass::Guaranteed => json!({ "limits": amounts(memory) }),
        QosClass::Burstable => json!({ "requests": amounts(memory) }),
        QosClass::BestEffort => json!({}),
    };
    let classes = [
        QosClass::Guaranteed,
        QosClass::Burstable,
        QosClass::BestEffort,
    ];
    match role {
        // Within its request, always.
        Role::Keeper => of_class(classes[random.usize(..2)], "40Mi"),
        Role::Glutton => of_class(QosClass::Guaranteed, "16Mi"),
        // With a limit it would not be one. One without requests gets no cpu on a busy machine,
        // and is slow.
        Role::Hog if random.u8(0..3) > 0 => of_class(QosClass::Burstable, "24Mi"),
        Role::Hog => of_class(QosClass::BestEffort, "24Mi"),
        _ => of_class(classes[random.usize(..classes.len())], "16Mi"),
    }
}

fn volumes(random: &mut Rng) -> Vec<Value> {
    let all = [
        json!({ "name": "scratch", "emptyDir": {} }),
        json!({ "name": "words", "configMap": { "name": CONFIG_MAP } }),
        json!({ "name": "small", "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } }),
    ];
    all.into_iter().filter(|_| random.bool()).collect()
}
