//! Errors with their causes, as one text.

use std::error::Error;

/// The message of an error and of all its causes, outermost first, joined by `: `.
///
/// For events, statuses and log fields, which have no place for a list. A cause that its error
/// already ends with, as transparent errors do, is not repeated.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let message = cause.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
    }
    text
}

/// The causes of an error, outermost first.
pub fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Failure(&'static str, Option<Box<Failure>>);

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failure {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn failure(messages: &[&'static str]) -> Failure {
        let (first, rest) = messages.split_first().unwrap();
        Failure(first, (!rest.is_empty()).then(|| Box::new(failure(rest))))
    }

    #[test]
    fn names_every_cause_once() {
        for (messages, expected) in [
            (&["open file"][..], "open file"),
            (&["open file", "not found"], "open file: not found"),
            (&["pull", "connect", "refused"], "pull: connect: refused"),
            (&["refused", "refused"], "refused"),
            (
                &["connect: refused", "refused", "by peer"],
                "connect: refused: by peer",
            ),
            (&["connect", "", "refused"], "connect: refused"),
        ] {
            assert_eq!(error_chain(&failure(messages)), expected);
        }
        assert_eq!(causes(&failure(&["a", "b", "c"])).count(), 2);
    }
}
