//! Project ids that others have written down.

use std::collections::BTreeSet;
use std::fs;

/// The ids in the files that quota tools and kubelets read and write.
pub(super) fn reserved_ids() -> BTreeSet<u32> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    parse(&read("/etc/projects"), &read("/etc/projid"))
}

/// `projects` has lines `42:/a/directory`, `projid` has lines `name:42`.
fn parse(projects: &str, projid: &str) -> BTreeSet<u32> {
    let of_projects = projects.lines().filter_map(|line| line.split_once(':'));
    let of_projects = of_projects.map(|(id, _)| id);
    let of_projid = projid.lines().filter_map(|line| line.split_once(':'));
    let of_projid = of_projid.map(|(_, id)| id);
    let ids = of_projects.chain(of_projid);
    ids.filter_map(|id| id.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_projects_and_projid() {
        let projects = "# comment\n1048577:/var/lib/kubelet/pods/u/volumes/v\n 7 :/srv/a:b\nnone\n";
        let projid = "volume1048580:1048580\nlogs: 9\nbroken:x\n";
        let expected = BTreeSet::from([7, 9, 1_048_577, 1_048_580]);
        assert_eq!(parse(projects, projid), expected);
        assert_eq!(parse("", ""), BTreeSet::new());
    }
}
