use plimsoll_core::config::document;

use super::*;
use crate::kinds;

fn parsed(text: &str) -> Node {
    let parsed = document::parse(text.as_bytes());
    assert_eq!(parsed.problems, []);
    parsed.documents.into_iter().next().unwrap()
}

/// Line, column and text of all problems.
fn problems(text: &str) -> Vec<String> {
    let tree = parsed(text);
    let kind = match recognize(&tree) {
        Recognized::Served(kind) => kind,
        Recognized::Elsewhere(reason) => return vec![reason],
        Recognized::Nothing(problems) => return shown(&tree, &problems),
    };
    let manifest = read(&tree, kind);
    let created = create(&manifest, &Facts::default());
    let mut all = manifest.problems;
    all.extend(created.problems);
    shown(&tree, &all)
}

fn shown(tree: &Node, problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| {
        let at = problem.position.unwrap_or(tree.position_of(&problem.path));
        format!("{}:{} {problem}", at.line, at.column)
    };
    problems.iter().map(line).collect()
}

#[test]
fn every_mistake_of_a_manifest_is_reported_where_it_stands() {
    let found = problems(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: three\n  \
         selector: {matchLabels: {a: b}}\n  tempalte: {}\n  template:\n    \
         metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - name: C\n        \
         image: i\n        command: sh\n        resources: {limits: {memory: 100MB}}\n",
    );
    assert_eq!(
        found,
        [
            "5:13 spec.replicas: Invalid value: \"three\": must be a whole number of 32 bits",
            "7:3 spec.tempalte: Unknown field: did you mean \"template\"?",
            "14:18 spec.template.spec.containers[0].command: Invalid value: \"sh\": must be a list of \
             strings",
            "15:38 spec.template.spec.containers[0].resources.limits.memory: Invalid value: \
             \"100MB\": quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            "12:15 spec.template.spec.containers[0].name: Invalid value: \"C\": a lowercase RFC 1123 \
             label must consist of lower case alphanumeric characters or '-', and must start and end \
             with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ]
    );
}

#[test]
fn what_follows_from_a_mistake_is_not_reported() {
    assert_eq!(
        problems(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {contianers: [{name: c}]}\n"
        ),
        ["4:8 spec.contianers: Unknown field: did you mean \"containers\"?"]
    );
    assert_eq!(
        problems("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: {name: c}}\n"),
        ["4:8 spec.containers: Invalid value: a mapping: must be a list of mappings: Container"]
    );
}

#[test]
fn kinds_and_versions_are_recognized() {
    for (head, expected) in [
        (
            "apiVersion: extensions/v1beta1\nkind: Deployment",
            "1:13 apiVersion: Unsupported value: \"extensions/v1beta1\": Deployment is served as apps/v1",
        ),
        (
            "apiVersion: apps/v1\nkind: Deploymnet",
            "2:7 kind: Invalid value: \"Deploymnet\": no such kind in apps/v1; did you mean \"Deployment\"?",
        ),
        (
            "kind: Pod\napiVersoin: v1",
            "1:1 apiVersion: Required value: is \"apiVersoin\" meant for it?",
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress",
            "Ingress of networking.k8s.io/v1 is not served",
        ),
        (
            "apiVersion: example.com/v1\nkind: Widget",
            "Widget of example.com/v1 is not served",
        ),
    ] {
        assert_eq!(problems(head), [expected], "{head}");
    }
}

#[test]
fn objects_that_nothing_acts_on_have_the_servers_warning() {
    let tree = parsed(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: \
         {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
    );
    let manifest = read(
        &tree,
        kinds::by_kind("v1", "PersistentVolumeClaim").unwrap(),
    );
    let created = create(&manifest, &Facts::default());
    assert_eq!(created.problems, []);
    assert!(
        created
            .warnings
            .iter()
            .any(|warning| warning.contains("nothing acts on it")),
        "{created:?}"
    );
}

/// Whatever is created without a problem is created by the server, and the reverse.
#[test]
fn the_answer_is_that_of_a_create() {
    let pod =
        |spec: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n");
    assert_eq!(
        problems(&pod("{containers: [{name: c, image: i}]}")),
        [""; 0]
    );
    // A class that no file has may exist.
    let classes =
        "{priorityClassName: gold, runtimeClassName: kata, containers: [{name: c, image: i}]}";
    assert_eq!(problems(&pod(classes)), [""; 0]);
    let found = problems(&pod("{}"));
    assert_eq!(found, ["4:1 spec.containers: Required value"]);
    assert!(kinds::by_kind("v1", "Pod").is_some());
}
