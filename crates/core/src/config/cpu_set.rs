//! Sets of CPUs in the kernel's list notation.

use std::collections::BTreeSet;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};

use crate::problem::quoted;

/// A set of CPU numbers, written `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<u32>);

/// Ranges are expanded into their members, so they are bounded: no machine has more CPUs.
const MAX_CPU: u32 = 65_535;

impl CpuSet {
    /// Number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// Reads the list notation; the error names the part that is wrong. The empty text is the empty
    /// set. Matches v1.36 vendor/k8s.io/utils/cpuset, Parse.
    pub fn parse(text: &str) -> Result<CpuSet, String> {
        let mut ranges = Vec::new();
        if text.is_empty() {
            return Ok(CpuSet::default());
        }
        for range in text.split(',') {
            let (start, end) = match range.split_once('-') {
                Some((start, end)) => (parse_number(start)?, parse_number(end)?),
                None => (parse_number(range)?, parse_number(range)?),
            };
            if start > end {
                return Err(format!("invalid range {} ({start} > {end})", quoted(range)));
            }
            let (Ok(start), Ok(end @ ..=MAX_CPU)) = (u32::try_from(start), u32::try_from(end))
            else {
                return Err(format!("invalid range {} (above {MAX_CPU})", quoted(range)));
            };
            ranges.push((start, end));
        }
        Ok(CpuSet(expand(ranges)))
    }
}

/// The members of all ranges. Sorted ranges are expanded where they reach beyond the ones before,
/// so that overlaps cost nothing.
fn expand(mut ranges: Vec<(u32, u32)>) -> BTreeSet<u32> {
    ranges.sort_unstable();
    let mut cpus = BTreeSet::new();
    let mut next = 0;
    for (start, end) in ranges {
        cpus.extend(start.max(next)..=end);
        next = next.max(end + 1);
    }
    cpus
}

fn parse_number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: ParseIntError| {
        let reason = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {reason}", quoted(text))
    })
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == cpu => *end = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        for (index, (start, end)) in ranges.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if start == end {
                write!(f, "{comma}{start}")?;
            } else {
                write!(f, "{comma}{start}-{end}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_merged_and_printed_shortest() {
        let set = CpuSet::parse("0-2,3,8,7").unwrap();
        assert_eq!(set.len(), 6);
        assert_eq!(set.to_string(), "0-3,7-8");
        assert!(CpuSet::parse("").unwrap().is_empty());
    }

    #[test]
    fn malformed_lists_are_refused() {
        for text in ["a", "1-", "3-1", "1,,2", "-1", "0-4294967295", " 1"] {
            assert!(CpuSet::parse(text).is_err(), "{text}");
        }
    }
}
