//! `patch`, `label` and `annotate`.

use crate::session::{Session, with_every_kubectl, with_kubectl_from};

fn web(s: &Session) {
    s.ok("create deployment web --image=x:1");
}

#[test]
#[ignore = "tier: tools"]
fn all_kinds_of_patches_are_applied() {
    with_every_kubectl(|s| {
        web(s);
        for (patch, replicas) in [
            ("-p '{\"spec\":{\"replicas\":2}}'", "2"),
            ("--type=merge -p '{\"spec\":{\"replicas\":3}}'", "3"),
            (
                "--type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":4}]'",
                "4",
            ),
            ("-p 'spec: {replicas: 5}'", "5"),
        ] {
            s.run(&format!("patch deploy web {patch}"))
                .says("deployment.apps/web patched");
            s.run("get deploy web -o jsonpath={.spec.replicas}")
                .says(replicas);
        }
        s.run("patch deploy web -p '{\"spec\":{\"replicas\":5}}'")
            .says("deployment.apps/web patched (no change)");
        s.run("patch deploy web -p '{\"spec\":{\"replicas\":6}}' --dry-run=server")
            .mentions(&["deployment.apps/web patched"]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn lists_of_named_things_are_merged_by_name() {
    with_every_kubectl(|s| {
        web(s);
        let patch = |containers: &str| {
            s.run(&format!(
                "patch deploy web -p '{{\"spec\":{{\"template\":{{\"spec\":{{\"containers\":{containers}}}}}}}}}'"
            ))
        };
        patch("[{\"name\":\"b\",\"image\":\"y:1\"}]").says("deployment.apps/web patched");
        let names = "get deploy web -o jsonpath='{.spec.template.spec.containers[*].name}'";
        s.run(names).says("b x");
        patch("[{\"name\":\"x\",\"$patch\":\"delete\"}]").says("deployment.apps/web patched");
        s.run(names).says("b");
        patch("[{\"name\":\"b\",\"$patch\":\"delete\"}]").fails(
            "The Deployment \"web\" is invalid: spec.template.spec.containers: Required value",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn invalid_patches_are_refused() {
    with_every_kubectl(|s| {
        web(s);
        let invalid = "The request is invalid: the server rejected our request due to an error in our request";
        s.run("patch deploy web --type=json -p '[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":9}]'")
            .fails_with(invalid.split(':').next().unwrap());
        s.run("patch deploy web --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/nope\"}]'")
            .fails_with(invalid.split(':').next().unwrap());
        s.run("patch deploy nope -p '{}'")
            .fails("Error from server (NotFound): deployments.apps \"nope\" not found");
        s.run("patch deploy web -p '{\"spec\":{\"replicas\":-1}}'").fails(
            "The Deployment \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater \
             than or equal to 0",
        );
        s.run("patch deploy web -p '{\"metadata\":{\"resourceVersion\":\"1\"}}'")
            .fails(
                "Error from server (Conflict): Operation cannot be fulfilled on deployments.apps \
             \"web\": the object has been modified; please apply your changes to the latest \
             version and try again",
            );
    });
}

/// `--subresource` is of 1.24.
#[test]
#[ignore = "tier: tools"]
fn parts_of_objects_are_patched() {
    with_kubectl_from(24, |s| {
        web(s);
        s.run(
            "patch deploy web --subresource=status --type=merge \
               -p '{\"status\":{\"replicas\":3,\"readyReplicas\":2},\"spec\":{\"replicas\":9}}'",
        )
        .says("deployment.apps/web patched");
        s.run("get deploy web --no-headers")
            .says("web  2/1  0  0  AGE");
        s.run("patch deploy web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":4}}'")
            .says("scale.autoscaling/web patched");
        s.run("get deploy web --subresource=scale").says(
            "NAME  DESIRED  AVAILABLE  AGE\n\
             web  4  3  AGE",
        );
        s.run("get deploy web --subresource=status --no-headers")
            .says("web  2/4  0  0  AGE");
    });
}

/// `resize` may be named since 1.32.
#[test]
#[ignore = "tier: tools"]
fn pods_are_resized_in_place() {
    with_kubectl_from(32, |s| {
        s.create(
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, \
              image: x, resources: {requests: {cpu: 100m}}}]}}",
        );
        let resize = |resources: &str| {
            s.run(&format!(
                "patch pod p --subresource=resize -p \
                 '{{\"spec\":{{\"containers\":[{{\"name\":\"a\",\"resources\":{resources}}}]}}}}'"
            ))
        };
        resize("{\"requests\":{\"cpu\":\"200m\"}}").says("pod/p patched");
        s.run("get pod p -o jsonpath='{.spec.containers[0].resources}'")
            .says("{\"requests\":{\"cpu\":\"200m\"}}");
        resize("{\"requests\":{\"cpu\":null}}")
            .fails_with("Pod QOS Class may not change as a result of resizing");
        s.run("patch pod p -p '{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"300m\"}}}]}}'")
            .fails_with("pod updates may not change fields other than");
    });
}

#[test]
#[ignore = "tier: tools"]
fn labels_and_annotations_are_added_changed_and_removed() {
    with_every_kubectl(|s| {
        web(s);
        s.run("label deploy web role=a")
            .says("deployment.apps/web labeled");
        s.run("label deploy web role=b")
            .fails("error: 'role' already has a value (a), and --overwrite is false");
        s.run("label deploy web role=b --overwrite")
            .says("deployment.apps/web labeled");
        s.run("label deploy web role-").mentions(&["labeled"]);
        s.run("annotate deploy web note=hi")
            .says("deployment.apps/web annotated");
        s.run("annotate deploy web note-")
            .says("deployment.apps/web annotated");
        s.run("get deploy web -o jsonpath='{.metadata.labels}{.metadata.annotations}'")
            .says("{\"app\":\"web\"}");
        s.ok("create deployment two --image=x");
        s.run("label deploy --all z=1")
            .says("deployment.apps/two labeled\ndeployment.apps/web labeled");
        s.run("label deploy web 'bad key=1'").fails_with(
            "metadata.labels: Invalid value: \"bad key\": name part must consist of alphanumeric \
             characters",
        );
    });
}
