//! Texts of the kernel in which each line is a key and a number.

/// Calls `take` with each key and its number. Lines of another shape are passed over.
pub(crate) fn each_entry<'a>(text: &'a str, mut take: impl FnMut(&'a str, u64)) {
    for line in text.lines() {
        if let Some((key, number)) = line.split_once(' ')
            && let Ok(number) = number.trim().parse()
        {
            take(key, number);
        }
    }
}

/// The number of one key.
pub(crate) fn entry(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        .and_then(|number| number.trim().parse().ok())
}

/// A file that is one number; `max` is the largest.
pub(crate) fn number_or_max(text: &str) -> Option<u64> {
    match text.trim() {
        "max" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_whole_key() {
        let text = "cache 1\nrss 2\nrss_huge 3\nodd\n";
        assert_eq!(entry(text, "rss"), Some(2));
        assert_eq!(entry(text, "rss_"), None);
        let mut found = Vec::new();
        each_entry(text, |key, number| found.push((key, number)));
        assert_eq!(found, [("cache", 1), ("rss", 2), ("rss_huge", 3)]);
    }

    #[test]
    fn max_is_the_largest_number() {
        assert_eq!(number_or_max("max\n"), Some(u64::MAX));
        assert_eq!(number_or_max("12\n"), Some(12));
        assert_eq!(number_or_max("-1\n"), None);
    }
}
