//! Pressure stall information: how long tasks stood still for want of something.

use plimsoll_core::eviction::summary::{PsiData, PsiStats};

/// Reads `/proc/pressure/<resource>` or `<resource>.pressure` of a cgroup:
/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`. Old kernels have no
/// `full` line for cpu, which then is zero, as upstream's.
pub(super) fn parse_pressure(text: &str) -> Option<PsiStats> {
    let mut stats = PsiStats::default();
    let mut is_any = false;
    for line in text.lines() {
        let (kind, fields) = line.split_once(' ')?;
        let data = parse_fields(fields)?;
        match kind {
            "some" => stats.some = data,
            "full" => stats.full = data,
            _ => continue,
        }
        is_any = true;
    }
    is_any.then_some(stats)
}

fn parse_fields(fields: &str) -> Option<PsiData> {
    let mut data = PsiData::default();
    for field in fields.split(' ') {
        let (key, value) = field.split_once('=')?;
        match key {
            "avg10" => data.avg10 = value.parse().ok()?,
            "avg60" => data.avg60 = value.parse().ok()?,
            "avg300" => data.avg300 = value.parse().ok()?,
            "total" => data.total = value.parse().ok()?,
            _ => {}
        }
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read_and_either_may_be_missing() {
        let text = "some avg10=1.50 avg60=0.20 avg300=0.03 total=7\n\
                    full avg10=0.50 avg60=0.00 avg300=0.00 total=5\n";
        let stats = parse_pressure(text).unwrap();
        assert_eq!((stats.some.avg10, stats.some.total), (1.5, 7));
        assert_eq!((stats.full.avg10, stats.full.total), (0.5, 5));
        let old = parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n").unwrap();
        assert_eq!((old.some.total, old.full.total), (1, 0));
        assert_eq!(parse_pressure(""), None);
        assert_eq!(parse_pressure("some avg10=x"), None);
    }
}
