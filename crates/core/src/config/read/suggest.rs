//! Suggests a known name for an unknown one.

/// Longer words are not compared: a name of this length is not a misspelling by a letter or two.
const MAX_LENGTH: usize = 80;

/// `did you mean "evictionHard"?`, or nothing if no known name is close.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    match closest(word, known) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => String::new(),
    }
}

/// The known name that is nearest to the given one, if it is near at all. Case, dashes and
/// underscores count for nothing, so `eviction-hard` is near `evictionHard`.
pub fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(word);
    if plain.is_empty() || plain.len() > MAX_LENGTH {
        return None;
    }
    let most = plain.len().div_ceil(4).min(3);
    known
        .filter(|candidate| candidate.len() + 8 > plain.len() && plain.len() + 8 > candidate.len())
        .map(|candidate| (distance(&plain, &self::plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn plain(word: &str) -> Vec<char> {
    word.chars()
        .filter(|c| *c != '-' && *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Number of letters to insert, delete or replace (Levenshtein).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_word_is_suggested() {
        let known = ["evictionHard", "evictionSoft", "maxPods"];
        let closest = |word| closest(word, known.into_iter());
        assert_eq!(closest("evictonHard"), Some("evictionHard"));
        assert_eq!(closest("eviction-hard"), Some("evictionHard"));
        assert_eq!(closest("maxpods"), Some("maxPods"));
        assert_eq!(closest("maxPod"), Some("maxPods"));
        assert_eq!(closest("somethingElse"), None);
        assert_eq!(closest(""), None);
    }
}
