//! Users and groups of an image.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::SpecError;

/// `/etc/passwd` and `/etc/group` of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Accounts {
    pub(in super::super) passwd: String,
    pub(in super::super) group: String,
}

/// The user and groups of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
}

/// Largest file that is read; real ones are far smaller.
const MAX_SIZE: u64 = 4 << 20;

impl Accounts {
    /// Reads the files below a root; one that is missing has no entries.
    pub(in super::super) fn read(root: &Path) -> Accounts {
        Accounts {
            passwd: read_inside(root, "etc/passwd"),
            group: read_inside(root, "etc/group"),
        }
    }

    /// Looks up `user`, `user:group`, each by name or number. `extra` groups are added; those that
    /// the image puts the user in only if `merges`.
    pub(super) fn user(&self, text: &str, extra: &[u32], merges: bool) -> Result<User, SpecError> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let user = if user.is_empty() { "0" } else { user };
        let entry = self.passwd_entry(user);
        let uid = match (&entry, user.parse()) {
            (_, Ok(uid)) => uid,
            (Some(entry), Err(_)) => entry.uid,
            (None, Err(_)) => return Err(SpecError::NoUser(user.to_owned())),
        };
        let gid = match group {
            Some(group) if !group.is_empty() => self.gid(group)?,
            _ => entry.as_ref().map_or(0, |entry| entry.gid),
        };
        let mut groups = vec![gid];
        if merges {
            let name = entry.as_ref().map(|entry| entry.name);
            groups.extend(name.into_iter().flat_map(|name| self.groups_of(name)));
        }
        groups.extend(extra);
        let mut seen = Vec::new();
        groups.retain(|group| {
            let is_new = !seen.contains(group);
            seen.push(*group);
            is_new
        });
        Ok(User { uid, gid, groups })
    }

    /// Where a user is at home; `/` if that is not said.
    pub(super) fn home(&self, uid: u32) -> &str {
        let mut entries = self.passwd.lines().filter_map(parse_passwd_line);
        let entry = entries.find(|entry| entry.uid == uid && !entry.home.is_empty());
        entry.map_or("/", |entry| entry.home)
    }

    fn passwd_entry(&self, user: &str) -> Option<PasswdEntry<'_>> {
        let entries = self.passwd.lines().filter_map(parse_passwd_line);
        let uid = user.parse::<u32>().ok();
        let mut entries = entries.filter(|entry| entry.name == user || Some(entry.uid) == uid);
        entries.next()
    }

    fn gid(&self, group: &str) -> Result<u32, SpecError> {
        if let Ok(gid) = group.parse() {
            return Ok(gid);
        }
        let mut entries = self.group.lines().filter_map(parse_group_line);
        let entry = entries.find(|entry| entry.name == group);
        entry
            .map(|entry| entry.gid)
            .ok_or_else(|| SpecError::NoGroup(group.to_owned()))
    }

    fn groups_of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = u32> + 'a {
        let entries = self.group.lines().filter_map(parse_group_line);
        entries
            .filter(move |entry| entry.members.split(',').any(|member| member == user))
            .map(|entry| entry.gid)
    }
}

struct PasswdEntry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

/// `name:password:uid:gid:comment:home:shell`
fn parse_passwd_line(line: &str) -> Option<PasswdEntry<'_>> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let _password = fields.next()?;
    Some(PasswdEntry {
        name,
        uid: fields.next()?.parse().ok()?,
        gid: fields.next()?.parse().ok()?,
        home: fields.nth(1).unwrap_or_default(),
    })
}

struct GroupEntry<'a> {
    name: &'a str,
    gid: u32,
    members: &'a str,
}

/// `name:password:gid:member,member`
fn parse_group_line(line: &str) -> Option<GroupEntry<'_>> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let _password = fields.next()?;
    Some(GroupEntry {
        name,
        gid: fields.next()?.parse().ok()?,
        members: fields.next().unwrap_or_default(),
    })
}

/// Reads a file below a root; links in it cannot lead outside.
fn read_inside(root: &Path, path: &str) -> String {
    let read = || {
        let dir = openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat2(dir, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
        let mut text = String::new();
        File::from(file).take(MAX_SIZE).read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        Accounts {
            passwd: "root:x:0:0:root:/root:/bin/sh\n\
                     # comment\n\
                     www:x:33:33::/var/www:\n\
                     broken:x:no\n"
                .to_owned(),
            group: "root:x:0:\nwww:x:33:\naudio:x:29:www,other\nvideo:x:44:other\n".to_owned(),
        }
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        let user = |uid, gid, groups: &[u32]| User {
            uid,
            gid,
            groups: groups.to_vec(),
        };
        for (text, want) in [
            ("", user(0, 0, &[0])),
            ("www", user(33, 33, &[33, 29])),
            ("33", user(33, 33, &[33, 29])),
            ("www:audio", user(33, 29, &[29])),
            ("www:7", user(33, 7, &[7, 29])),
            ("4711", user(4711, 0, &[0])),
            ("4711:4712", user(4711, 4712, &[4712])),
        ] {
            assert_eq!(accounts().user(text, &[], true), Ok(want), "{text}");
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!(
            accounts().user("nobody", &[], true),
            Err(SpecError::NoUser("nobody".to_owned()))
        );
        assert_eq!(
            accounts().user("www:nogroup", &[], true),
            Err(SpecError::NoGroup("nogroup".to_owned()))
        );
    }

    #[test]
    fn strict_groups_exclude_those_of_the_image() {
        let user = accounts().user("www", &[100, 33, 100], false).unwrap();
        assert_eq!(user.groups, [33, 100]);
    }

    #[test]
    fn links_in_the_image_do_not_lead_outside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("etc")).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join("etc/passwd")).unwrap();
        std::os::unix::fs::symlink("../../../secret", root.join("etc/group")).unwrap();
        assert_eq!(Accounts::read(&root), Accounts::default());
    }
}
