//! Labels of samples.

/// Labels as they stand between the braces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels(String);

impl Labels {
    pub(super) fn new<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
        let mut labels = Labels::default();
        for (name, value) in pairs {
            labels.push(name, value);
        }
        labels
    }

    /// These labels and one more.
    pub(super) fn with(&self, name: &str, value: &str) -> Labels {
        let mut labels = self.clone();
        labels.push(name, value);
        labels
    }

    fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(name);
        self.0.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_so_that_they_read_back() {
        let labels = Labels::new([("a", "x"), ("b", "q\"\\\n")]).with("c", "");
        assert_eq!(labels.as_str(), "a=\"x\",b=\"q\\\"\\\\\\n\",c=\"\"");
    }
}
