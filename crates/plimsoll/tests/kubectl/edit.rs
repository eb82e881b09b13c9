//! `edit`, with a stream editor in the place of a person.

use crate::printed::Printed;
use crate::session::{Session, with_every_kubectl};

fn edit(s: &Session, script: &str) -> Printed {
    s.run_with("edit deploy web", |command| {
        command.env("KUBE_EDITOR", format!("sed -i {script}"));
    })
}

#[test]
#[ignore = "tier: tools"]
fn changes_are_stored() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x:1");
        edit(s, "s/x:1/x:2/").says("deployment.apps/web edited");
        s.run("get deploy web -o jsonpath='{.spec.template.spec.containers[0].image}'")
            .says("x:2");
        s.run("get deploy web -o jsonpath='{.metadata.generation}'")
            .says("2");
    });
}

#[test]
#[ignore = "tier: tools"]
fn no_change_is_no_request() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x:1");
        edit(s, "s/nothing/else/").remarks("Edit cancelled, no changes made.");
    });
}

#[test]
#[ignore = "tier: tools"]
fn edit_keeps_rejected_changes() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x:1");
        let printed = edit(s, "s/replicas:.*/replicas:\\ -1/");
        printed.fails_with("error: deployments.apps \"web\" is invalid");
        printed.fails_with("A copy of your changes has been stored to");
    });
}
