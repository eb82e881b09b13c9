//! `get --watch`.

use crate::session::with_every_kubectl;

#[test]
#[ignore = "tier: tools"]
fn watch_streams_changes() {
    with_every_kubectl(|s| {
        s.ok("run first --image=x --restart=Never");
        let watch = s.start("get pods --watch --output-watch-events");
        watch.wait_for("ADDED  first");
        s.ok("run second --image=x --restart=Never");
        watch.wait_for("ADDED  second");
        s.ok("label pod second a=b");
        s.ok("delete pod first");
        // A pod without a node goes at once, but not without a word.
        let printed = watch.wait_for("DELETED  first");
        assert_eq!(
            printed,
            "EVENT  NAME  READY  STATUS  RESTARTS  AGE\n\
             ADDED  first  0/1  Pending  0  AGE\n\
             ADDED  second  0/1  Pending  0  AGE\n\
             MODIFIED  second  0/1  Pending  0  AGE\n\
             MODIFIED  first  0/1  Terminating  0  AGE\n\
             DELETED  first  0/1  Terminating  0  AGE"
        );
    });
}

#[test]
#[ignore = "tier: tools"]
fn objects_that_stop_matching_are_deleted_from_the_watch() {
    with_every_kubectl(|s| {
        s.ok("run p --image=x --labels=app=web --restart=Never");
        let watch = s.start("get pods --watch-only -l app=web --output-watch-events -v=6");
        watch.wait_for("watch=true");
        s.ok("label pod p app=other --overwrite");
        watch.wait_for("DELETED  p");
        s.ok("label pod p app=web --overwrite");
        watch.wait_for("ADDED  p");
    });
}

#[test]
#[ignore = "tier: tools"]
fn watch_ends_at_its_timeout() {
    with_every_kubectl(|s| {
        s.ok("create configmap c");
        s.run("get --raw '/api/v1/namespaces/$NS/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=c'")
            .mentions(&["{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","]);
        s.run("get --raw '/api/v1/watch/namespaces/$NS/configmaps/c?timeoutSeconds=1'")
            .mentions(&["{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\""]);
    });
}
