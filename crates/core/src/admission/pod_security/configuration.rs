//! The plugin's settings: the defaults for namespaces without labels, and the exemptions.
//!
//! Matches v1.36 staging/src/k8s.io/pod-security-admission/admission/api: v1/defaults.go and
//! validation/validation.go.

use std::collections::BTreeSet;

use crate::admission::configuration::{Fields, Given};
use crate::object::syntax::{check_dns_label, check_dns_subdomain};
use crate::problem::Problem;

use super::policy::{Level, Mode, NamespacePolicy, Policy, Version};

const GROUP: &str = "pod-security.admission.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const KIND: &str = "PodSecurityConfiguration";

/// Why something is exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exemption {
    /// By the namespace.
    Namespace,
    /// By the caller.
    User,
    /// By the pod's runtime class.
    RuntimeClass,
}

impl Exemption {
    /// The value in audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Exemption::Namespace => "namespace",
            Exemption::User => "user",
            Exemption::RuntimeClass => "runtimeClass",
        }
    }
}

/// The plugin. By default everything is allowed and nothing is exempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurity {
    /// The defaults for namespaces without labels.
    pub defaults: Policy,
    /// Namespaces that are not checked.
    pub exempt_namespaces: BTreeSet<String>,
    /// Callers whose pods are not checked.
    pub exempt_users: BTreeSet<String>,
    /// Runtime classes whose pods are not checked.
    pub exempt_runtime_classes: BTreeSet<String>,
}

impl PodSecurity {
    /// Reads the configuration; all problems are reported, each with its field.
    pub fn read(given: &Given) -> Result<PodSecurity, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut read = PodSecurity::default();
        let known = ["defaults", "exemptions"];
        if let Some(mut fields) = Fields::new(&given.node, &given.path, &known, &mut problems) {
            fields.check_type(GROUP, &VERSIONS, KIND);
            let names = Mode::ALL.map(Mode::as_str);
            let versions = names.map(|name| format!("{name}-version"));
            let mut known: Vec<&str> = names.to_vec();
            known.extend(versions.iter().map(String::as_str));
            if let Some(mut fields) = fields.within("defaults", &known) {
                read.read_defaults(&mut fields);
            }
            let known = ["usernames", "namespaces", "runtimeClasses"];
            if let Some(mut fields) = fields.within("exemptions", &known) {
                read.read_exemptions(&mut fields);
            }
        }
        if problems.is_empty() {
            Ok(read)
        } else {
            Err(problems)
        }
    }

    /// Empty texts are as good as absent.
    fn read_defaults(&mut self, fields: &mut Fields<'_, '_>) {
        for mode in Mode::ALL {
            let chosen = self.defaults.of_mut(mode);
            let field = mode.as_str();
            let text = fields.text(field).filter(|text| !text.is_empty());
            match text.as_deref().map(Level::parse) {
                Some(Ok(level)) => chosen.level = level,
                Some(Err(rule)) => {
                    let text = text.as_deref().unwrap_or_default();
                    fields.refuse(field, Problem::invalid("", text, rule));
                }
                None => {}
            }
            let field = format!("{field}-version");
            let text = fields.text(&field).filter(|text| !text.is_empty());
            match text.as_deref().map(Version::parse) {
                Some(Ok(version)) => chosen.version = version,
                Some(Err(rule)) => {
                    let text = text.as_deref().unwrap_or_default();
                    fields.refuse(&field, Problem::invalid("", text, rule));
                }
                None => {}
            }
        }
    }

    fn read_exemptions(&mut self, fields: &mut Fields<'_, '_>) {
        let user = |name: &str| match name {
            "" => vec!["username must not be empty".to_owned()],
            _ => Vec::new(),
        };
        self.exempt_namespaces = distinct(fields, "namespaces", check_dns_label);
        self.exempt_runtime_classes = distinct(fields, "runtimeClasses", check_dns_subdomain);
        self.exempt_users = distinct(fields, "usernames", user);
    }

    /// The policy of a namespace with these labels.
    pub fn policy_of(
        &self,
        labels: &std::collections::BTreeMap<String, String>,
    ) -> NamespacePolicy {
        NamespacePolicy::of_labels(labels, self.defaults)
    }

    /// Whether everything that a caller creates in a namespace is exempt.
    pub fn exemption(&self, namespace: &str, user: &str) -> Option<Exemption> {
        if self.exempt_namespaces.contains(namespace) {
            Some(Exemption::Namespace)
        } else if self.exempt_users.contains(user) {
            Some(Exemption::User)
        } else {
            None
        }
    }

    /// Whether pods of a runtime class are exempt.
    pub fn is_runtime_class_exempt(&self, class: Option<&str>) -> bool {
        class.is_some_and(|class| self.exempt_runtime_classes.contains(class))
    }
}

/// The texts of a list that follow the rules, each once.
fn distinct(
    fields: &mut Fields<'_, '_>,
    field: &str,
    rules: impl Fn(&str) -> Vec<String>,
) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (path, node, text) in fields.texts(field) {
        let broken = rules(&text);
        let problem = if !broken.is_empty() {
            Problem::invalid(path, &text, broken.join(", "))
        } else if seen.contains(&text) {
            Problem::duplicate(path, &text)
        } else {
            seen.insert(text);
            continue;
        };
        fields.push(problem.at(Some(node.position)));
    }
    seen
}
