//! `plimsoll check` of manifests: what the API server would answer, with every mistake at its place.

use serde_json::Value;

use crate::{Run, plimsoll};

fn check(text: &str) -> Run {
    plimsoll(&["check", "--capacity", "cpu=4,memory=32Gi", "-"], text)
}

/// The findings as `line:column level path: message`.
pub(crate) fn findings(text: &str) -> Vec<String> {
    let run = plimsoll(
        &[
            "check",
            "--capacity",
            "cpu=4,memory=32Gi",
            "-o",
            "json",
            "-",
        ],
        text,
    );
    let report: Value = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", run.transcript()));
    let rows = report["findings"].as_array().expect("findings").iter();
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let fix = match text("fix").as_str() {
            "" => String::new(),
            fix => format!(" ({fix})"),
        };
        format!(
            "{}:{} {} {}: {}{fix}",
            row["line"],
            row["column"],
            text("level"),
            text("path"),
            text("message")
        )
    };
    rows.map(row).collect()
}

fn pod(spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n{spec}")
}

fn container(further: &str) -> String {
    pod(&format!(
        "  containers:\n  - name: main\n    image: app:1\n{further}"
    ))
}

fn job(spec: &str, kind: &str) -> String {
    format!("apiVersion: batch/v1\nkind: {kind}\nmetadata:\n  name: j\nspec:\n{spec}")
}

