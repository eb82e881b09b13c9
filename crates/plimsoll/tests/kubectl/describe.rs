//! `describe` of the main kinds.

use crate::session::{with_every_kubectl, with_kubectl_from};

#[test]
#[ignore = "tier: tools"]
fn pods_are_described() {
    with_every_kubectl(|s| {
        s.ok("run p --image=x:1 --labels=app=p");
        s.run("describe pod p").mentions(&[
            "Name:  p",
            "Namespace:  NS",
            "Priority:  0",
            "Node:  <none>",
            "Labels:  app=p",
            "Status:  Pending",
            "Containers:\n  p:\n    Image:  x:1",
            "/var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-",
            "Type:  Projected (a volume that contains injected data from multiple sources)",
            "TokenExpirationSeconds:  3607",
            "QoS Class:  BestEffort",
            "Tolerations:  node.kubernetes.io/not-ready:NoExecute op=Exists for AGE",
            "Events:  <none>",
        ]);
        s.run("describe pod nope")
            .fails("Error from server (NotFound): pods \"nope\" not found");
    });
}

#[test]
#[ignore = "tier: tools"]
fn workloads_are_described() {
    with_every_kubectl(|s| {
        s.ok("create deployment d --image=x:1 --replicas=2");
        s.run("describe deploy d").mentions(&[
            "Selector:  app=d",
            "Replicas:  2 desired | 0 updated | 0 total | 0 available | 0 unavailable",
            "RollingUpdateStrategy:  25% max unavailable, 25% max surge",
            "Image:  x:1",
        ]);
        s.ok("create job j --image=x -- echo hi");
        s.run("describe job j").mentions(&[
            "Parallelism:  1",
            "Completions:  1",
            "batch.kubernetes.io/job-name=j",
            "Command:\n      echo\n      hi",
        ]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn data_and_rules_are_described() {
    with_every_kubectl(|s| {
        s.ok("create configmap c --from-literal=a=one");
        s.run("describe cm c")
            .mentions(&["Data\n====\na:\n----\none"]);
        s.ok("create secret generic se --from-literal=p=pass");
        s.run("describe secret se")
            .mentions(&["Type:  Opaque", "p:  4 bytes"]);
        s.ok("create role r --verb=get,list --resource=pods");
        s.run("describe role r")
            .mentions(&["pods  []  []  [get list]"]);
        s.ok("create rolebinding rb --role=r --user=alice");
        s.run("describe rolebinding rb")
            .mentions(&["Role:\n  Kind:  Role\n  Name:  r", "User  alice"]);
        s.ok("create sa bot");
        s.run("describe sa bot")
            .mentions(&["Image pull secrets:  <none>", "Mountable secrets:  <none>"]);
        s.ok("create service clusterip svc --tcp=80:8080");
        s.run("describe service svc").mentions(&[
            "Type:  ClusterIP",
            "Port:  80-8080  80/TCP",
            "TargetPort:  8080/TCP",
        ]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn limits_are_described() {
    with_every_kubectl(|s| {
        s.create(
            "{apiVersion: v1, kind: LimitRange, metadata: {name: lr}, spec: {limits: [{type: \
              Container, max: {cpu: 1}, default: {cpu: 500m}, defaultRequest: {cpu: 100m}}]}}",
        );
        s.run("describe limitrange lr").says(
            "Name:  lr\n\
             Namespace:  NS\n\
             Type  Resource  Min  Max  Default Request  Default Limit  Max Limit/Request Ratio\n\
             ----  --------  ---  ---  ---------------  -------------  -----------------------\n\
             Container  cpu  -  1  100m  500m  -",
        );
        s.run("describe namespace $NS").mentions(&[
            "Status:  Active",
            "Resource Limits",
            "Container  cpu  -  1  100m  500m  -",
        ]);
        s.run("describe priorityclass system-node-critical")
            .mentions(&["Value:  2000001000", "GlobalDefault:  false"]);
    });
}

/// `policy/v1` and `batch/v1` CronJobs are described since 1.22.
#[test]
#[ignore = "tier: tools"]
fn budgets_and_cron_jobs_are_described() {
    with_kubectl_from(22, |s| {
        s.ok("create pdb b --selector=app=web --min-available=1");
        s.run("describe pdb b").mentions(&[
            "Min available:  1",
            "Selector:  app=web",
            "Allowed disruptions:  0",
        ]);
        s.ok("create cronjob cj --image=x --schedule='* * * * *'");
        s.run("describe cronjob cj").mentions(&[
            "Schedule:  * * * * *",
            "Concurrency Policy:  Allow",
            "Suspend:  False",
        ]);
    });
}
