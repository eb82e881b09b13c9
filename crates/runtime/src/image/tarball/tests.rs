use super::*;

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_path("short").unwrap();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(1);
    header.set_gid(2);
    header.set_mtime(3);
    header.set_cksum();
    header
}

/// A header and content, padded.
fn part(kind: EntryType, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, content.len() as u64).as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn record(key: &str, value: &str) -> String {
    let bare = key.len() + value.len() + 3;
    let with = |digits: usize| bare + digits;
    let length = (1..5).map(with).find(|n| n.to_string().len() + bare == *n);
    format!("{} {key}={value}\n", length.unwrap())
}

fn read_all(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
    let mut entries = Entries::new(bytes);
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry()? {
        let mut content = Vec::new();
        entries.read_to_end(&mut content)?;
        found.push((entry, content));
    }
    Ok(found)
}

#[test]
fn entries_have_their_content() {
    let bytes = [part(EntryType::Regular, b"content"), vec![0; 1024]].concat();
    let found = read_all(&bytes).unwrap();
    assert_eq!(found.len(), 1);
    let (entry, content) = &found[0];
    assert_eq!(
        (entry.path.as_slice(), &entry.kind, entry.size),
        (&b"short"[..], &Kind::File, 7)
    );
    assert_eq!(entry.attributes.modified, (3, 0));
    assert_eq!(content, b"content");
}

#[test]
fn unread_content_is_skipped() {
    let bytes = [
        part(EntryType::Regular, &[7; 1500]),
        part(EntryType::Directory, b""),
    ]
    .concat();
    let mut entries = Entries::new(bytes.as_slice());
    assert_eq!(entries.next_entry().unwrap().unwrap().kind, Kind::File);
    assert_eq!(entries.next_entry().unwrap().unwrap().kind, Kind::Directory);
    assert_eq!(entries.next_entry().unwrap(), None);
}

#[test]
fn extended_headers_override_the_next_entry_only() {
    let long = "d/".repeat(200) + "name\nwith newline";
    let records = [
        record("path", &long),
        record("size", "3"),
        record("uid", "4000000"),
        record("mtime", "-1.25"),
        record("SCHILY.xattr.user.x", "y"),
        record("comment", "whatever"),
    ]
    .concat();
    let mut longer_than_its_header = part(EntryType::Regular, b"abc");
    longer_than_its_header[..BLOCK].copy_from_slice(header(EntryType::Regular, 0).as_bytes());
    let bytes = [
        part(EntryType::XHeader, records.as_bytes()),
        longer_than_its_header,
        part(EntryType::Regular, b"second"),
    ]
    .concat();
    let found = read_all(&bytes).unwrap();
    let (first, content) = &found[0];
    assert_eq!(first.path, long.as_bytes());
    assert_eq!(content, b"abc");
    assert_eq!(first.attributes.uid, 4_000_000);
    assert_eq!(first.attributes.gid, 2);
    assert_eq!(first.attributes.modified, (-2, 750_000_000));
    assert_eq!(
        first.attributes.xattrs,
        [(b"user.x".to_vec(), b"y".to_vec())]
    );
    assert_eq!(found[1].0.path, b"short");
    assert_eq!(found[1].1, b"second");
}

#[test]
fn long_names_of_gnu_tar_are_joined_to_their_entry() {
    let bytes = [
        part(EntryType::GNULongName, b"a/long/name\0"),
        part(EntryType::GNULongLink, b"a/long/target\0"),
        part(EntryType::Symlink, b""),
    ]
    .concat();
    let (entry, _) = &read_all(&bytes).unwrap()[0];
    assert_eq!(entry.path, b"a/long/name");
    assert_eq!(entry.kind, Kind::Symlink(b"a/long/target".to_vec()));
}

#[test]
fn broken_tars_are_refused() {
    let whole = part(EntryType::Regular, b"content");
    let mut wrong_sum = whole.clone();
    wrong_sum[0] ^= 1;
    let cases: [(&str, Vec<u8>); 7] = [
        ("half a header", whole[..100].to_vec()),
        ("half a content", whole[..515].to_vec()),
        ("half a padding", whole[..600].to_vec()),
        ("wrong checksum", wrong_sum),
        (
            "records without length",
            part(EntryType::XHeader, b"path=x\n"),
        ),
        (
            "records beyond the end",
            part(EntryType::XHeader, b"99 path=x\n"),
        ),
        (
            "record of zero length",
            part(EntryType::XHeader, b"0 path=x\n"),
        ),
    ];
    for (what, bytes) in cases {
        assert!(read_all(&bytes).is_err(), "{what}");
    }
}

#[test]
fn an_extended_header_is_never_kept_whole_if_it_is_huge() {
    let claims_much = header(EntryType::GNULongName, 1 << 40);
    let endless = claims_much.as_bytes().chain(io::repeat(b'x'));
    let mut entries = Entries::new(endless);
    assert!(matches!(entries.next_entry(), Err(Error::Header { .. })));
}

#[test]
fn blank_fields_are_zero() {
    let mut header = header(EntryType::Directory, 0);
    header.as_old_mut().uid = [0; 8];
    header.as_old_mut().gid = [b' '; 8];
    header.as_old_mut().mode = [0; 8];
    header.set_cksum();
    let (entry, _) = &read_all(header.as_bytes()).unwrap()[0];
    let attributes = &entry.attributes;
    assert_eq!((attributes.uid, attributes.gid, attributes.mode), (0, 0, 0));
}

#[test]
fn sparse_files_are_refused_by_name() {
    let records = record("GNU.sparse.major", "1");
    let bytes = [
        part(EntryType::XHeader, records.as_bytes()),
        part(EntryType::Regular, b""),
    ]
    .concat();
    let problem = read_all(&bytes).unwrap_err().to_string();
    assert_eq!(
        problem,
        "\"short\" is a sparse file, which is not supported"
    );
}
