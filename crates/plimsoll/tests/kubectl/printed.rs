//! The output of a command, and its comparison.

/// What a command left behind, with everything that differs from run to run named instead.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    /// What was asked, for messages.
    pub(crate) command: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Printed {
    /// The command succeeded and printed this, and no warnings.
    #[track_caller]
    pub(crate) fn says(&self, stdout: &str) {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:#?}");
        same(&self.stdout, stdout, self);
    }

    /// The command succeeded and printed this somewhere.
    #[track_caller]
    pub(crate) fn mentions(&self, parts: &[&str]) -> &Printed {
        assert_eq!(self.code, 0, "{self:#?}");
        for part in parts {
            let all = format!("{}{}", self.stdout, self.stderr);
            assert!(all.contains(part), "{part:?} is missing in {self:#?}");
        }
        self
    }

    /// The command succeeded and said this beside the result.
    #[track_caller]
    pub(crate) fn remarks(&self, stderr: &str) -> &Printed {
        assert_eq!(self.code, 0, "{self:#?}");
        same(&self.stderr, stderr, self);
        self
    }

    /// The command failed with this.
    #[track_caller]
    pub(crate) fn fails(&self, stderr: &str) {
        assert_eq!(self.code, 1, "{self:#?}");
        same(&self.stderr, stderr, self);
    }

    /// The command failed and said this somewhere.
    #[track_caller]
    pub(crate) fn fails_with(&self, part: &str) {
        assert_eq!(self.code, 1, "{self:#?}");
        assert!(
            self.stderr.contains(part),
            "{part:?} is missing in {self:#?}"
        );
    }
}

#[track_caller]
fn same(found: &str, expected: &str, whole: &Printed) {
    assert_eq!(found.trim_end(), expected.trim_end(), "{}", whole.command);
}

/// Names what differs from run to run: `NS`, `AGE`, `TIME`, `UID`. Columns are two spaces apart.
pub(crate) fn normalised(text: &str, namespace: &str) -> String {
    let text = text.replace(namespace, "NS");
    let lines = text.lines().map(|line| {
        // kubectl 1.34 began to say where.
        let line = line.strip_suffix(" from NS namespace").unwrap_or(line);
        let indent = line.len() - line.trim_start().len();
        let cells = line.trim().split("  ").filter(|cell| !cell.is_empty());
        let cells: Vec<String> = cells.map(|cell| masked(cell.trim())).collect();
        format!("{}{}", &line[..indent], cells.join("  "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A cell without values that cannot be known beforehand.
fn masked(cell: &str) -> String {
    let words = cell.split(' ').map(|word| {
        let bare = word.trim_matches(|c| matches!(c, '"' | ',' | '\'' | ';'));
        let mask = if is_age(bare) {
            "AGE"
        } else if is_time(bare) {
            "TIME"
        } else if is_uid(bare) {
            "UID"
        } else {
            return word.to_owned();
        };
        word.replace(bare, mask)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `5s`, `2m10s`; `100m` is a tenth of a core.
fn is_age(word: &str) -> bool {
    let units = word.trim_matches(|c: char| c.is_ascii_digit());
    let starts = word.starts_with(|c: char| c.is_ascii_digit());
    let shape: String = units.chars().filter(|c| !c.is_ascii_digit()).collect();
    starts && matches!(shape.as_str(), "s" | "ms")
}

/// `2026-01-31T10:00:00Z`.
fn is_time(word: &str) -> bool {
    word.len() == 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T'
}

fn is_uid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

#[test]
fn unstable_output_is_masked() {
    let text = "web   0/1     2m10s\n  id: 6f1d2c3b-0000-4000-8000-0123456789ab  at x-1\n";
    assert_eq!(normalised(text, "x-1"), "web  0/1  AGE\n  id: UID  at NS");
    assert_eq!(normalised("110", "x"), "110");
    assert_eq!(
        normalised("pod \"a\" deleted from x namespace", "x"),
        "pod \"a\" deleted"
    );
}
