//! Numbers that only one test on this machine holds at a time.

use std::fs::{self, File};

/// Where the numbers are, as files that are locked while they are taken.
const FOLDER: &str = "plimsoll-test-numbers";

/// A number from 0 to 255, for resources that processes cannot share: a range of addresses,
/// `10.x.N.0/24`. It is free again when dropped, or when the process ends.
#[derive(Debug)]
pub struct Number {
    value: u8,
    _file: File,
}

impl Number {
    /// Takes a free one.
    ///
    /// # Panics
    ///
    /// If all are taken, or the folder cannot be written.
    pub fn claim() -> Self {
        let folder = std::env::temp_dir().join(FOLDER);
        fs::create_dir_all(&folder).expect("there is room for temporary files");
        // The next claim gets another number: the kernel remembers addresses longer than a test runs.
        let first = newest_claim(&folder).wrapping_add(1);
        let all = (0..=u8::MAX).map(|step| first.wrapping_add(step));
        let mut free = all.filter_map(|value| {
            let file = File::create(folder.join(value.to_string()));
            let file = file.unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
            file.try_lock().ok()?;
            Some(Number { value, _file: file })
        });
        free.next().expect("fewer tests run than there are numbers")
    }

    /// The number.
    pub fn value(&self) -> u8 {
        self.value
    }
}

/// The number whose file was written last.
fn newest_claim(folder: &std::path::Path) -> u8 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let known = entries.filter_map(|entry| {
        let value = entry.file_name().to_str()?.parse().ok()?;
        let time = entry.metadata().ok()?.modified().ok()?;
        Some((time, value))
    });
    known.max().map_or(0, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_is_claimed_twice() {
        let claims: Vec<Number> = (0..20).map(|_| Number::claim()).collect();
        let values: BTreeSet<u8> = claims.iter().map(Number::value).collect();
        assert_eq!(values.len(), claims.len());
        drop(claims);
        let _again = Number::claim();
    }
}
