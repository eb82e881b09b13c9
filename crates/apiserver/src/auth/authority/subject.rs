//! Subjects with several groups.
//!
//! A user's groups are the organisations of its certificate, one attribute each. The library that
//! makes certificates supports one value per attribute, so the subject is inserted afterwards and
//! the certificate signed again. Lengths and tags here are DER, as X.690 has it.

use rcgen::SigningKey;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;

/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// How many parts of the certificate's body precede its subject: version, serial number,
/// algorithm, issuer, validity.
const PARTS_BEFORE_SUBJECT: usize = 5;

/// The certificate (DER) with that subject, signed again. `None` if it is not a certificate, or
/// cannot be signed.
pub(super) fn with_subject(
    certificate: &[u8],
    user: &str,
    groups: &[&str],
    key: &impl SigningKey,
) -> Option<Vec<u8>> {
    with_name(certificate, &name(user, groups), key)
}

/// The same with a distinguished name that is DER already.
pub(super) fn with_name(
    certificate: &[u8],
    subject: &[u8],
    key: &impl SigningKey,
) -> Option<Vec<u8>> {
    let (outer, _) = split_element(certificate)?;
    let (body, after_body) = split_element(contents(outer)?)?;
    let (algorithm, _) = split_element(after_body)?;

    let parts = contents(body)?;
    let mut rest = parts;
    for _ in 0..PARTS_BEFORE_SUBJECT {
        (_, rest) = split_element(rest)?;
    }
    let before = &parts[..parts.len() - rest.len()];
    let (_, after) = split_element(rest)?;

    let body = element(SEQUENCE, &[before, subject, after].concat());
    let signature = key.sign(&body).ok()?;
    // The first byte of a bit string counts the bits that are left over.
    let signature = element(BIT_STRING, &[&[0], signature.as_slice()].concat());
    Some(element(SEQUENCE, &[&body, algorithm, &signature].concat()))
}

/// A distinguished name: organisations, then the common name, as kubeadm orders them.
fn name(user: &str, groups: &[&str]) -> Vec<u8> {
    let organizations = groups.iter().map(|group| attribute(&ORGANIZATION, group));
    let parts: Vec<u8> = organizations
        .chain([attribute(&COMMON_NAME, user)])
        .flatten()
        .collect();
    element(SEQUENCE, &parts)
}

fn attribute(id: &[u8], value: &str) -> Vec<u8> {
    let pair = [
        element(OBJECT_ID, id),
        element(UTF8_STRING, value.as_bytes()),
    ]
    .concat();
    element(SET, &element(SEQUENCE, &pair))
}

/// Tag, length, contents.
fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = contents.len().to_be_bytes();
    let significant = length.iter().skip_while(|byte| **byte == 0);
    match contents.len() {
        short @ 0..0x80 => out.push(u8::try_from(short).expect("below 128")),
        _ => {
            let count = u8::try_from(significant.clone().count()).expect("at most eight bytes");
            out.push(0x80 | count);
            out.extend(significant);
        }
    }
    out.extend_from_slice(contents);
    out
}

/// The first element with its header, and the rest.
fn split_element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, length) = header(bytes)?;
    bytes.split_at_checked(header.checked_add(length)?)
}

/// The contents of an element.
fn contents(element: &[u8]) -> Option<&[u8]> {
    let (header, _) = header(element)?;
    element.get(header..)
}

/// How long the header is, and how long the contents are.
fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    let first = *bytes.get(1)?;
    if first < 0x80 {
        return Some((2, usize::from(first)));
    }
    let count = usize::from(first & 0x7f);
    let digits = bytes.get(2..2 + count)?;
    let is_known = (1..=4).contains(&count);
    let length = digits
        .iter()
        .fold(0, |sum: usize, digit| (sum << 8) | usize::from(*digit));
    is_known.then_some((2 + count, length))
}
