//! Events in both encodings.

use crate::session::{Session, with_every_kubectl, with_kubectl_from};

/// An event of each group about a pod.
fn events(s: &Session) {
    s.ok("run p --image=x");
    let uid = s.unmasked("get pod p -o jsonpath={.metadata.uid}");
    s.create(&format!(
        "{{apiVersion: v1, kind: Event, metadata: {{name: e1}}, \
          involvedObject: {{apiVersion: v1, kind: Pod, name: p, namespace: $NS, uid: {uid}}}, \
          reason: Scheduled, message: it has a place, type: Normal, count: 3, \
          source: {{component: default-scheduler}}, \
          firstTimestamp: '2026-01-01T10:00:00Z', lastTimestamp: '2026-01-01T10:00:00Z'}}"
    ));
    s.create(&format!(
        "{{apiVersion: events.k8s.io/v1, kind: Event, metadata: {{name: e2}}, \
          regarding: {{apiVersion: v1, kind: Pod, name: p, namespace: $NS, uid: {uid}}}, \
          reason: Failed, note: it failed, type: Warning, action: Binding, \
          reportingController: me, reportingInstance: me-1, \
          eventTime: '2026-01-01T10:00:00.000000Z'}}"
    ));
}

/// The lines without the first column, which depends on the day.
fn without_age(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split_once("  ").map_or("", |(_, rest)| rest));
    lines.map(str::to_owned).collect()
}

#[test]
#[ignore = "tier: tools"]
fn both_encodings_are_one_list() {
    with_every_kubectl(|s| {
        events(s);
        for list in ["events", "events.v1.events.k8s.io"] {
            let text = s.ok(&format!("get {list}"));
            assert_eq!(
                without_age(&text),
                [
                    "TYPE  REASON  OBJECT  MESSAGE",
                    "Normal  Scheduled  pod/p  it has a place",
                    "Warning  Failed  pod/p  it failed",
                ]
            );
        }
        let text = s.ok("get events --field-selector reason=Failed,type!=Normal");
        assert_eq!(
            without_age(&text)[1..],
            ["Warning  Failed  pod/p  it failed"]
        );
        s.run("get events --sort-by=.reason -o name")
            .says("event/e2\nevent/e1");
    });
}

#[test]
#[ignore = "tier: tools"]
fn descriptions_end_with_events() {
    with_every_kubectl(|s| {
        events(s);
        s.run("describe pod p")
            .mentions(&["default-scheduler  it has a place", "(x3 over "]);
    });
}

/// The command is of 1.26.
#[test]
#[ignore = "tier: tools"]
fn events_command_filters_by_object() {
    with_kubectl_from(26, |s| {
        events(s);
        s.run("events --for pod/p --types=Warning")
            .mentions(&["Warning  Failed  Pod/p  it failed"]);
        s.run("events --for pod/other")
            .mentions(&["No events found in NS namespace."]);
    });
}
