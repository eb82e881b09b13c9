//! `apply` in both ways, and `diff`.

use crate::session::{Session, with_every_kubectl, with_kubectl_from};

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: 'x:1', resources: {limits: {cpu: 200m}}, env: [{name: A, value: '1'}]}
";

/// Another image, more replicas, and a container more.
fn changed() -> String {
    let second = "      - {name: b, image: 'y:1'}\n";
    WEB.replace("x:1", "x:2")
        .replace("replicas: 2", "replicas: 3")
        + second
}

fn files(s: &Session) {
    s.file("one.yaml", WEB);
    s.file("two.yaml", &changed());
}

#[test]
#[ignore = "tier: tools"]
fn manifests_are_created_configured_or_unchanged() {
    with_every_kubectl(|s| {
        files(s);
        s.run("apply -f one.yaml")
            .says("deployment.apps/web created");
        s.run("apply -f one.yaml")
            .says("deployment.apps/web unchanged");
        s.run("apply -f two.yaml")
            .says("deployment.apps/web configured");
        let images = "get deploy web -o jsonpath='{.spec.template.spec.containers[*].image}'";
        s.run(images).says("x:2 y:1");
        s.run("apply -f one.yaml")
            .says("deployment.apps/web configured");
        s.run(images).says("x:1");
        s.run("apply -f two.yaml --dry-run=server")
            .says("deployment.apps/web configured (server dry run)");
        s.run(images).says("x:1");
        s.run("apply view-last-applied deploy/web")
            .mentions(&["image: x:1"]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn fields_of_other_managers_are_kept() {
    with_every_kubectl(|s| {
        files(s);
        s.ok("apply -f one.yaml");
        s.ok("scale deploy web --replicas=7");
        s.ok("label deploy web other=1");
        // Only what the manifest has, had, or has otherwise is touched.
        s.file("less.yaml", &WEB.replace("  replicas: 2\n", ""));
        s.ok("apply -f less.yaml");
        s.run("get deploy web -o jsonpath='{.spec.replicas} {.metadata.labels}'")
            .says("1 {\"app\":\"web\",\"other\":\"1\"}");
    });
}

#[test]
#[ignore = "tier: tools"]
fn objects_not_created_by_apply_are_adopted_with_a_warning() {
    with_every_kubectl(|s| {
        s.file(
            "pod.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
                             spec: {containers: [{name: a, image: x}]}}",
        );
        s.ok("create -f pod.yaml");
        let printed = s.run("apply -f pod.yaml");
        assert_eq!(printed.stdout, "pod/p configured");
        assert!(
            printed
                .stderr
                .contains("missing the kubectl.kubernetes.io/last-applied-configuration"),
            "{printed:#?}"
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn changes_to_immutable_fields_are_rejected() {
    with_every_kubectl(|s| {
        files(s);
        s.ok("apply -f one.yaml");
        let other = WEB.replace("{app: web}}\n  template", "{app: other}}\n  template");
        s.file(
            "other.yaml",
            &other.replace(
                "metadata: {labels: {app: web}}",
                "metadata: {labels: {app: other}}",
            ),
        );
        s.run("apply -f other.yaml").fails(
            "The Deployment \"web\" is invalid: spec.selector: Invalid value: \
             {\"matchLabels\":{\"app\":\"other\"}}: field is immutable",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn differences_are_shown_and_counted_in_the_exit_code() {
    with_every_kubectl(|s| {
        files(s);
        s.ok("apply -f one.yaml");
        s.run("diff -f one.yaml").says("");
        let printed = s.run("diff -f two.yaml");
        assert_eq!(printed.code, 1, "{printed:#?}");
        for line in [
            "-  replicas: 2",
            "+  replicas: 3",
            "+  - image: y:1",
            "-  generation: 1",
        ] {
            let found = printed.stdout.lines().any(|found| {
                let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                squeeze(found) == squeeze(line)
                    || squeeze(found) == squeeze(&line.replacen("  ", "", 1))
            });
            assert!(found, "{line:?} is missing in {printed:#?}");
        }
        s.run("get deploy web -o jsonpath={.spec.replicas}")
            .says("2");
    });
}

#[test]
#[ignore = "tier: tools"]
fn the_server_applies_and_names_conflicts() {
    with_every_kubectl(|s| {
        files(s);
        s.run("apply --server-side -f one.yaml")
            .says("deployment.apps/web serverside-applied");
        s.run("apply --server-side -f one.yaml")
            .says("deployment.apps/web serverside-applied");
        s.ok("set image deploy/web a=x:9");
        s.ok("patch deploy web --type=merge -p '{\"spec\":{\"replicas\":5}}'");
        let printed = s.run("apply --server-side -f two.yaml");
        let head = "error: Apply failed with 2 conflicts: conflicts with \"kubectl-patch\" using apps/v1:\n\
                    - .spec.replicas\n\
                    conflicts with \"kubectl-set\" using apps/v1:\n\
                    - .spec.template.spec.containers[name=\"a\"].image\n\
                    Please review the fields above--they currently have other managers.";
        assert!(printed.stderr.starts_with(head), "{printed:#?}");
        assert_eq!(printed.code, 1);
        s.run("apply --server-side --force-conflicts -f two.yaml")
            .says("deployment.apps/web serverside-applied");
        s.run("apply --server-side -f one.yaml --field-manager=other")
            .fails_with(
                "error: Apply failed with 2 conflicts: conflicts with \"kubectl\":\n\
             - .spec.replicas\n\
             - .spec.template.spec.containers[name=\"a\"].image",
            );
    });
}

/// Since 1.26 kubectl hands the fields of client-side apply over to the server's.
#[test]
#[ignore = "tier: tools"]
fn objects_migrate_between_client_and_server_side_apply() {
    with_kubectl_from(26, |s| {
        files(s);
        s.ok("apply -f one.yaml");
        s.run("apply --server-side -f two.yaml")
            .says("deployment.apps/web serverside-applied");
        let managers = s.ok("get deploy web --show-managed-fields \
                             -o jsonpath='{range .metadata.managedFields[*]}{.manager}:{.operation} {end}'");
        let mut managers: Vec<&str> = managers.split_whitespace().collect();
        managers.sort_unstable();
        assert_eq!(managers, ["kubectl-last-applied:Apply", "kubectl:Apply"]);
        // What the manifest no longer has goes, although the old way brought it.
        s.ok("apply --server-side -f one.yaml");
        s.run("get deploy web -o jsonpath='{.spec.template.spec.containers[*].name}'")
            .says("a");
    });
}

#[test]
#[ignore = "tier: tools"]
fn objects_missing_from_the_folder_are_pruned() {
    with_every_kubectl(|s| {
        let one = |name: &str| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{set: x}}}}}}\n"
            )
        };
        s.file("set.yaml", &format!("{}---\n{}", one("a"), one("b")));
        s.ok("apply -f set.yaml");
        s.file("set.yaml", &one("a"));
        let list = match s.kubectl.minor {
            ..26 => "whitelist",
            _ => "allowlist",
        };
        s.run(&format!(
            "apply -f set.yaml --prune -l set=x --prune-{list}=core/v1/ConfigMap"
        ))
        .mentions(&["configmap/a unchanged", "configmap/b pruned"]);
    });
}
