//! The identity of this process.

/// The name of the machine.
pub fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// A name that no other process has: the machine's, and chance.
pub fn identity() -> String {
    format!("{}_{}", hostname(), random_uuid())
}

/// A UUID of version 4.
pub fn random_uuid() -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let bits = fastrand::u128(..) & !VERSION & !VARIANT | 4 << 76 | 0b10 << 62;
    let digits = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_their_version_and_variant() {
        for _ in 0..100 {
            let uuid = random_uuid();
            assert_eq!(uuid.len(), 36);
            assert_eq!(&uuid[14..15], "4");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        }
        assert_ne!(identity(), identity());
    }
}
