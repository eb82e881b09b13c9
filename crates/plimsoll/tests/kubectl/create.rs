//! `create`, `run`, `expose` and `replace`.

use crate::session::{with_every_kubectl, with_kubectl_from};

/// The warning that kubectl prints when it creates a Service.
const SERVICE_WARNING: &str = "Warning: Service is stored, but nothing acts on it: there is no service \
     proxy: it gets no address, and no traffic is routed to its pods";

#[test]
#[ignore = "tier: tools"]
fn every_generator_makes_its_kind() {
    with_every_kubectl(|s| {
        for (command, made) in [
            ("configmap c --from-literal=a=b", "configmap/c"),
            ("secret generic s --from-literal=a=b", "secret/s"),
            ("serviceaccount bot", "serviceaccount/bot"),
            ("quota q --hard=pods=2,requests.cpu=1", "resourcequota/q"),
            ("deployment d --image=x:1 --replicas=2", "deployment.apps/d"),
            ("job j --image=x -- echo hi", "job.batch/j"),
            (
                "role r --verb=get,list --resource=pods",
                "role.rbac.authorization.k8s.io/r",
            ),
            (
                "rolebinding rb --role=r --user=alice",
                "rolebinding.rbac.authorization.k8s.io/rb",
            ),
        ] {
            s.run(&format!("create {command}"))
                .says(&format!("{made} created"));
        }
        for (command, name) in [
            ("clusterip one --tcp=80:8080", "one"),
            ("nodeport two --tcp=80:8080", "two"),
            ("externalname three --external-name=a.example", "three"),
        ] {
            s.run(&format!("create service {command}"))
                .remarks(SERVICE_WARNING)
                .mentions(&[&format!("service/{name} created")]);
        }
        for (command, kind, name) in [
            (
                "--value=10 --description=high",
                "priorityclass",
                "priorityclass.scheduling.k8s.io",
            ),
            (
                "--verb=get --resource=nodes",
                "clusterrole",
                "clusterrole.rbac.authorization.k8s.io",
            ),
        ] {
            let own = s.unique("made");
            s.run(&format!("create {kind} {own} {command}"))
                .says(&format!("{name}/made-NS created"));
            s.run(&format!("delete {kind} {own}"))
                .says(&format!("{name} \"made-NS\" deleted"));
        }
    });
}

/// Before 1.21 kubectl requests API versions of these kinds that were removed.
#[test]
#[ignore = "tier: tools"]
fn generators_create_current_api_versions() {
    with_kubectl_from(21, |s| {
        s.run("create pdb p --selector=app=web --min-available=1")
            .says("poddisruptionbudget.policy/p created");
        s.run("create cronjob cj --image=x --schedule='*/5 * * * *'")
            .says("cronjob.batch/cj created");
        s.run("create job again --from=cronjob/cj")
            .says("job.batch/again created");
        s.run(
            "get job again -o jsonpath='{.metadata.ownerReferences[0].name} \
               {.metadata.annotations}'",
        )
        .says("cj {\"cronjob.kubernetes.io/instantiate\":\"manual\"}");
    });
}

#[test]
#[ignore = "tier: tools"]
fn unknown_resource_types_are_reported() {
    with_kubectl_from(21, |s| {
        s.run("create ingress i --rule=a.example/=svc:80").fails(
            "error: failed to create ingress: the server could not find the requested resource (post ingresses.networking.k8s.io)",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn manifests_are_created_once_each() {
    with_every_kubectl(|s| {
        s.file(
            "all.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n\
             {apiVersion: v1, kind: List, items: [\
               {apiVersion: v1, kind: Secret, metadata: {name: b}, stringData: {k: v}}]}\n---\n\
             {apiVersion: v1, kind: ConfigMap, metadata: {generateName: c-}}\n",
        );
        let printed = s.run("create -f all.yaml");
        assert_eq!(printed.code, 0, "{printed:#?}");
        let lines: Vec<&str> = printed.stdout.lines().collect();
        assert_eq!(lines[..2], ["configmap/a created", "secret/b created"]);
        assert!(lines[2].starts_with("configmap/c-"), "{printed:#?}");
        s.run("get secret b -o jsonpath={.data}")
            .says("{\"k\":\"dg==\"}");
    });
}

#[test]
#[ignore = "tier: tools"]
fn a_dry_run_stores_nothing() {
    with_every_kubectl(|s| {
        s.run("run p --image=x:1 --dry-run=server")
            .says("pod/p created (server dry run)");
        s.run("run p --image=x:1 --dry-run=client")
            .says("pod/p created (dry run)");
        let text = s.unmasked("run p --image=x:1 --dry-run=server -o yaml");
        assert!(
            text.contains("uid: ") && !text.contains("resourceVersion"),
            "{text}"
        );
        s.run("get pods")
            .remarks("No resources found in NS namespace.");
    });
}

#[test]
#[ignore = "tier: tools"]
fn limit_ranges_set_default_resources() {
    with_every_kubectl(|s| {
        s.file(
            "lr.yaml",
            "{apiVersion: v1, kind: LimitRange, metadata: {name: lr}, spec: {limits: [{type: \
              Container, max: {cpu: 1}, default: {cpu: 500m}, defaultRequest: {cpu: 100m}}]}}",
        );
        s.run("create -f lr.yaml").says("limitrange/lr created");
        s.ok("run p --image=x");
        s.run("get pod p -o jsonpath='{.spec.containers[0].resources}'")
            .says("{\"limits\":{\"cpu\":\"500m\"},\"requests\":{\"cpu\":\"100m\"}}");
        s.run("get pod p -o jsonpath='{.metadata.annotations}'")
            .says(
                "{\"kubernetes.io/limit-ranger\":\"LimitRanger plugin set: cpu request for \
             container p; cpu limit for container p\"}",
            );
        s.run("get limitranges --no-headers").says("lr  TIME");
    });
}

#[test]
#[ignore = "tier: tools"]
fn expose_creates_a_service_for_a_deployment() {
    with_every_kubectl(|s| {
        s.ok("create deployment d --image=x");
        s.run("expose deployment d --port=80 --target-port=8080")
            .remarks(SERVICE_WARNING)
            .mentions(&["service/d exposed"]);
        s.run("get service d -o jsonpath='{.spec.selector} {.spec.ports[0].targetPort}'")
            .says("{\"app\":\"d\"} 8080");
    });
}

#[test]
#[ignore = "tier: tools"]
fn replace_changes_mutable_fields() {
    with_every_kubectl(|s| {
        s.file(
            "c.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1'}}",
        );
        s.run("replace -f c.yaml").fails(
            "Error from server (NotFound): error when replacing \"c.yaml\": configmaps \"c\" not \
             found",
        );
        s.ok("create -f c.yaml");
        s.file(
            "c.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {b: '2'}}",
        );
        s.run("replace -f c.yaml").says("configmap/c replaced");
        s.run("get cm c -o jsonpath={.data}").says("{\"b\":\"2\"}");
        s.run("replace --force -f c.yaml")
            .mentions(&["configmap \"c\" deleted", "configmap/c replaced"]);

        s.file(
            "p.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
                           spec: {containers: [{name: a, image: x}]}}",
        );
        s.ok("create -f p.yaml");
        s.file(
            "p.yaml",
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
                           spec: {containers: [{name: a, image: x, tty: true}]}}",
        );
        s.run("replace -f p.yaml").fails_with(
            "The Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other \
             than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
             tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
             previously negative)",
        );
    });
}
