//! Sets of completion indexes, as `1,3-5,7`.

use std::fmt;

/// A set of indexes as ascending intervals that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i64, i64)>);

impl Indexes {
    /// Reads the set, without what is not below `end`. Parts that cannot be read are skipped.
    pub(super) fn parse(text: &str, end: i64) -> Indexes {
        let mut indexes = Indexes::default();
        for part in text.split(',') {
            let mut limits = part.split('-');
            let Some(Ok(first)) = limits.next().map(str::parse::<i64>) else {
                continue;
            };
            if first >= end {
                break;
            }
            let last = match limits.next().map(str::parse::<i64>) {
                None => first,
                Some(Ok(last)) => last.min(end - 1),
                Some(Err(_)) => continue,
            };
            match indexes.0.last_mut() {
                Some((_, end_of_last)) if end_of_last.checked_add(1) == Some(first) => {
                    *end_of_last = last
                }
                _ => indexes.0.push((first, last)),
            }
        }
        indexes
    }

    /// The set with further indexes in any order.
    #[must_use]
    pub(super) fn with(&self, more: impl IntoIterator<Item = i64>) -> Indexes {
        let singles = more.into_iter().map(|index| (index, index)).collect();
        self.union(&Indexes(singles))
    }

    /// The union of both sets.
    #[must_use]
    pub(super) fn union(&self, other: &Indexes) -> Indexes {
        let mut all: Vec<(i64, i64)> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Indexes(merged)
    }

    /// How many indexes there are.
    pub(super) fn count(&self) -> i64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, index: i64) -> bool {
        let place = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(place).is_some_and(|(first, _)| *first <= index)
    }

    /// How many indexes are in both sets.
    pub(super) fn overlap(&self, other: &Indexes) -> i64 {
        let parts = self.0.iter().flat_map(|(first, last)| {
            let others = other.0.iter();
            others.map(move |(from, to)| last.min(to) - first.max(from) + 1)
        });
        parts.filter(|length| *length > 0).sum()
    }

    /// The first `count` indexes below `end` that are not in the set.
    pub(super) fn first_missing(&self, count: usize, end: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let mut next = 0;
        let past_the_end = (end, end);
        for (first, last) in self.0.iter().chain([&past_the_end]) {
            let gap = next..(*first).min(end).max(next);
            found.extend(gap.take(count - found.len()));
            next = next.max(last.saturating_add(1));
        }
        found
    }
}

/// Two neighbours are printed with a comma, three or more with a dash.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            match last - first {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn index_texts_are_parsed_and_invalid_parts_skipped() {
        let cases = [
            ("", 10, ""),
            ("0", 10, "0"),
            ("1,2,3", 10, "1-3"),
            ("1-3,5", 10, "1-3,5"),
            ("1-30,40", 10, "1-9"),
            ("a,3,4-b,6", 10, "3,6"),
            ("3,12,4", 10, "3"),
            ("0,1", 1, "0"),
        ];
        for (text, end, printed) in cases {
            assert_eq!(Indexes::parse(text, end).to_string(), printed, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_set_behaves_as_a_set(
            a in prop::collection::btree_set(0_i64..40, 0..30),
            b in prop::collection::btree_set(0_i64..40, 0..30),
            count in 0_usize..20,
        ) {
            let first = Indexes::default().with(a.iter().copied());
            let second = Indexes::default().with(b.iter().rev().copied());
            let both = first.union(&second);
            let union: BTreeSet<i64> = a.union(&b).copied().collect();
            prop_assert_eq!(both.count(), i64::try_from(union.len()).unwrap());
            prop_assert!((0..45).all(|i| both.contains(i) == union.contains(&i)));
            prop_assert_eq!(Indexes::parse(&both.to_string(), 100), both.clone());
            let shared = i64::try_from(a.intersection(&b).count()).unwrap();
            prop_assert_eq!(first.overlap(&second), shared);
            let missing: Vec<i64> = (0..40).filter(|i| !union.contains(i)).take(count).collect();
            prop_assert_eq!(both.first_missing(count, 40), missing);
        }

        #[test]
        fn any_text_can_be_read(text in "[0-9,\\-a ]{0,30}", end in 0_i64..1000) {
            let indexes = Indexes::parse(&text, end);
            let _ = (indexes.to_string(), indexes.first_missing(5, end));
        }
    }
}
