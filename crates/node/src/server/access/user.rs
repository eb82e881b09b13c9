//! Users.

use std::collections::BTreeMap;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// Somebody, as authorization knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// What tells two users of one name apart, if anything does.
    pub uid: String,
    /// Their groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody who did not say who they are.
    pub fn anonymous() -> User {
        User {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..User::default()
        }
    }

    /// With the group of everybody who said so. Who carries one of the two groups keeps it.
    pub(super) fn authenticated(mut self) -> User {
        let told = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if self.name != ANONYMOUS && !self.groups.iter().any(told) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
