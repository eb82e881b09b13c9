//! Options of lists and watches.
//!
//! Matches v1.36 apimachinery/pkg/apis/meta/internalversion (defaults.go, validation) and
//! `listOpts` in apiserver/pkg/endpoints/handlers/get.go.

use plimsoll_core::object::selector::{
    FieldOperator, FieldRequirement, FieldSelector, LabelSelector,
};
use plimsoll_core::problem::Problem;

use super::{Malformed, OptionsError, Query};
use crate::kinds::Kind;

/// How a resource version is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state at that version.
    Exact,
    /// That state or a later one.
    NotOlderThan,
}

/// List and watch options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// The label selector.
    pub label_selector: LabelSelector,
    /// The field selector, in the labels of the kind's own fields.
    pub field_selector: FieldSelector,
    /// Whether to watch instead of list.
    pub is_watch: bool,
    /// Whether the watch sends bookmarks.
    pub allows_bookmarks: bool,
    /// The resource version as the client wrote it; the store validates it.
    pub resource_version: String,
    /// How `resource_version` is meant.
    pub version_match: Option<VersionMatch>,
    /// The timeout of a watch, in seconds.
    pub timeout_secs: Option<i64>,
    /// The size of a page; 0 and less: everything.
    pub limit: i64,
    /// The continue token, empty for the first page.
    pub continue_token: String,
    /// Whether a watch starts with the existing objects.
    pub sends_initial_events: Option<bool>,
}

impl ListOptions {
    /// Parses and validates the options for a kind. `name` is the one in the path when a single
    /// object is watched.
    pub fn from_query(
        query: &Query,
        kind: &Kind,
        name: Option<&str>,
    ) -> Result<ListOptions, OptionsError> {
        let is_watch = query.flag("watch").unwrap_or_default();
        ListOptions::read(query, kind, name, is_watch)
    }

    /// The same for a watch, which deprecated paths request without the parameter.
    pub fn of_watch(
        query: &Query,
        kind: &Kind,
        name: Option<&str>,
    ) -> Result<ListOptions, OptionsError> {
        ListOptions::read(query, kind, name, true)
    }

    fn read(
        query: &Query,
        kind: &Kind,
        name: Option<&str>,
        is_watch: bool,
    ) -> Result<ListOptions, OptionsError> {
        let label_selector = query.text("labelSelector").parse();
        let field_selector: Result<FieldSelector, _> = query.text("fieldSelector").parse();
        let mut options = ListOptions {
            label_selector: label_selector.map_err(Malformed::from)?,
            field_selector: field_selector.map_err(Malformed::from)?,
            is_watch,
            allows_bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
            resource_version: query.text("resourceVersion"),
            version_match: None,
            timeout_secs: query.integer("timeoutSeconds")?,
            limit: query.integer("limit")?.unwrap_or_default(),
            continue_token: query.text("continue"),
            sends_initial_events: query.flag("sendInitialEvents"),
        };
        options.set_version_match(query.first("resourceVersionMatch").unwrap_or_default())?;
        let field_selector = kind.selectable.convert(&options.field_selector);
        options.field_selector = field_selector.map_err(Malformed::from)?;
        if let Some(name) = name {
            options.select_name(name)?;
        }
        Ok(options)
    }

    fn set_version_match(&mut self, text: &str) -> Result<(), OptionsError> {
        let is_from_the_start = matches!(self.resource_version.as_str(), "" | "0");
        let is_plain = text.is_empty() && self.sends_initial_events.is_none();
        if self.is_watch && is_plain && is_from_the_start {
            self.sends_initial_events = Some(true);
            self.version_match = Some(VersionMatch::NotOlderThan);
            return Ok(());
        }
        self.version_match = match text {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        let problems = if self.is_watch {
            self.watch_problems(text)
        } else {
            self.list_problems(text)
        };
        if problems.is_empty() {
            return Ok(());
        }
        let kind = "ListOptions";
        Err(OptionsError::Invalid { kind, problems })
    }

    fn list_problems(&self, text: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut forbid = |is_wrong: bool, detail: &str| {
            if is_wrong && !text.is_empty() {
                problems.push(Problem::forbidden(MATCH, detail));
            }
        };
        forbid(
            self.resource_version.is_empty(),
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
        forbid(!self.continue_token.is_empty(), WITH_CONTINUE);
        if !text.is_empty() && self.version_match.is_none() {
            problems.push(Problem::not_supported(
                MATCH,
                text,
                &["Exact", "NotOlderThan", ""],
            ));
        }
        if self.version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            problems.push(Problem::forbidden(MATCH, detail));
        }
        if self.sends_initial_events.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            problems.push(Problem::forbidden("sendInitialEvents", detail));
        }
        problems
    }

    fn watch_problems(&self, text: &str) -> Vec<Problem> {
        let is_not_older_than = self.version_match == Some(VersionMatch::NotOlderThan);
        let mut problems = Vec::new();
        if self.sends_initial_events.is_some() && !is_not_older_than {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            problems.push(Problem::forbidden(MATCH, detail));
        }
        if text.is_empty() {
            return problems;
        }
        if self.sends_initial_events.is_none() {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            problems.push(Problem::forbidden(MATCH, detail));
        }
        if !is_not_older_than {
            problems.push(Problem::not_supported(MATCH, text, &["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            problems.push(Problem::forbidden(MATCH, WITH_CONTINUE));
        }
        problems
    }

    /// The name in the path is one more requirement on the fields.
    fn select_name(&mut self, name: &str) -> Result<(), OptionsError> {
        if self.field_selector.is_empty() {
            self.field_selector = FieldSelector::new(vec![FieldRequirement {
                field: "metadata.name".to_owned(),
                operator: FieldOperator::Equals,
                value: name.to_owned(),
            }]);
            return Ok(());
        }
        if self.selected_name() == Some(name) {
            Ok(())
        } else {
            Err(Malformed::OtherName.into())
        }
    }

    /// The only name that can be selected, if the field selector leaves just one.
    pub fn selected_name(&self) -> Option<&str> {
        let requirements = self.field_selector.requirements().iter();
        let mut named = requirements.filter(|requirement| {
            requirement.field == "metadata.name" && requirement.operator == FieldOperator::Equals
        });
        named.next().map(|requirement| requirement.value.as_str())
    }

    /// Whether every object is selected, so that the remaining ones after a page can be counted.
    pub fn selects_everything(&self) -> bool {
        self.label_selector.is_empty() && self.field_selector.is_empty()
    }
}

const MATCH: &str = "resourceVersionMatch";
const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";