/// Common mistakes: the manifest, and what is found in it.
#[test]
fn common_mistakes_are_found_at_their_place() {
    let template =
        "    spec:\n      restartPolicy: Never\n      containers: [{name: c, image: i}]\n";
    let table: Vec<(String, &str)> = vec![
        // The server refuses it, though every field is there.
        (
            job(
                "  schedule: 0 3 * *\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          \
                     restartPolicy: Never\n          containers: [{name: c, image: i}]\n",
                "CronJob",
            ),
            "6:13 error spec.schedule: Invalid value: \"0 3 * *\": expected exactly 5 fields, found 4: [0 3 * *]",
        ),
        (
            job(&format!("  template:\n{}", template.replace("Never", "Always")), "Job"),
            "8:22 error spec.template.spec.restartPolicy: Required value: valid values: \
             \"OnFailure\", \"Never\"",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  selecter: {app: a}\n  \
             ports: [{port: 80}]\n"
                .to_owned(),
            "5:3 error spec.selecter: Unknown field: did you mean \"selector\"?",
        ),
        (
            "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n".to_owned(),
            "1:1 error apiVersion: Required value: must be a name such as v1 or apps/v1",
        ),
        (pod("  restartPolicy: Never\n"), "5:1 error spec.containers: Required value"),
        // Wrong indent: the ports belong into the container.
        (
            container("  ports: [{containerPort: 80}]\n"),
            "9:3 error spec.ports: Unknown field: PodSpec has no such field",
        ),
        (
            container("    limits: {cpu: 1}\n"),
            "9:5 error spec.containers[0].limits: Unknown field: Container has no such field; did you mean \
             \"resources.limits\"?",
        ),
        // Wrong types.
        (
            container("    command: sleep\n"),
            "9:14 error spec.containers[0].command: Invalid value: \"sleep\": must be a list of strings \
             (write command: [\"sleep\"])",
        ),
        (
            pod("  containers:\n    name: main\n    image: i\n"),
            "6:3 error spec.containers: Invalid value: a mapping: must be a list of mappings: Container \
             (begin the first line below containers with \"- \")",
        ),
        (
            container("    env:\n    - name: PORT\n      value: 8080\n"),
            "11:14 error spec.containers[0].env[0].value: Invalid value: 8080: must be a string; put it in \
             quotes (write value: \"8080\")",
        ),
        (
            container("    tty: \"yes\"\n"),
            "9:10 error spec.containers[0].tty: Invalid value: \"yes\": must be true or false (write tty: true)",
        ),
        (
            container("    ports:\n    - containerPort: \"80\"\n"),
            "10:22 error spec.containers[0].ports[0].containerPort: Invalid value: \"80\": must be a whole \
             number of 32 bits (write containerPort: 80)",
        ),
        // Kinds and versions.
        (
            "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: d}\n".to_owned(),
            "1:13 error apiVersion: Unsupported value: \"extensions/v1beta1\": Deployment is served as apps/v1",
        ),
        (
            "apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: d}\n".to_owned(),
            "2:7 error kind: Invalid value: \"Deploymnet\": no such kind in apps/v1; did you mean \
             \"Deployment\"?",
        ),
        // Quantities.
        (
            container("    resources:\n      limits:\n        memory: 100MB\n"),
            "11:17 error spec.containers[0].resources.limits.memory: Invalid value: \"100MB\": quantities \
             must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' (write 100Mi \
             or 100M)",
        ),
        (
            container("    resources:\n      limits:\n        memory: 512m\n"),
            "11:17 warning spec.containers[0].resources.limits[memory]: memory 512m is 512 thousandths of a \
             byte (512Mi, or 512M for megabytes of 1000 kilobytes)",
        ),
        (
            container("    resources:\n      requests:\n        cpu: 500\n"),
            "11:14 warning spec.containers[0].resources.requests[cpu]: cpu 500 is 500 cores (500m is 500 \
             thousandths of a core)",
        ),
        (
            container("    resources:\n      requests: {memory: 2Gi}\n      limits: {memory: 1Gi}\n"),
            "10:26 error spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than or \
             equal to memory limit of 1Gi",
        ),
        (
            container("    resource: {limits: {memory: 1Gi}}\n"),
            "9:5 error spec.containers[0].resource: Unknown field: did you mean \"resources\"?",
        ),
        (
            container("    resources: {limit: {memory: 1Gi}}\n"),
            "9:17 error spec.containers[0].resources.limit: Unknown field: did you mean \"limits\"?",
        ),
        // Duplicates.
        (
            pod("  containers:\n  - {name: a, image: i}\n  - {name: a, image: i}\n"),
            "8:12 error spec.containers[1].name: Duplicate value: \"a\"",
        ),
        (
            container("    image: app:2\n"),
            "9:5 error spec.containers[0].image: Duplicate value: \"image\": the key is already set in line 8",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  ports:\n  - {name: a, port: 80}\n  \
             - {name: b, port: 80}\n"
                .to_owned(),
            "7:5 error spec.ports[1]: Duplicate value: ",
        ),
        // Labels, taints, affinity.
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  labels:\n    app: my app\n".to_owned(),
            "6:10 error metadata.labels: Invalid value: \"my app\": a valid label must be an empty string",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec:\n  taints:\n  - key: a\n    \
             effect: NoScheduled\n"
                .to_owned(),
            "7:13 error metadata.taints[0].effect: Unsupported value: \"NoScheduled\": supported values: ",
        ),
        (
            pod(
                "  containers: [{name: c, image: i}]\n  affinity:\n    nodeAffinity:\n      \
                 requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n        \
                 - matchExpressions:\n          - {key: a, operator: in, values: [b]}\n",
            ),
            "12:32 error spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
             nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: \"in\": not a valid selector \
             operator (did you mean \"In\"?)",
        ),
        (
            pod(
                "  containers: [{name: c, image: i}]\n  topologySpreadConstraints:\n  - maxSkew: 1\n    \
                 topologyKey: kubernetes.io/zone\n    whenUnsatisfiable: DoNotSchedule\n    labelSelector: {}\n",
            ),
            "9:18 warning spec.topologySpreadConstraints[0].topologyKey: kubernetes.io/zone is not a label of \
             nodes (did you mean \"topology.kubernetes.io/zone\"?)",
        ),
        // Other kinds.
        (
            "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec:\n  limits:\n  - type: Container\n    \
             min: {memory: 2Gi}\n    max: {memory: 1Gi}\n"
                .to_owned(),
            "7:19 error spec.limits[0].min[memory]: Invalid value: \"2Gi\": min value 2Gi is greater than max \
             value 1Gi",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: \
             b}}\n  template:\n    metadata: {labels: {a: c}}\n    spec: {containers: [{name: c, image: i}]}\n"
                .to_owned(),
            "7:16 error spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match \
             template `labels`",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c_d}\n".to_owned(),
            "3:18 error metadata.name: Invalid value: \"c_d\": a lowercase RFC 1123 subdomain must consist of",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let found = findings(&text);
        if !found.iter().any(|line| line.starts_with(expected)) {
            wrong.push(format!("{text}\nexpected {expected}\nfound    {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A wrong type does not hide what else is wrong.
#[test]
fn a_wrong_type_is_not_the_end() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: D}\nspec:\n  replicas: three\n  \
                paused: maybe\n  selector: {matchLabels: {a: b}}\n  template:\n    \
                metadata: {labels: {a: b}}\n    spec:\n      restartPolicy: Sometimes\n      \
                containers: [{name: c, image: i, command: sh}]\n";
    let found = findings(text);
    let mut paths: Vec<&str> = found
        .iter()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    // The server has two rules about the restart policy of a Deployment.
    paths.dedup();
    assert_eq!(
        paths,
        [
            "metadata.name:",
            "spec.replicas:",
            "spec.paused:",
            "spec.template.spec.restartPolicy:",
            "spec.template.spec.containers[0].command:",
        ],
        "{found:#?}"
    );
}

#[test]
fn manifests_without_mistakes_are_clean() {
    for text in [
        container("    resources: {limits: {cpu: 500m, memory: 64Mi}}\n"),
        // Classes, namespaces and secrets of the cluster are not known, and may exist.
        pod(
            "  priorityClassName: gold\n  runtimeClassName: kata\n  serviceAccountName: web\n  \
             imagePullSecrets: [{name: s}]\n  containers: [{name: c, image: i, envFrom: \
             [{secretRef: {name: s}}]}]\n",
        ),
        "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n  \
         spec: {containers: [{name: c, image: i}]}\n"
            .to_owned(),
    ] {
        assert_eq!(findings(&text), [""; 0], "{text}");
    }
    // Other servers have other kinds.
    let found = findings("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n");
    assert_eq!(
        found,
        ["2:7 info kind: Widget of example.com/v1 is not served"]
    );
}

#[test]
fn the_rules_of_a_namespace_apply_as_on_the_server() {
    let text = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec:\n  limits:\n  - type: Container\n    \
                max: {memory: 1Gi}\n---\n"
        .to_owned()
        + &container("    resources: {limits: {memory: 2Gi}}\n");
    let found = findings(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("maximum memory usage per Container is 1Gi, but limit is 2Gi"),
        "{found:?}"
    );
}

#[test]
fn an_object_that_stands_twice_is_named_with_its_first_place() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n";
    assert_eq!(
        findings(&format!("{map}---\n{map}")),
        ["9:9 warning metadata.name: ConfigMap \"c\" is in -:4 too"]
    );
    let other = map.replace("name: c", "name: c\n  namespace: other");
    assert_eq!(findings(&format!("{map}---\n{other}")), [""; 0]);
}

