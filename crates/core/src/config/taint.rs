//! Taints a node registers itself with.

use std::fmt;

use super::TaintEffect;

/// A mark that keeps pods away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// What the mark is called: `dedicated`.
    pub key: String,
    /// What it is for; may be empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// Prints `key=value:effect`, or `key:effect` where the value is empty, as kubectl does.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.as_str() {
            "" => write!(f, "{}:{}", self.key, self.effect),
            value => write!(f, "{}={value}:{}", self.key, self.effect),
        }
    }
}
