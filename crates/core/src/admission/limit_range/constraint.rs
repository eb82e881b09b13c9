//! The three constraints and the messages for breaking them.

use std::fmt;

use crate::admission::draft::{Part, Place};
use crate::admission::ratio::{MAX_MILLI_VALUE, float};
use crate::object::limit_range::LimitType;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};

/// A constraint of a LimitRange item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Constraint {
    /// Least request, which must be stated, and least limit where one is stated.
    Min,
    /// Greatest limit, which must be stated, and greatest request.
    Max,
    /// Greatest request of a claim, which must be stated. Claims have no limits.
    MaxRequest,
    /// Greatest quotient of limit and request, both of which must be stated.
    MaxLimitRequestRatio,
}

/// A constraint that an object breaks. Displays with upstream's message.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The type of the limited object.
    pub limit_type: LimitType,
    /// The container; `None` where the pod or claim as a whole is limited.
    pub place: Option<Place>,
    /// The resource.
    pub resource: ResourceName,
    /// The value in the LimitRange.
    pub enforced: Quantity,
    /// How the object breaks it.
    pub breach: Breach,
}

/// How an object breaks a constraint.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// A value below the least one.
    BelowMin(Part, Quantity),
    /// There is a least value and the object states none.
    MissingForMin(Part),
    /// A value above the greatest one.
    AboveMax(Part, Quantity),
    /// There is a greatest value and the object states none.
    MissingForMax(Part),
    /// The quotient is above the greatest one.
    AboveRatio(f64),
    /// There is a greatest quotient and the object states none of the two, or zero.
    MissingForRatio(Part),
}

/// Requests and limits of the limited object: a container, the sum of a pod, a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) requests: &'a ResourceList,
    pub(super) limits: &'a ResourceList,
}

impl Constraint {
    /// The violation by the subject's amount of the resource, if any.
    pub(super) fn check(
        self,
        name: &ResourceName,
        enforced: &Quantity,
        subject: Subject<'_>,
    ) -> Option<Breach> {
        let (request, limit) = (subject.requests.get(name), subject.limits.get(name));
        match self {
            Constraint::Min => check_min(request, limit, enforced),
            Constraint::Max => check_max(request, limit, enforced),
            Constraint::MaxRequest => check_max_request(request, enforced),
            Constraint::MaxLimitRequestRatio => check_ratio(request, limit, enforced),
        }
    }
}

fn check_min(
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
    enforced: &Quantity,
) -> Option<Breach> {
    let [request_value, limit_value, least] = comparable([request, limit, Some(enforced)]);
    let Some(request) = request else {
        return Some(Breach::MissingForMin(Part::Request));
    };
    if request_value < least {
        return Some(Breach::BelowMin(Part::Request, request.clone()));
    }
    let limit = limit.filter(|_| limit_value < least)?;
    Some(Breach::BelowMin(Part::Limit, limit.clone()))
}

fn check_max(
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
    enforced: &Quantity,
) -> Option<Breach> {
    let [request_value, limit_value, greatest] = comparable([request, limit, Some(enforced)]);
    let Some(limit) = limit else {
        return Some(Breach::MissingForMax(Part::Limit));
    };
    if limit_value > greatest {
        return Some(Breach::AboveMax(Part::Limit, limit.clone()));
    }
    let request = request.filter(|_| request_value > greatest)?;
    Some(Breach::AboveMax(Part::Request, request.clone()))
}

fn check_max_request(request: Option<&Quantity>, enforced: &Quantity) -> Option<Breach> {
    let [request_value, _, greatest] = comparable([request, None, Some(enforced)]);
    let Some(request) = request else {
        return Some(Breach::MissingForMax(Part::Request));
    };
    (request_value > greatest).then(|| Breach::AboveMax(Part::Request, request.clone()))
}

fn check_ratio(
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
    enforced: &Quantity,
) -> Option<Breach> {
    let [request_value, limit_value, _] = comparable([request, limit, Some(enforced)]);
    if request_value == 0 {
        return Some(Breach::MissingForRatio(Part::Request));
    }
    if limit_value == 0 {
        return Some(Breach::MissingForRatio(Part::Limit));
    }
    let ratio = float(limit_value) / float(request_value);
    let is_beyond = if enforced.value() <= MAX_MILLI_VALUE {
        ratio * 1000.0 > float(enforced.milli_value())
    } else {
        ratio > float(enforced.value())
    };
    is_beyond.then_some(Breach::AboveRatio(ratio))
}

/// The quantities as integers of one unit: thousandths, unless one of them is too large for that.
/// An absent one is zero.
fn comparable(quantities: [Option<&Quantity>; 3]) -> [i64; 3] {
    let values = quantities.map(|q| q.map_or(0, Quantity::value));
    if values.iter().any(|value| *value > MAX_MILLI_VALUE) {
        return values;
    }
    quantities.map(|q| q.map_or(0, Quantity::milli_value))
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            resource,
            limit_type,
            enforced,
            ..
        } = self;
        let bound = match &self.breach {
            Breach::BelowMin(..) | Breach::MissingForMin(_) => {
                format!("minimum {resource} usage per {limit_type} is {enforced}")
            }
            Breach::AboveMax(..) | Breach::MissingForMax(_) => {
                format!("maximum {resource} usage per {limit_type} is {enforced}")
            }
            Breach::AboveRatio(_) | Breach::MissingForRatio(_) => {
                format!("{resource} max limit to request ratio per {limit_type} is {enforced}")
            }
        };
        match &self.breach {
            Breach::BelowMin(part, quantity) | Breach::AboveMax(part, quantity) => {
                write!(f, "{bound}, but {part} is {quantity}")
            }
            Breach::MissingForMin(part) | Breach::MissingForMax(part) => {
                write!(f, "{bound}.  No {part} is specified")
            }
            Breach::AboveRatio(ratio) => write!(f, "{bound}, but provided ratio is {ratio:.6}"),
            Breach::MissingForRatio(part) => {
                write!(f, "{bound}, but no {part} is specified or {part} is 0")
            }
        }
    }
}
