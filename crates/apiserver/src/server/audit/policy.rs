//! Which requests are recorded, and at which level: `audit.k8s.io/v1` Policy.
//!
//! Matches v1.36 apiserver/pkg/audit/policy/checker.go and apiserver/pkg/apis/audit/validation.

use plimsoll_core::problem::Problem;
use serde::Deserialize;

use crate::auth::attributes::{Attributes, Resource, Target};
use crate::auth::identity::User;

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    None,
    /// Metadata: user, verb, object and outcome.
    Metadata,
    /// Also the body of the request.
    Request,
    /// Also the body of the response.
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [Level; 4] = [
        Level::None,
        Level::Metadata,
        Level::Request,
        Level::RequestResponse,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// The stage of a request at which an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The caller is authenticated; nothing has been decided yet.
    RequestReceived,
    /// The response of a watch or a stream begins.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
}

/// The stages that policies may name; there is no event for panics, which do not reach a request.
const STAGES: [&str; 4] = [
    "RequestReceived",
    "ResponseStarted",
    "ResponseComplete",
    "Panic",
];

impl Stage {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Stage::RequestReceived => STAGES[0],
            Stage::ResponseStarted => STAGES[1],
            Stage::ResponseComplete => STAGES[2],
        }
    }
}

/// A validated policy.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<(Level, Rule)>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

/// The decision of a policy for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Verdict {
    pub level: Level,
    pub omits_managed_fields: bool,
    omit_stages: Vec<String>,
}

impl Verdict {
    pub(super) fn records(&self, stage: Stage) -> bool {
        let is_omitted = self
            .omit_stages
            .iter()
            .any(|omitted| omitted == stage.as_str());
        self.level > Level::None && !is_omitted
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<String>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Rule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Policy {
    /// Every request at the end, without its body. `notes_received` adds an event at the beginning.
    pub fn metadata(notes_received: bool) -> Policy {
        let omitted = STAGES[..2].iter().skip(usize::from(notes_received));
        Policy {
            rules: vec![(Level::Metadata, Rule::default())],
            omit_stages: omitted.map(|stage| (*stage).to_owned()).collect(),
            omit_managed_fields: false,
        }
    }

    /// Parses a policy in YAML or JSON; returns all of its errors otherwise.
    pub fn from_yaml(text: &str) -> Result<Policy, Vec<Problem>> {
        let document: Document = serde_saphyr::from_str(text)
            .map_err(|error| vec![Problem::refused("", error.to_string())])?;
        let mut problems = Vec::new();
        if document.api_version != "audit.k8s.io/v1" {
            let supported = ["audit.k8s.io/v1"];
            problems.push(Problem::not_supported(
                "apiVersion",
                &document.api_version,
                &supported,
            ));
        }
        if document.kind != "Policy" {
            problems.push(Problem::not_supported("kind", &document.kind, &["Policy"]));
        }
        check_stages("omitStages", &document.omit_stages, &mut problems);
        if document.rules.is_empty() {
            let detail = "a policy without rules notes nothing down";
            problems.push(Problem::required("rules", detail));
        }
        let mut rules = Vec::new();
        for (index, rule) in document.rules.into_iter().enumerate() {
            let path = format!("rules[{index}]");
            let level = check_rule(&path, &rule, &mut problems);
            rules.extend(level.map(|level| (level, rule)));
        }
        match problems.is_empty() {
            false => Err(problems),
            true => Ok(Policy {
                rules,
                omit_stages: document.omit_stages,
                omit_managed_fields: document.omit_managed_fields,
            }),
        }
    }

    /// The decision for a request: the first rule that matches. `user` is the authenticated user,
    /// not the impersonated one.
    pub(super) fn verdict(&self, user: Option<&User>, attributes: &Attributes<'_>) -> Verdict {
        let mut rules = self.rules.iter();
        let found = rules.find(|(_, rule)| rule.matches(user, attributes));
        let mut omit_stages = self.omit_stages.clone();
        let Some((level, rule)) = found else {
            return Verdict {
                level: Level::None,
                omits_managed_fields: self.omit_managed_fields,
                omit_stages,
            };
        };
        omit_stages.extend(rule.omit_stages.iter().cloned());
        Verdict {
            level: *level,
            omits_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
            omit_stages,
        }
    }
}

fn check_stages(path: &str, stages: &[String], problems: &mut Vec<Problem>) {
    for (index, stage) in stages.iter().enumerate() {
        if !STAGES.contains(&stage.as_str()) {
            let path = format!("{path}[{index}]");
            problems.push(Problem::not_supported(path, stage, &STAGES));
        }
    }
}

fn check_rule(path: &str, rule: &Rule, problems: &mut Vec<Problem>) -> Option<Level> {
    let level = Level::ALL.into_iter().find(|l| l.as_str() == rule.level);
    match rule.level.as_str() {
        "" => problems.push(Problem::required(format!("{path}.level"), "")),
        other if level.is_none() => {
            let supported = Level::ALL.map(Level::as_str);
            let path = format!("{path}.level");
            problems.push(Problem::not_supported(path, other, &supported));
        }
        _ => {}
    }
    check_stages(&format!("{path}.omitStages"), &rule.omit_stages, problems);
    for (index, url) in rule.non_resource_urls.iter().enumerate() {
        let path = format!("{path}.nonResourceURLs[{index}]");
        let detail = match url.as_str() {
            "*" => continue,
            url if !url.starts_with('/') => {
                "non-resource URL rules must begin with a '/' character"
            }
            url if url[..url.len() - 1].contains('*') => {
                "non-resource URL wildcards '*' must be the final character of the rule"
            }
            _ => continue,
        };
        problems.push(Problem::invalid(path, url, detail));
    }
    for (index, resources) in rule.resources.iter().enumerate() {
        let path = format!("{path}.resources[{index}]");
        if resources.group.contains('/') {
            let detail = "group names must be without a version";
            problems.push(Problem::invalid(
                format!("{path}.group"),
                &resources.group,
                detail,
            ));
        }
        if !resources.resource_names.is_empty() && resources.resources.is_empty() {
            let detail = "using resourceNames requires at least one resource";
            problems.push(Problem::forbidden(format!("{path}.resourceNames"), detail));
        }
    }
    let is_about_objects = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if is_about_objects && !rule.non_resource_urls.is_empty() {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        problems.push(Problem::forbidden(
            format!("{path}.nonResourceURLs"),
            detail,
        ));
    }
    level
}

/// An empty list matches everything.
fn allows(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|allowed| allowed == value)
}

impl Rule {
    fn matches(&self, user: Option<&User>, attributes: &Attributes<'_>) -> bool {
        let is_of_user = match user {
            None => self.users.is_empty() && self.user_groups.is_empty(),
            Some(user) => {
                let mut groups = self.user_groups.iter();
                let is_in = self.user_groups.is_empty() || groups.any(|group| user.is_in(group));
                allows(&self.users, &user.name) && is_in
            }
        };
        if !is_of_user || !allows(&self.verbs, attributes.verb) {
            return false;
        }
        let is_about_objects = !self.resources.is_empty() || !self.namespaces.is_empty();
        match attributes.target {
            Target::Resource(resource) if is_about_objects => self.matches_resource(&resource),
            Target::Path(path) if !is_about_objects && !self.non_resource_urls.is_empty() => self
                .non_resource_urls
                .iter()
                .any(|url| matches_path(url, path)),
            _ => !is_about_objects && self.non_resource_urls.is_empty(),
        }
    }

