//! The short hash that distinguishes versions of a pod template in names and labels.

use std::fmt;

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// The hash of a template. A collision count, raised after two templates met in one hash, gives
/// another.
///
/// The shape is upstream's (v1.36 pkg/controller/controller_utils.go, `ComputeHash`): 32 bits of
/// FNV-1a in decimal, with letters that form no words. The input is not: upstream hashes Go's own
/// print of its types, this hashes the template's JSON. Hashes of different implementations are
/// never compared, because a ReplicaSet is found by its template and a revision by its data.
pub fn compute_hash(template: &PodTemplateSpec, collision_count: Option<i32>) -> String {
    let mut hash = Fnv::default();
    let json = serde_json::to_vec(template).expect("a pod template has only text keys");
    hash.write(&json);
    hash.write_collisions(collision_count);
    safe_encode(hash.0)
}

/// The hash of a revision's data, by the same rules.
pub fn compute_data_hash(data: &serde_json::Value, collision_count: Option<i32>) -> String {
    let mut hash = Fnv::default();
    hash.write(data.to_string().as_bytes());
    hash.write_collisions(collision_count);
    safe_encode(hash.0)
}

/// Replaces each character of a number's print by one that no word can be made of. Matches v1.36
/// apimachinery/pkg/util/rand/rand.go, `SafeEncodeString`.
pub fn safe_encode(value: impl fmt::Display) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = value.to_string();
    let encoded = text
        .bytes()
        .map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
    encoded.collect()
}

struct Fnv(u32);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0x811c_9dc5)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// Four bytes of the count and four of nothing, as upstream writes them.
    fn write_collisions(&mut self, count: Option<i32>) {
        if let Some(count) = count {
            self.write(&count.to_le_bytes());
            self.write(&[0; 4]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hashes_differ_by_template_and_collisions_only() {
        let template = |image: &str| -> PodTemplateSpec {
            let containers = json!([{"name": "c", "image": image}]);
            serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap()
        };
        let hash = compute_hash(&template("a"), None);
        assert_eq!(hash, compute_hash(&template("a"), None));
        assert_ne!(hash, compute_hash(&template("b"), None));
        assert_ne!(hash, compute_hash(&template("a"), Some(0)));
        assert_ne!(
            compute_hash(&template("a"), Some(1)),
            compute_hash(&template("a"), Some(0))
        );
    }

    #[test]
    fn digits_become_letters_without_vowels() {
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut hash = Fnv::default();
        hash.write(b"foobar");
        assert_eq!(hash.0, 0xbf9c_f968);
    }
}