/// Directories as kubectl reads them.
#[test]
fn directories_are_read_and_with_recursive_those_inside() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    let good = container("");
    write("a.yaml", &good);
    write("b.yml", &good.replace("name: web", "name: b"));
    write("c.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}");
    write("README.md", "no manifest");
    write("below/d.yaml", &good.replace("image", "imgae"));
    let name = folder.path().to_str().expect("UTF-8");
    let run = plimsoll(&["check", name], "");
    assert_eq!(run.code, Some(1), "{}", run.transcript());
    assert!(
        run.stdout
            .ends_with("3 files: 2 errors, 0 warnings, 0 infos\n"),
        "{}",
        run.stdout
    );
    // Files of directories are not described.
    assert!(!run.stdout.contains("QoS class"), "{}", run.stdout);
    let wide = plimsoll(&["check", "-f", name, "-R", "-o", "wide"], "");
    assert!(
        wide.stdout.contains("QoS class BestEffort"),
        "{}",
        wide.stdout
    );
    assert!(
        wide.stdout
            .contains("below/d.yaml:8:5: error: spec.containers[0].imgae: Unknown field"),
        "{}",
        wide.stdout
    );
    assert!(wide.stdout.contains("\n4 files: "), "{}", wide.stdout);
    // One file that is missing does not hide the others.
    let missing = plimsoll(&["check", "-f", name, "no-such.yaml"], "");
    assert!(
        missing
            .stdout
            .contains("no-such.yaml: error: cannot open no-such.yaml")
    );
    assert!(
        missing
            .stdout
            .ends_with("4 files: 3 errors, 0 warnings, 0 infos\n")
    );
    let empty = tempfile::tempdir().expect("a folder");
    let none = plimsoll(&["check", empty.path().to_str().expect("UTF-8")], "");
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr
            .contains("has no files that end in .json, .yaml or .yml")
    );
}