    fn matches_resource(&self, resource: &Resource<'_>) -> bool {
        let mut resources = self.resources.iter();
        allows(&self.namespaces, resource.namespace)
            && (self.resources.is_empty() || resources.any(|of| of.matches(resource)))
    }
}

impl GroupResources {
    fn matches(&self, resource: &Resource<'_>) -> bool {
        if self.group != "*" && self.group != resource.group {
            return false;
        }
        let is_meant = |rule: &String| {
            let of_any = rule
                .strip_prefix("*/")
                .filter(|_| !resource.subresource.is_empty());
            rule == "*"
                || *rule == resource.with_subresource()
                || of_any == Some(resource.subresource)
                || rule.strip_suffix("/*") == Some(resource.resource)
        };
        self.resources.is_empty()
            || allows(&self.resource_names, resource.name) && self.resources.iter().any(is_meant)
    }
}

fn matches_path(rule: &str, path: &str) -> bool {
    rule == path
        || rule
            .strip_suffix('*')
            .is_some_and(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: ['system:kube-scheduler'], verbs: [watch]}
- {level: None, nonResourceURLs: ['/healthz*', /version]}
- level: Metadata
  resources: [{group: '', resources: [secrets, 'serviceaccounts/token', '*/status']}]
- level: RequestResponse
  omitManagedFields: false
  omitStages: [ResponseStarted]
  resources: [{group: '', resources: ['pods/*'], resourceNames: [web]}]
- {level: Request, namespaces: [default], userGroups: [dev]}
- {level: Metadata, verbs: [delete]}
";

    fn level(user: &User, attributes: &Attributes<'_>) -> Level {
        Policy::from_yaml(POLICY)
            .unwrap()
            .verdict(Some(user), attributes)
            .level
    }

    fn resource<'a>(resource: &'a str, subresource: &'a str, name: &'a str) -> Resource<'a> {
        Resource {
            resource,
            subresource,
            name,
            namespace: "default",
            ..Resource::default()
        }
    }

    #[test]
    fn first_matching_rule_decides() {
        let (bob, dev) = (User::new("bob", &["ops"]), User::new("eve", &["dev"]));
        let scheduler = User::new("system:kube-scheduler", &[]);
        for (user, verb, resource, expected) in [
            (&bob, "get", resource("secrets", "", "s"), Level::Metadata),
            (
                &bob,
                "get",
                resource("pods", "status", "p"),
                Level::Metadata,
            ),
            (
                &bob,
                "get",
                resource("serviceaccounts", "token", "a"),
                Level::Metadata,
            ),
            (
                &bob,
                "create",
                resource("pods", "exec", "web"),
                Level::RequestResponse,
            ),
            (
                &bob,
                "create",
                resource("pods", "exec", "other"),
                Level::None,
            ),
            (
                &dev,
                "create",
                resource("pods", "exec", "other"),
                Level::Request,
            ),
            (&dev, "get", resource("pods", "", "p"), Level::Request),
            (&bob, "delete", resource("pods", "", "p"), Level::Metadata),
            (&bob, "get", resource("pods", "", "p"), Level::None),
            (
                &scheduler,
                "watch",
                resource("secrets", "", ""),
                Level::None,
            ),
            (
                &scheduler,
                "list",
                resource("secrets", "", ""),
                Level::Metadata,
            ),
            // As upstream, a rule for all subresources of an object also matches the object.
            (
                &bob,
                "get",
                resource("pods", "", "web"),
                Level::RequestResponse,
            ),
        ] {
            let attributes = Attributes::resource(verb, resource);
            assert_eq!(level(user, &attributes), expected, "{verb} {resource:?}");
        }
        assert_eq!(
            level(&bob, &Attributes::path("get", "/healthz/etcd")),
            Level::None
        );
        assert_eq!(
            level(&bob, &Attributes::path("delete", "/metrics")),
            Level::Metadata
        );
        // An unauthenticated caller matches no rule about users.
        let policy = Policy::from_yaml(POLICY).unwrap();
        let get = resource("pods", "", "p");
        let verdict = policy.verdict(None, &Attributes::resource("get", get));
        assert_eq!(verdict.level, Level::None);
    }

    #[test]
    fn stages_and_managed_fields_are_left_out_by_policy_or_rule() {
        let policy = Policy::from_yaml(POLICY).unwrap();
        let bob = User::new("bob", &[]);
        let verdict = |resource| {
            let attributes = Attributes::resource("create", resource);
            policy.verdict(Some(&bob), &attributes)
        };
        let exec = verdict(resource("pods", "exec", "web"));
        assert!(!exec.omits_managed_fields && !exec.records(Stage::ResponseStarted));
        let secret = verdict(resource("secrets", "", "s"));
        assert!(secret.omits_managed_fields && secret.records(Stage::ResponseStarted));
        assert!(!secret.records(Stage::RequestReceived) && secret.records(Stage::ResponseComplete));
        for notes_received in [false, true] {
            let all = Policy::metadata(notes_received);
            let all = all.verdict(None, &Attributes::path("get", "/"));
            assert_eq!(all.records(Stage::RequestReceived), notes_received);
            assert!(!all.records(Stage::ResponseStarted) && all.records(Stage::ResponseComplete));
        }
    }

    #[test]
    fn all_policy_errors_are_reported() {
        let text = "
apiVersion: audit.k8s.io/v2
kind: Policy
rules:
- {}
- {level: Everything, omitStages: [Later]}
- {level: None, nonResourceURLs: [healthz, '/a*b'], namespaces: [x]}
- {level: None, resources: [{group: apps/v1, resourceNames: [x]}]}
";
        let problems = Policy::from_yaml(text).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "apiVersion: Unsupported value: \"audit.k8s.io/v2\": supported values: \
                 \"audit.k8s.io/v1\"",
                "rules[0].level: Required value",
                "rules[1].level: Unsupported value: \"Everything\": supported values: \"None\", \
                 \"Metadata\", \"Request\", \"RequestResponse\"",
                "rules[1].omitStages[0]: Unsupported value: \"Later\": supported values: \
                 \"RequestReceived\", \"ResponseStarted\", \"ResponseComplete\", \"Panic\"",
                "rules[2].nonResourceURLs[0]: Invalid value: \"healthz\": non-resource URL rules \
                 must begin with a '/' character",
                "rules[2].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL wildcards \
                 '*' must be the final character of the rule",
                "rules[2].nonResourceURLs: Forbidden: rules cannot apply to both regular resources \
                 and non-resource URLs",
                "rules[3].resources[0].group: Invalid value: \"apps/v1\": group names must be \
                 without a version",
                "rules[3].resources[0].resourceNames: Forbidden: using resourceNames requires at \
                 least one resource",
            ]
        );
        let empty = Policy::from_yaml("{apiVersion: audit.k8s.io/v1, kind: Policy}").unwrap_err();
        assert_eq!(empty.len(), 1);
        let unknown = "{apiVersion: audit.k8s.io/v1, kind: Policy, rule: []}";
        assert!(Policy::from_yaml(unknown).is_err());
    }
}
