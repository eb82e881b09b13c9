//! Which devices the processes of a container may use.
//!
//! Without this, a container that may make device nodes (`CAP_MKNOD` is in the default set) could
//! read the machine's disks.

use std::fs;
use std::io;

use super::super::spec::HostDevice;
use super::{Cgroup, devices_v2};

/// One allowed device. `None` means any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Rule {
    pub(super) kind: Kind,
    pub(super) major: Option<u32>,
    pub(super) minor: Option<u32>,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) make: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Block,
    Char,
}

/// What all containers may use, as the OCI specification has it: making any node, the memory
/// devices, terminals.
const EVERYONE: [(Kind, Option<u32>, Option<u32>, &str); 11] = [
    (Kind::Char, None, None, "m"),
    (Kind::Block, None, None, "m"),
    (Kind::Char, Some(1), Some(3), "rwm"),
    (Kind::Char, Some(1), Some(5), "rwm"),
    (Kind::Char, Some(1), Some(7), "rwm"),
    (Kind::Char, Some(1), Some(8), "rwm"),
    (Kind::Char, Some(1), Some(9), "rwm"),
    (Kind::Char, Some(5), Some(0), "rwm"),
    (Kind::Char, Some(5), Some(1), "rwm"),
    (Kind::Char, Some(5), Some(2), "rwm"),
    (Kind::Char, Some(136), None, "rwm"),
];

/// The rules of a container that is given some devices.
pub(in super::super) fn rules(given: &[HostDevice]) -> Vec<Rule> {
    let everyone = EVERYONE
        .iter()
        .map(|(kind, major, minor, permissions)| rule(*kind, *major, *minor, permissions));
    let own = given.iter().map(|device| {
        let kind = if device.is_block {
            Kind::Block
        } else {
            Kind::Char
        };
        rule(
            kind,
            Some(device.major),
            Some(device.minor),
            &device.permissions,
        )
    });
    everyone.chain(own).collect()
}

fn rule(kind: Kind, major: Option<u32>, minor: Option<u32>, permissions: &str) -> Rule {
    Rule {
        kind,
        major,
        minor,
        read: permissions.contains('r'),
        write: permissions.contains('w'),
        make: permissions.contains('m'),
    }
}

impl Rule {
    /// The rule as the files of cgroup v1 take it: `c 1:3 rwm`.
    fn line(&self) -> String {
        let number = |number: Option<u32>| number.map_or("*".to_owned(), |n| n.to_string());
        let kind = match self.kind {
            Kind::Block => 'b',
            Kind::Char => 'c',
        };
        let mut line = format!("{kind} {}:{} ", number(self.major), number(self.minor));
        for (is_allowed, letter) in [(self.read, 'r'), (self.write, 'w'), (self.make, 'm')] {
            if is_allowed {
                line.push(letter);
            }
        }
        line
    }
}

impl Cgroup {
    /// Forbids all devices but those of the rules.
    pub(in super::super) fn allow_devices(&self, rules: &[Rule]) -> io::Result<()> {
        let layout = self.all.layout();
        if self.is_v2() {
            let directories = layout.directories(&self.path);
            let directory = directories.first().ok_or(io::ErrorKind::NotFound)?;
            return devices_v2::attach(directory, rules);
        }
        let Some(directory) = layout.directory("devices", &self.path) else {
            return Ok(());
        };
        let (deny, allow) = (
            directory.join("devices.deny"),
            directory.join("devices.allow"),
        );
        fs::write(&deny, "a")?;
        for rule in rules {
            fs::write(&allow, rule.line())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_the_kernel_reads_them() {
        let lines: Vec<String> = rules(&[]).iter().map(Rule::line).collect();
        assert_eq!(lines[0], "c *:* m");
        assert_eq!(lines[2], "c 1:3 rwm");
        assert_eq!(lines[10], "c 136:* rwm");
    }
}
