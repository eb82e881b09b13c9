//! Error messages and exit codes.

use crate::session::{with_every_kubectl, with_kubectl_from};

/// Since 1.25 kubectl leaves the check of fields to the server.
const SERVER_CHECKS_FIELDS: u32 = 25;

#[test]
#[ignore = "tier: tools"]
fn unknown_objects_return_not_found() {
    with_every_kubectl(|s| {
        s.run("get nodes nope")
            .fails("Error from server (NotFound): nodes \"nope\" not found");
        s.run("get deploy nope")
            .fails("Error from server (NotFound): deployments.apps \"nope\" not found");
        s.run("get things")
            .fails("error: the server doesn't have a resource type \"things\"");
        s.run("create configmap c -n nope-$NS")
            .fails_with("namespaces \"nope-NS\" not found");
        s.file(
            "thing.yaml",
            "{apiVersion: v1, kind: Thing, metadata: {name: x}}",
        );
        s.run("create -f thing.yaml")
            .fails_with("no matches for kind \"Thing\" in version \"v1\"");
    });
}

#[test]
#[ignore = "tier: tools"]
fn invalid_selectors_are_refused() {
    with_every_kubectl(|s| {
        s.run("get pods --field-selector=bad.field=x").fails(
            "Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match \
             label selector \"\", field selector \"bad.field=x\": field label not supported: \
             bad.field",
        );
        s.run("get pods -l 'bad==!'").fails(
            "Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match \
             label selector \"bad==!\", field selector \"\": unable to parse requirement: found \
             '!', expected: identifier",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn invalid_objects_are_refused_with_every_reason() {
    with_every_kubectl(|s| {
        s.file(
            "bad.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: Bad_Name}, \
              spec: {containers: [{name: a, image: x, resources: \
              {limits: {cpu: 1}, requests: {cpu: 2}}}]}}",
        );
        s.run("create -f bad.yaml").fails(
            "The Pod \"Bad_Name\" is invalid: \n\
             * metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must \
             consist of lower case alphanumeric characters, '-' or '.', and must start and end \
             with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n\
             * spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or \
             equal to cpu limit of 1"
                .replace("invalid: \n", "invalid:\n")
                .as_str(),
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn unknown_fields_are_rejected_or_warned_about() {
    with_kubectl_from(SERVER_CHECKS_FIELDS, |s| {
        s.file(
            "cm.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, foo: 1}, datax: {a: b}}",
        );
        s.run("create -f cm.yaml").fails(
            "Error from server (BadRequest): error when creating \"cm.yaml\": ConfigMap in \
             version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown \
             field \"datax\", unknown field \"metadata.foo\"",
        );
        s.run("create -f cm.yaml --validate=warn --dry-run=server")
            .remarks("Warning: unknown field \"datax\"\nWarning: unknown field \"metadata.foo\"");
        s.run("create -f cm.yaml --validate=ignore")
            .says("configmap/c created");
    });
}

#[test]
#[ignore = "tier: tools"]
fn old_kubectls_find_unknown_fields_themselves() {
    with_every_kubectl(|s| {
        if s.kubectl.minor >= SERVER_CHECKS_FIELDS {
            return;
        }
        s.file(
            "pod.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
              spec: {foo: 1, containers: [{name: a, image: x}]}}",
        );
        s.run("create -f pod.yaml").fails_with(
            "ValidationError(Pod.spec): unknown field \"foo\" in io.k8s.api.core.v1.PodSpec",
        );
        s.run("create -f pod.yaml --validate=false")
            .remarks("Warning: unknown field \"spec.foo\"");
    });
}

#[test]
#[ignore = "tier: tools"]
fn existing_objects_are_not_created_again() {
    with_every_kubectl(|s| {
        s.ok("create configmap c");
        s.run("create configmap c")
            .fails_with("configmaps \"c\" already exists");
        s.ok("run p --image=x");
        s.run("run p --image=x")
            .fails("Error from server (AlreadyExists): pods \"p\" already exists");
    });
}

#[test]
#[ignore = "tier: tools"]
fn system_namespaces_cannot_be_deleted() {
    with_every_kubectl(|s| {
        for name in ["default", "kube-system", "kube-public"] {
            s.run(&format!("delete namespace {name}")).fails(&format!(
                "Error from server (Forbidden): namespaces \"{name}\" is forbidden: this \
                 namespace may not be deleted"
            ));
        }
    });
}

#[test]
#[ignore = "tier: tools"]
fn terminating_namespace_rejects_creates() {
    with_every_kubectl(|s| {
        s.ok("delete namespace $NS --wait=false");
        s.run("get namespace $NS --no-headers")
            .says("NS  Terminating  AGE");
        s.run("run p --image=x").fails(
            "Error from server (Forbidden): pods \"p\" is forbidden: unable to create new \
             content in namespace NS because it is being terminated",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn a_restricted_namespace_takes_no_privileged_pod() {
    with_every_kubectl(|s| {
        s.ok("label namespace $NS pod-security.kubernetes.io/enforce=baseline");
        s.file(
            "pod.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {hostPID: true, \
              containers: [{name: a, image: x, securityContext: {privileged: true}}]}}",
        );
        let violations = "host namespaces (hostPID=true), privileged (container \"a\" must not \
            set securityContext.privileged=true)";
        s.run("create -f pod.yaml").fails_with(&format!(
            "Error from server (Forbidden): error when creating \"pod.yaml\": pods \"p\" is \
             forbidden: violates PodSecurity \"baseline:latest\": {violations}"
        ));
        s.run("label namespace $NS --overwrite pod-security.kubernetes.io/enforce=strict")
            .fails_with("must be one of privileged, baseline, restricted");
        s.file(
            "deployment.yaml",
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: \
              {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {hostPID: true, \
              containers: [{name: a, image: x, securityContext: {privileged: true}}]}}}}",
        );
        s.run("create -f deployment.yaml").remarks(&format!(
            "Warning: would violate PodSecurity \"baseline:latest\": {violations}\n"
        ));
    });
}
