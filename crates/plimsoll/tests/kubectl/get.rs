//! `get`: lists, columns, selectors and the forms of output.

use crate::session::{Session, with_every_kubectl};

fn pods(session: &Session) {
    session.ok("run web --image=x:1 --labels=app=web,tier=front --restart=Never");
    session.ok("run api --image=y:2 --labels=app=api --restart=Never");
}

#[test]
#[ignore = "tier: tools"]
fn empty_lists_print_no_resources_found() {
    with_every_kubectl(|s| {
        s.run("get pods")
            .remarks("No resources found in NS namespace.");
        s.run("get all")
            .remarks("No resources found in NS namespace.");
        s.run("get limitranges -o wide")
            .remarks("No resources found in NS namespace.");
        s.run("get pods -l app=none --no-headers")
            .remarks("No resources found in NS namespace.");
    });
}

#[test]
#[ignore = "tier: tools"]
fn pods_have_the_columns_of_kubectl() {
    with_every_kubectl(|s| {
        pods(s);
        s.run("get pods").says(
            "NAME  READY  STATUS  RESTARTS  AGE\n\
             api  0/1  Pending  0  AGE\n\
             web  0/1  Pending  0  AGE",
        );
        s.run("get pod web -o wide").says(
            "NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES\n\
             web  0/1  Pending  0  AGE  <none>  <none>  <none>  <none>",
        );
        s.run("get pod/web --show-labels").says(
            "NAME  READY  STATUS  RESTARTS  AGE  LABELS\n\
             web  0/1  Pending  0  AGE  app=web,tier=front",
        );
        s.run("get pods -L tier --no-headers").says(
            "api  0/1  Pending  0  AGE\n\
             web  0/1  Pending  0  AGE  front",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn lists_are_sorted_by_sort_by() {
    with_every_kubectl(|s| {
        pods(s);
        s.run("get pods --sort-by='{.spec.containers[0].image}'")
            .says(
                "NAME  READY  STATUS  RESTARTS  AGE\n\
             web  0/1  Pending  0  AGE\n\
             api  0/1  Pending  0  AGE",
            );
        s.run("get pods --sort-by=.metadata.name -o name")
            .says("pod/api\npod/web");
    });
}

#[test]
#[ignore = "tier: tools"]
fn selectors_choose() {
    with_every_kubectl(|s| {
        pods(s);
        for (selector, found) in [
            ("-l app=web", "pod/web"),
            ("-l app!=web", "pod/api"),
            ("-l 'app in (web,api)'", "pod/api\npod/web"),
            ("-l 'app notin (web)'", "pod/api"),
            ("-l tier", "pod/web"),
            ("-l '!tier'", "pod/api"),
            ("--field-selector metadata.name=api", "pod/api"),
            (
                "--field-selector status.phase!=Running,metadata.name!=api",
                "pod/web",
            ),
            ("--field-selector spec.nodeName=none", ""),
        ] {
            s.run(&format!("get pods -o name {selector}")).says(found);
        }
    });
}

#[test]
#[ignore = "tier: tools"]
fn output_takes_every_form() {
    with_every_kubectl(|s| {
        pods(s);
        s.run("get pods -o name").says("pod/api\npod/web");
        s.run("get pod web -o jsonpath='{.spec.containers[*].image} {.status.qosClass}'")
            .says("x:1 BestEffort");
        s.run("get pods -o custom-columns=N:.metadata.name,IMAGE:.spec.containers[0].image")
            .says("N  IMAGE\napi  y:2\nweb  x:1");
        s.run("get pods -o go-template='{{range .items}}{{.metadata.name}};{{end}}'")
            .says("api;web;");
        s.run("get pod web -o yaml").mentions(&[
            "apiVersion: v1\nkind: Pod\nmetadata:",
            "  dnsPolicy: ClusterFirst",
            "    terminationMessagePath: /dev/termination-log",
            "status:\n  phase: Pending\n  qosClass: BestEffort",
        ]);
        let list: serde_json::Value =
            serde_json::from_str(&s.unmasked("get pods -o json")).unwrap();
        assert_eq!(list["kind"], "List");
        assert_eq!(list["items"][1]["metadata"]["name"], "web");
        assert_eq!(list["items"][1]["kind"], "Pod");
    });
}

#[test]
#[ignore = "tier: tools"]
fn several_kinds_are_printed_as_several_tables() {
    with_every_kubectl(|s| {
        s.ok("create configmap cm --from-literal=a=1 --from-literal=b=2");
        s.ok("create secret generic se --from-literal=a=1");
        s.ok("create deployment d --image=x:1");
        s.run("get cm/cm secret/se deploy/d").says(
            "NAME  DATA  AGE\n\
             configmap/cm  2  AGE\n\
             \n\
             NAME  TYPE  DATA  AGE\n\
             secret/se  Opaque  1  AGE\n\
             \n\
             NAME  READY  UP-TO-DATE  AVAILABLE  AGE\n\
             deployment.apps/d  0/1  0  0  AGE",
        );
        s.run("get deploy d -o wide").says(
            "NAME  READY  UP-TO-DATE  AVAILABLE  AGE  CONTAINERS  IMAGES  SELECTOR\n\
             d  0/1  0  0  AGE  x  x:1  app=d",
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn lists_in_chunks_are_whole() {
    with_every_kubectl(|s| {
        for number in 1..=5 {
            s.ok(&format!("create configmap c{number} --from-literal=a=b"));
        }
        s.run("get cm -o name --chunk-size=2")
            .mentions(&["configmap/c1\nconfigmap/c2\nconfigmap/c3\nconfigmap/c4\nconfigmap/c5"]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn a_missing_object_does_not_hide_the_others() {
    with_every_kubectl(|s| {
        pods(s);
        let printed = s.run("get pods web nope");
        assert_eq!(
            printed.stdout,
            "NAME  READY  STATUS  RESTARTS  AGE\nweb  0/1  Pending  0  AGE"
        );
        printed.fails("Error from server (NotFound): pods \"nope\" not found");
    });
}

#[test]
#[ignore = "tier: tools"]
fn raw_paths_are_passed_through() {
    with_every_kubectl(|s| {
        s.run("get --raw /readyz").says("ok");
        s.run("get --raw /livez/ping").says("ok");
        s.run("get --raw /api/v1/namespaces/$NS/pods").mentions(&[
            "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{",
            "\"items\":[]",
        ]);
        let gone = "Error from server (NotFound): the server could not find the requested resource";
        for path in ["/nope", "/apis/nope.example/v1/things", "/api/v1/things"] {
            s.run(&format!("get --raw {path}")).fails(gone);
        }
        s.run("get --raw /api/v1/namespaces/$NS/pods/nope")
            .fails("Error from server (NotFound): pods \"nope\" not found");
    });
}
