//! `set`.

use crate::session::with_every_kubectl;

#[test]
#[ignore = "tier: tools"]
fn parts_of_the_template_are_set() {
    with_every_kubectl(|s| {
        s.ok("create deployment web --image=x:1");
        s.run("set image deploy/web x=x:2")
            .says("deployment.apps/web image updated");
        s.run("set env deploy/web FOO=bar")
            .says("deployment.apps/web env updated");
        s.run("set env deploy/web --list")
            .says("# Deployment web, container x\nFOO=bar");
        s.run("set resources deploy web --limits=cpu=400m,memory=256Mi --requests=cpu=100m")
            .says("deployment.apps/web resource requirements updated");
        s.run("set serviceaccount deploy web bot")
            .says("deployment.apps/web serviceaccount updated");
        s.run(
            "get deploy web -o jsonpath='{.spec.template.spec.containers[0].resources} \
               {.spec.template.spec.serviceAccountName}'",
        )
        .says(
            "{\"limits\":{\"cpu\":\"400m\",\"memory\":\"256Mi\"},\
                 \"requests\":{\"cpu\":\"100m\"}} bot",
        );
        s.run("set image deploy/web nope=x:3")
            .fails("error: unable to find container named \"nope\"");
        s.run("set resources deploy web --limits=cpu=0").fails(
            "error: failed to patch resources update to pod template Deployment.apps \"web\" is \
             invalid: spec.template.spec.containers[0].resources.requests: Invalid value: \
             \"100m\": must be less than or equal to cpu limit of 0",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn subjects_and_selectors_are_set() {
    with_every_kubectl(|s| {
        s.ok("create role r --verb=get --resource=pods");
        s.ok("create rolebinding rb --role=r --user=alice");
        s.run("set subject rolebinding rb --user=bob")
            .says("rolebinding.rbac.authorization.k8s.io/rb subjects updated");
        s.run("get rolebinding rb -o jsonpath='{.subjects[*].name}'")
            .says("alice bob");
        s.ok("create service clusterip svc --tcp=80");
        s.run("set selector service svc app=web")
            .says("service/svc selector updated");
        s.run("get svc svc -o jsonpath={.spec.selector}")
            .says("{\"app\":\"web\"}");
    });
}
