//! Paths of values in an object.

use std::fmt;

/// A path such as `spec.containers[0].resources.limits[cpu]`.
///
/// It is a chain of borrowed steps, so that walking an object costs nothing; the text is built only
/// for problems. Matches v1.36 apimachinery/pkg/util/validation/field, `Path`.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself, whose text is empty.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    /// A field of the object.
    pub const fn new(name: &'a str) -> Path<'a> {
        Path {
            parent: None,
            step: Step::Child(name),
        }
    }

    /// A nested field.
    #[must_use]
    pub fn child(&'a self, name: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Child(name),
        }
    }

    /// An item of a list.
    #[must_use]
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// An entry of a map.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self.step, Step::Root) && self.parent.is_none()
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Child(name) => {
                let is_first = self.parent.is_none_or(Path::is_empty);
                write!(f, "{}{name}", if is_first { "" } else { "." })
            }
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_formatted_as_upstream() {
        let spec = Path::new("spec");
        let containers = spec.child("containers");
        let limits = containers.index(0);
        let limits = limits.child("limits");
        assert_eq!(
            limits.key("cpu").to_string(),
            "spec.containers[0].limits[cpu]"
        );
        assert_eq!(Path::ROOT.to_string(), "");
        assert_eq!(Path::ROOT.child("spec").to_string(), "spec");
    }
}
