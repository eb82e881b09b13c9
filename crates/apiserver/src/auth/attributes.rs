//! What a request is for, and the text of the 403.

use std::fmt;

use plimsoll_core::object::selector::FieldRequirement;
use plimsoll_core::problem::quoted;

use super::identity::User;

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create`, …; for paths the lower-case HTTP method.
    pub verb: &'a str,
    /// The target.
    pub target: Target<'a>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// An object or a collection.
    Resource(Resource<'a>),
    /// A path outside of the API groups, such as `/healthz`.
    Path(&'a str),
}

/// An object or a collection. Absent parts are empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The part after the name: `status`, `token`.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name. For `list` and `watch` it is the value of `metadata.name=` in the field selector.
    pub name: &'a str,
    /// The selectors of a `list`, `watch` or `deletecollection`.
    pub field_selector: &'a [FieldRequirement],
}

impl<'a> Attributes<'a> {
    /// A request about objects.
    pub fn resource(verb: &'a str, resource: Resource<'a>) -> Attributes<'a> {
        let target = Target::Resource(resource);
        Attributes { verb, target }
    }

    /// A request about a path.
    pub fn path(verb: &'a str, path: &'a str) -> Attributes<'a> {
        let target = Target::Path(path);
        Attributes { verb, target }
    }

    /// The namespace; empty for paths and the cluster scope.
    pub fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource(resource) => resource.namespace,
            Target::Path(_) => "",
        }
    }

    /// The 403 for a user that is not allowed to do this. `reason` may be empty.
    ///
    /// Matches v1.36 apiserver/pkg/endpoints/handlers/responsewriters/errors.go.
    pub fn forbidden(&self, user: &User, reason: &str) -> Forbidden {
        let (group, resource, name) = match self.target {
            Target::Resource(r) => (r.group, r.resource, r.name),
            Target::Path(_) => ("", "", ""),
        };
        let message = without_markup(&self.denial_message(user));
        Forbidden {
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            reason: match reason {
                "" => message,
                reason => format!("{message}: {reason}"),
            },
        }
    }

    fn denial_message(&self, user: &User) -> String {
        let (user, verb) = (quoted(&user.name), self.verb);
        let resource = match self.target {
            Target::Path(path) => {
                return format!("User {user} cannot {verb} path {}", quoted(path));
            }
            Target::Resource(resource) => resource,
        };
        let group = quoted(resource.group);
        let scope = match resource.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", quoted(namespace)),
        };
        let resource = quoted(&resource.with_subresource());
        format!("User {user} cannot {verb} resource {resource} in API group {group} {scope}")
    }
}

impl Resource<'_> {
    /// `pods`, or `pods/status`.
    pub fn with_subresource(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

/// Browsers that sniff content types must not find HTML in an error.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A 403. The fields besides the reason are the `details` of its `Status`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Forbidden {
    /// The API group.
    pub group: String,
    /// The plural name; empty when the request was about a path.
    pub resource: String,
    /// The object's name, if there is one.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// The message of the `Status`. Matches v1.36 apimachinery/pkg/api/errors, `NewForbidden`.
impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.resource.is_empty() {
            f.write_str(&self.resource)?;
            if !self.group.is_empty() {
                write!(f, ".{}", self.group)?;
            }
            if !self.name.is_empty() {
                write!(f, " {}", quoted(&self.name))?;
            }
            f.write_str(" is ")?;
        }
        write!(f, "forbidden: {}", self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(attributes: &Attributes<'_>, reason: &str) -> String {
        let alice = User::new("alice", &[]);
        attributes.forbidden(&alice, reason).to_string()
    }

    #[test]
    fn forbidden_messages_match_upstream() {
        let pods = Resource {
            resource: "pods",
            namespace: "default",
            ..Resource::default()
        };
        assert_eq!(
            text(&Attributes::resource("list", pods), ""),
            "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in \
             the namespace \"default\""
        );
        let scale = Resource {
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            name: "web",
            ..Resource::default()
        };
        assert_eq!(
            text(&Attributes::resource("patch", scale), "because"),
            "deployments.apps \"web\" is forbidden: User \"alice\" cannot patch resource \
             \"deployments/scale\" in API group \"apps\" at the cluster scope: because"
        );
        assert_eq!(
            text(&Attributes::path("get", "/<b>&"), ""),
            "forbidden: User \"alice\" cannot get path \"/&lt;b&gt;&amp;\""
        );
    }
}
