//! PodTemplates.

use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec};

use crate::machinery::validation::metadata::{self, Scope};
use crate::machinery::validation::names::NameRule;
use crate::machinery::validation::path::Path;
use crate::machinery::validation::problems::Problems;
use crate::machinery::validation::{Rules, pod};

pub(in super::super) fn validate_pod_template(
    template: &PodTemplate,
    rules: Rules,
    problems: &mut Problems,
) {
    let meta = &template.metadata;
    metadata::check(meta, Scope::Namespaced, NameRule::Subdomain, problems);
    check(template, rules, problems);
}

pub(in super::super) fn validate_pod_template_update(
    new: &PodTemplate,
    old: &PodTemplate,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check(new, rules, problems);
}

fn check(template: &PodTemplate, rules: Rules, problems: &mut Problems) {
    let empty = PodTemplateSpec::default();
    let spec = template.template.as_ref().unwrap_or(&empty);
    pod::check_template(spec, rules, &Path::new("template"), problems);
}