/// The members that SARIF 2.1.0 requires, with the values that it allows.
#[test]
fn sarif_has_the_structure_of_its_standard() {
    let text = container("    imgae: x\n    resources: {limits: {memory: 512m}}\n")
        + "---\napiVersion: example.com/v1\nkind: Widget\n";
    let run = plimsoll(&["check", "-o", "sarif", "-"], &text);
    assert_eq!(run.code, Some(1));
    let log: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .is_some_and(|uri| uri.ends_with("sarif-schema-2.1.0.json"))
    );
    let runs = log["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert_eq!(driver["name"], "plimsoll check");
    assert!(
        driver["informationUri"]
            .as_str()
            .is_some_and(|uri| uri.starts_with("https://"))
    );
    let rules = driver["rules"].as_array().expect("rules");
    for rule in rules {
        assert!(
            rule["id"].is_string() && rule["shortDescription"]["text"].is_string(),
            "{rule}"
        );
    }
    let results = runs[0]["results"].as_array().expect("results");
    let mut levels = Vec::new();
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index");
        let index = usize::try_from(index).expect("a small number");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(
            result["message"]["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "stdin");
        assert!(
            place["region"]["startLine"]
                .as_u64()
                .is_some_and(|line| line >= 1)
        );
        assert!(
            place["region"]["startColumn"]
                .as_u64()
                .is_some_and(|column| column >= 1)
        );
        levels.push(result["level"].as_str().expect("a level"));
    }
    assert_eq!(levels, ["error", "warning", "note"]);
}

#[test]
fn findings_are_lines_that_editors_understand() {
    let run = check(&container(
        "    resources: {limits: {memory: 100MB}}\n    imgae: x\n",
    ));
    let findings = run
        .stdout
        .split_once("\n\n-:")
        .map(|(_, findings)| findings);
    let findings = findings.unwrap_or(&run.stdout);
    insta::assert_snapshot!(findings);
    assert_eq!(run.code, Some(1));
}

/// A template is no manifest yet, and too large a file is not the kubelet's fault.
#[test]
fn files_that_cannot_be_read_are_blamed_on_nothing_else() {
    let template = check("metadata: {{ .Values.meta }}\nspec: {{- x }}\n");
    assert!(
        template.stdout.contains("render the template first"),
        "{}",
        template.transcript()
    );
    let large = check(&" ".repeat(5 << 20));
    assert_eq!(large.code, Some(1));
    assert!(large.stdout.contains("are too many"), "{}", large.stdout);
    assert!(!large.stdout.contains("kubelet"), "{}", large.stdout);
}

#[test]
fn okd_files_are_checked_in_their_own_words() {
    let text = "kind: NodeConfig\napiVersion: v1\nkubeletArguments:\n  eviction-hard:\n  \
                - memory.available<500Mi\n  - nodefs.inodesFree<100Mi\n  eviction-soft:\n  \
                - memory.available<700Mi\n  eviction-soft-grace-period:\n  - memory.available=1m\n";
    let found = findings(text);
    let of = |rule: &str| {
        found
            .iter()
            .find(|line| line.contains(rule))
            .cloned()
            .unwrap_or_default()
    };
    // The second item of the list.
    assert!(
        of("nodefs.inodesFree<100Mi").starts_with("6:5 error kubeletArguments.eviction-hard["),
        "{found:#?}"
    );
    assert!(
        of("soft eviction kills within a second")
            .contains(" kubeletArguments.eviction-max-pod-grace-period: "),
        "{found:#?}"
    );
    let all = found.join("\n");
    for word in [
        "evictionHard",
        "evictionMaxPod",
        "mergeDefaultEvictionSettings",
    ] {
        assert!(!all.contains(word), "{word}: {all}");
    }
}

#[test]
fn a_misspelt_signal_is_corrected() {
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                evictionHard: {nodefs.availble: 10%}\n";
    let found = findings(text);
    assert!(
        found
            .iter()
            .any(|line| line.ends_with("(did you mean \"nodefs.available\"?)")),
        "{found:#?}"
    );
}

#[test]
fn checking_the_machine_creates_no_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let name = data.to_str().expect("UTF-8");
    let run = plimsoll(&["check", "--node", "--data-dir", name], "");
    assert!(run.code.is_some(), "{}", run.transcript());
    assert!(!data.exists(), "{}", run.transcript());
}
