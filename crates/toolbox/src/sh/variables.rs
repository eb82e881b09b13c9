//! Variables of the shell: values, which are exported, which may not be changed.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;

use super::lexer::is_name;

#[derive(Debug, Clone, Default)]
pub(super) struct Variable {
    /// None for a variable that was declared without a value: `export x`, `local x`.
    pub(super) value: Option<Vec<u8>>,
    pub(super) is_exported: bool,
    pub(super) is_readonly: bool,
}

/// A variable that a new value hides for a while, and what it was, if it was set.
pub(super) type Hidden = (Vec<u8>, Option<Variable>);

#[derive(Debug, Default)]
pub(super) struct Variables {
    all: BTreeMap<Vec<u8>, Variable>,
}

impl Variables {
    pub(super) fn from_environment() -> Self {
        let mut variables = Self::default();
        for (name, value) in std::env::vars_os() {
            let name = name.into_vec();
            if !is_name(&name) {
                continue;
            }
            let variable = Variable {
                value: Some(value.into_vec()),
                is_exported: true,
                is_readonly: false,
            };
            variables.all.insert(name, variable);
        }
        let parent = crate::sys::parent_process().to_string();
        for (name, value) in [
            ("IFS", " \t\n"),
            ("OPTIND", "1"),
            ("PS1", ""),
            ("PS2", "> "),
            ("PS4", "+ "),
            ("PPID", parent.as_str()),
        ] {
            // An inherited IFS would change what scripts mean.
            let is_own = matches!(name, "IFS" | "OPTIND" | "PPID");
            let variable = variables.all.entry(name.into()).or_default();
            if variable.value.is_none() || is_own {
                variable.value = Some(value.into());
            }
        }
        variables
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.all.get(name)?.value.as_deref()
    }

    pub(super) fn variable(&self, name: &[u8]) -> Option<&Variable> {
        self.all.get(name)
    }

    /// Puts back what `variable` returned before.
    pub(super) fn restore(&mut self, name: Vec<u8>, variable: Option<Variable>) {
        match variable {
            Some(variable) => self.all.insert(name, variable),
            None => self.all.remove(&name),
        };
    }

    /// The variable, made if there is none, unless it is read-only.
    pub(super) fn change(&mut self, name: &[u8]) -> Result<&mut Variable, String> {
        let variable = self.all.entry(name.to_vec()).or_default();
        if variable.is_readonly {
            let name = String::from_utf8_lossy(name);
            return Err(format!("{name}: the variable is read-only"));
        }
        Ok(variable)
    }

    /// Changes what is known about a variable other than its value.
    pub(super) fn mark(&mut self, name: &[u8], change: impl FnOnce(&mut Variable)) {
        change(self.all.entry(name.to_vec()).or_default());
    }

    pub(super) fn unset(&mut self, name: &[u8]) -> Result<(), String> {
        self.change(name)?;
        self.all.remove(name);
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Variable)> {
        self.all
            .iter()
            .map(|(name, value)| (name.as_slice(), value))
    }

    /// `name=value` of all exported variables.
    pub(super) fn environment(&self) -> Vec<Vec<u8>> {
        let exported = self.all.iter().filter(|(_, variable)| variable.is_exported);
        exported
            .filter_map(|(name, variable)| {
                let value = variable.value.as_deref()?;
                Some([name.as_slice(), b"=", value].concat())
            })
            .collect()
    }
}
