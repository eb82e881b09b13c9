use std::collections::HashMap;

use serde_json::{Value, json};

use super::*;
use crate::auth::Objects;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::identity::User;

fn resource<'a>(verb: &'a str, group: &'a str, what: &'a str, name: &'a str) -> Attributes<'a> {
    in_namespace("ns", verb, group, what, name)
}

fn in_namespace<'a>(
    namespace: &'a str,
    verb: &'a str,
    group: &'a str,
    what: &'a str,
    name: &'a str,
) -> Attributes<'a> {
    let (resource, subresource) = what.split_once('/').unwrap_or((what, ""));
    let resource = Resource {
        group,
        resource,
        subresource,
        namespace,
        name,
        ..Resource::default()
    };
    Attributes::resource(verb, resource)
}

/// Adds an object; its kind is in it.
fn put(policy: &mut Policy, object: Value) {
    let kind = match object["kind"].as_str().unwrap() {
        "ClusterRole" => PolicyKind::ClusterRole,
        "Role" => PolicyKind::Role,
        "ClusterRoleBinding" => PolicyKind::ClusterRoleBinding,
        _ => PolicyKind::RoleBinding,
    };
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap();
    policy
        .observe(kind, namespace, name, Some(&object))
        .unwrap();
}

fn cluster_role(name: &str, rules: Value) -> Value {
    json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name}, "rules": rules})
}

fn role(name: &str, rules: Value) -> Value {
    json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name, "namespace": "ns"}, "rules": rules})
}

fn cluster_binding(name: &str, role: &str, subjects: Value) -> Value {
    json!({"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name}, "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}})
}

fn binding(name: &str, kind: &str, role: &str, subjects: Value) -> Value {
    json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name, "namespace": "ns"}, "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}})
}

fn user_subject(name: &str) -> Value {
    json!([{"apiGroup": GROUP, "kind": "User", "name": name}])
}

fn read_pods() -> Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])
}

fn standard() -> Policy {
    let mut policy = Policy::default();
    let standard = Standard::new();
    for change in reconcile(&standard, &World::default()) {
        let Change::Create(_, object) = change else {
            panic!("{change:?}");
        };
        put(&mut policy, object);
    }
    policy
}

fn allows(rule: Value, attributes: &Attributes<'_>) -> bool {
    rule_allows(&serde_json::from_value(rule).unwrap(), attributes)
}

#[test]
fn rule_allows_only_its_resources_and_verbs() {
    let rule = |resources: Value| {
        json!({"apiGroups": ["apps"], "resources": resources,
        "verbs": ["get"]})
    };
    let get = |what| resource("get", "apps", what, "web");
    let cases = [
        (json!(["deployments"]), get("deployments"), true),
        (json!(["deployments"]), get("deployments/scale"), false),
        (json!(["deployments/scale"]), get("deployments/scale"), true),
        (json!(["deployments/scale"]), get("deployments"), false),
        (json!(["*/scale"]), get("deployments/scale"), true),
        (json!(["*/scale"]), get("deployments/status"), false),
        (json!(["*/scale"]), get("scale"), false),
        (json!(["*"]), get("deployments/scale"), true),
        (json!(["deployments/"]), get("deployments"), false),
        (
            json!(["deployments"]),
            resource("list", "apps", "deployments", ""),
            false,
        ),
        (
            json!(["deployments"]),
            resource("get", "", "deployments", ""),
            false,
        ),
        (
            json!(["deployments"]),
            Attributes::path("get", "deployments"),
            false,
        ),
    ];
    for (resources, attributes, expected) in cases {
        let found = allows(rule(resources.clone()), &attributes);
        assert_eq!(found, expected, "{resources} {attributes:?}");
    }
}

#[test]
fn resource_names_restrict_a_rule() {
    let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"],
        "resourceNames": ["web"]});
    assert!(allows(rule.clone(), &resource("get", "", "pods", "web")));
    assert!(!allows(rule.clone(), &resource("get", "", "pods", "db")));
    // The name of a new object is not known.
    assert!(!allows(rule, &resource("create", "", "pods", "")));
}

#[test]
fn trailing_star_matches_the_rest_of_a_path() {
    let rule = |urls: Value| json!({"nonResourceURLs": urls, "verbs": ["get"]});
    let get = |path| Attributes::path("get", path);
    let cases = [
        (json!(["/healthz"]), get("/healthz"), true),
        (json!(["/healthz"]), get("/healthz/x"), false),
        (json!(["/healthz/*"]), get("/healthz/x/y"), true),
        (json!(["/healthz/*"]), get("/healthz"), false),
        (json!(["/h*z"]), get("/healthz"), false),
        (json!(["*"]), get("/anything"), true),
        (json!(["*"]), Attributes::path("post", "/anything"), false),
        (json!(["*"]), resource("get", "", "pods", ""), false),
    ];
    for (urls, attributes, expected) in cases {
        assert_eq!(
            allows(rule(urls.clone()), &attributes),
            expected,
            "{urls} {attributes:?}"
        );
    }
}

#[test]
fn bindings_apply_to_their_scope_and_subjects() {
    let mut policy = Policy::default();
    put(&mut policy, cluster_role("reader", read_pods()));
    put(&mut policy, role("reader", read_pods()));
    put(
        &mut policy,
        cluster_binding("everywhere", "reader", user_subject("admin")),
    );
    let subjects = json!([
        {"kind": "Group", "name": "dev", "apiGroup": GROUP},
        {"kind": "ServiceAccount", "name": "bot", "namespace": "other"},
        {"kind": "ServiceAccount", "name": "own"},
    ]);
    put(&mut policy, binding("here", "Role", "reader", subjects));

    let bot = "system:serviceaccount:other:bot";
    let own = "system:serviceaccount:ns:own";
    let cases: [(&str, &[&str], &str, &str); 7] = [
        (
            "admin",
            &[],
            "",
            "ClusterRoleBinding \"everywhere\" of ClusterRole \"reader\" to User \"admin\"",
        ),
        (
            "admin",
            &[],
            "ns",
            "ClusterRoleBinding \"everywhere\" of ClusterRole \"reader\" to User \"admin\"",
        ),
        (
            "eve",
            &["x", "dev"],
            "ns",
            "RoleBinding \"here/ns\" of Role \"reader\" to Group \"dev\"",
        ),
        ("eve", &["dev"], "", ""),
        (
            bot,
            &[],
            "ns",
            "RoleBinding \"here/ns\" of Role \"reader\" to ServiceAccount \"bot/other\"",
        ),
        (
            own,
            &[],
            "ns",
            "RoleBinding \"here/ns\" of Role \"reader\" to ServiceAccount \"own/ns\"",
        ),
        ("dev", &[], "ns", ""),
    ];
    for (name, groups, namespace, expected) in cases {
        let attributes = in_namespace(namespace, "list", "", "pods", "");
        let found = policy.allows(&User::new(name, groups), &attributes);
        let found = found.map(|grant| grant.to_string()).unwrap_or_default();
        assert_eq!(found, expected, "{name} in {namespace}");
    }
}

#[test]
fn a_grant_names_the_first_subject_that_is_the_user() {
    let mut policy = Policy::default();
    put(&mut policy, cluster_role("reader", read_pods()));
    let subjects = json!([
        {"kind": "Group", "name": "b"}, {"kind": "Group", "name": "a"}, {"kind": "User", "name": "u"},
    ]);
    put(&mut policy, cluster_binding("x", "reader", subjects));
    let grant = policy.allows(
        &User::new("u", &["a", "b"]),
        &resource("get", "", "pods", "p"),
    );
    let text = grant.unwrap().to_string();
    assert_eq!(
        text,
        "ClusterRoleBinding \"x\" of ClusterRole \"reader\" to Group \"b\""
    );
}

#[test]
fn removed_or_changed_objects_grant_nothing() {
    let mut policy = Policy::default();
    let alice = User::new("alice", &[]);
    let get = resource("get", "", "pods", "p");
    put(&mut policy, role("reader", read_pods()));
    put(
        &mut policy,
        binding("b", "Role", "reader", user_subject("alice")),
    );
    assert!(policy.allows(&alice, &get).is_ok());
    put(
        &mut policy,
        binding("b", "Role", "reader", user_subject("bob")),
    );
    assert_eq!(policy.allows(&alice, &get), Err(String::new()));
    assert!(policy.allows(&User::new("bob", &[]), &get).is_ok());
    policy
        .observe(PolicyKind::RoleBinding, "ns", "b", None)
        .unwrap();
    assert!(policy.allows(&User::new("bob", &[]), &get).is_err());
    put(
        &mut policy,
        binding("b", "Role", "reader", user_subject("alice")),
    );
    let broken = json!({"roleRef": 1});
    let error = policy
        .observe(PolicyKind::RoleBinding, "ns", "b", Some(&broken))
        .unwrap_err();
    assert_eq!(error.to_string(), "RoleBinding b cannot be read");
    assert!(policy.allows(&alice, &get).is_err());
}

#[test]
fn denial_names_missing_roles() {
    let mut policy = Policy::default();
    put(
        &mut policy,
        cluster_binding("a", "gone", user_subject("alice")),
    );
    let get = resource("get", "", "pods", "p");
    let alice = User::new("alice", &[]);
    assert_eq!(
        policy.allows(&alice, &get),
        Err("RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found".to_owned())
    );
    put(
        &mut policy,
        binding("b", "Role", "lost", user_subject("alice")),
    );
    assert_eq!(
        policy.allows(&alice, &get),
        Err(
            "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, \
             role.rbac.authorization.k8s.io \"lost\" not found]"
                .to_owned()
        )
    );
}

#[test]
fn all_default_roles_exist() {
    let standard = Standard::new();
    assert_eq!(standard.cluster_roles.len(), 69);
    assert_eq!(standard.cluster_role_bindings.len(), 50);
    assert_eq!((standard.roles.len(), standard.role_bindings.len()), (7, 7));
    assert_eq!(node_rules().len(), 25);
}

#[test]
fn default_users_have_upstream_permissions() {
    let policy = standard();
    let may = |name: &str, groups: &[&str], attributes: &Attributes<'_>| {
        policy.allows(&User::new(name, groups), attributes).is_ok()
    };
    let anonymous = ["system:unauthenticated"];
    assert!(may(
        "system:anonymous",
        &anonymous,
        &Attributes::path("get", "/healthz")
    ));
    assert!(may(
        "system:anonymous",
        &anonymous,
        &Attributes::path("get", "/version")
    ));
    assert!(!may(
        "system:anonymous",
        &anonymous,
        &Attributes::path("get", "/api")
    ));
    assert!(!may(
        "system:anonymous",
        &anonymous,
        &resource("list", "", "pods", "")
    ));
    let authenticated = ["system:authenticated"];
    assert!(may(
        "alice",
        &authenticated,
        &Attributes::path("get", "/apis/apps/v1")
    ));
    let review = in_namespace(
        "",
        "create",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "",
    );
    assert!(may("alice", &authenticated, &review));
    assert!(!may(
        "alice",
        &authenticated,
        &resource("list", "", "pods", "")
    ));
    let scheduler = "system:kube-scheduler";
    assert!(may(
        scheduler,
        &[],
        &resource("create", "", "pods/binding", "p")
    ));
    assert!(!may(scheduler, &[], &resource("create", "", "pods", "")));
    let lease = in_namespace(
        "kube-system",
        "get",
        "coordination.k8s.io",
        "leases",
        "kube-scheduler",
    );
    assert!(may(scheduler, &[], &lease));
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    assert!(may(collector, &[], &resource("delete", "x", "y", "z")));
    assert!(may(
        "system:kube-controller-manager",
        &[],
        &resource("list", "x", "y", "")
    ));
}

#[test]
fn admin_aggregates_edit_and_edit_aggregates_view() {
    let mut policy = standard();
    put(
        &mut policy,
        binding("b", "ClusterRole", "admin", user_subject("alice")),
    );
    put(
        &mut policy,
        binding("c", "ClusterRole", "view", user_subject("bob")),
    );
    let may = |name: &str, attributes: &Attributes<'_>| {
        policy.allows(&User::new(name, &[]), attributes).is_ok()
    };
    assert!(may("alice", &resource("list", "", "limitranges", "")));
    assert!(may("alice", &resource("create", "", "pods", "")));
    assert!(may("alice", &resource("create", GROUP, "rolebindings", "")));
    assert!(!may("alice", &resource("create", "", "resourcequotas", "")));
    assert!(may("bob", &resource("list", "", "pods", "")));
    assert!(!may("bob", &resource("list", "", "secrets", "")));
    let stale: Vec<&str> = policy
        .stale_aggregated_roles()
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(stale, ["admin", "edit", "view"]);
}

#[test]
fn aggregation_takes_effect_at_once_and_cycles_end() {
    let mut policy = standard();
    put(
        &mut policy,
        binding("c", "ClusterRole", "view", user_subject("bob")),
    );
    let bob = User::new("bob", &[]);
    let list = resource("list", "acme.io", "widgets", "");
    assert!(policy.allows(&bob, &list).is_err());
    let widgets = json!([{"apiGroups": ["acme.io"], "resources": ["widgets"], "verbs": ["list"]}]);
    let mut part = cluster_role("widgets", widgets);
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    put(&mut policy, part);
    assert!(policy.allows(&bob, &list).is_ok());

    let gatherer = |name: &str, own: &str, other: &str| {
        json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": {own: "y"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {other: "y"}}]}})
    };
    put(&mut policy, gatherer("view", "one", "two"));
    put(&mut policy, gatherer("round", "two", "one"));
    assert!(policy.allows(&bob, &list).is_err());
}

fn write<'a>(kind: PolicyKind, object: &'a Value, old: Option<&'a Value>) -> PolicyWrite<'a> {
    let is_local = matches!(kind, PolicyKind::Role | PolicyKind::RoleBinding);
    PolicyWrite {
        kind,
        namespace: if is_local { "ns" } else { "" },
        name: old.map_or("", |old| old["metadata"]["name"].as_str().unwrap()),
        object,
        old,
    }
}

/// Alice reads pods in the namespace `ns` and nothing else.
fn alices_policy() -> (Policy, User) {
    let mut policy = Policy::default();
    put(&mut policy, role("reader", read_pods()));
    put(
        &mut policy,
        binding("b", "Role", "reader", user_subject("alice")),
    );
    (policy, User::new("alice", &["dev", "system:authenticated"]))
}

#[test]
fn users_cannot_grant_more_than_they_have() {
    let (policy, alice) = alices_policy();
    let fine = role(
        "mine",
        json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    );
    assert_eq!(
        check_write(&policy, &alice, &write(PolicyKind::Role, &fine, None)),
        Ok(())
    );
    let more = role(
        "more",
        json!([
            {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"], "resourceNames": ["x"]},
        ]),
    );
    let refusal = check_write(&policy, &alice, &write(PolicyKind::Role, &more, None)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"dev\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"x\"], Verbs:[\"delete\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}"
    );
    let masters = User::new("root", &["system:masters"]);
    assert_eq!(
        check_write(&policy, &masters, &write(PolicyKind::Role, &more, None)),
        Ok(())
    );
}

#[test]
fn bindings_are_checked_like_their_roles() {
    let (mut policy, alice) = alices_policy();
    put(
        &mut policy,
        cluster_role(
            "cluster-admin",
            json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
        ),
    );
    let check = |policy: &Policy, object: &Value| {
        let write = write(PolicyKind::RoleBinding, object, None);
        check_write(policy, &alice, &write).map_err(|refusal| refusal.to_string())
    };
    let fine = binding("x", "Role", "reader", user_subject("bob"));
    assert_eq!(check(&policy, &fine), Ok(()));
    let more = binding("x", "ClusterRole", "cluster-admin", user_subject("bob"));
    assert_eq!(
        check(&policy, &more).unwrap_err(),
        "rolebindings.rbac.authorization.k8s.io \"x\" is forbidden: user \"alice\" (groups=[\"dev\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
         {NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
    );
    let lost = binding("x", "Role", "gone", user_subject("bob"));
    let refusal = "roles.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(check(&policy, &lost).unwrap_err(), refusal);

    // The verb `bind` grants the permission.
    put(
        &mut policy,
        role(
            "binder",
            json!([{"apiGroups": [GROUP], "resources": ["clusterroles"],
        "verbs": ["bind"], "resourceNames": ["cluster-admin"]}]),
        ),
    );
    put(
        &mut policy,
        binding("binder", "Role", "binder", user_subject("alice")),
    );
    assert_eq!(check(&policy, &more), Ok(()));
    let everywhere = cluster_binding("x", "cluster-admin", user_subject("bob"));
    let write = write(PolicyKind::ClusterRoleBinding, &everywhere, None);
    assert!(check_write(&policy, &alice, &write).is_err());
}

#[test]
fn escalation_rules_for_escalate_verb_aggregation_and_garbage_collector() {
    let (mut policy, alice) = alices_policy();
    let more = role(
        "more",
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
    );
    let mut collected = more.clone();
    collected["metadata"]["finalizers"] = json!([]);
    collected["metadata"]["ownerReferences"] = json!([]);
    let only_collected = write(PolicyKind::Role, &collected, Some(&more));
    assert_eq!(check_write(&policy, &alice, &only_collected), Ok(()));
    collected["metadata"]["labels"] = json!({"a": "b"});
    let labelled = write(PolicyKind::Role, &collected, Some(&more));
    assert!(check_write(&policy, &alice, &labelled).is_err());

    let gatherer = json!({"kind": "ClusterRole", "metadata": {"name": "g"},
        "aggregationRule": {"clusterRoleSelectors": [{}]}});
    let gathering = write(PolicyKind::ClusterRole, &gatherer, None);
    assert_eq!(
        check_write(&policy, &alice, &gathering)
            .unwrap_err()
            .to_string(),
        "clusterroles.rbac.authorization.k8s.io \"g\" is forbidden: must have cluster-admin \
         privileges to use the aggregationRule"
    );

    put(
        &mut policy,
        role(
            "escalator",
            json!([{"apiGroups": [GROUP], "resources": ["roles"],
        "verbs": ["escalate"]}]),
        ),
    );
    put(
        &mut policy,
        binding("escalator", "Role", "escalator", user_subject("alice")),
    );
    assert_eq!(
        check_write(&policy, &alice, &write(PolicyKind::Role, &more, None)),
        Ok(())
    );
}

#[test]
fn subresource_and_path_wildcards_cover() {
    let mut policy = Policy::default();
    put(
        &mut policy,
        cluster_role(
            "r",
            json!([
                {"apiGroups": ["*"], "resources": ["*/status"], "verbs": ["get"]},
                {"nonResourceURLs": ["/a/*"], "verbs": ["*"]},
            ]),
        ),
    );
    put(
        &mut policy,
        cluster_binding("b", "r", user_subject("alice")),
    );
    let alice = User::new("alice", &[]);
    let check = |rules: Value| {
        let object = cluster_role("new", rules);
        check_write(
            &policy,
            &alice,
            &write(PolicyKind::ClusterRole, &object, None),
        )
        .is_ok()
    };
    assert!(check(
        json!([{"apiGroups": ["apps"], "resources": ["x/status"], "verbs": ["get"]}])
    ));
    assert!(!check(
        json!([{"apiGroups": ["apps"], "resources": ["x"], "verbs": ["get"]}])
    ));
    assert!(check(
        json!([{"apiGroups": ["a"], "resources": ["x/status"], "verbs": ["get"],
        "resourceNames": ["n"]}])
    ));
    assert!(check(
        json!([{"nonResourceURLs": ["/a/b", "/a/b*"], "verbs": ["get"]}])
    ));
    assert!(!check(
        json!([{"nonResourceURLs": ["/a"], "verbs": ["get"]}])
    ));
}

/// Objects by plural name, namespace and name.
#[derive(Default)]
struct World(HashMap<(String, String, String), Value>);

impl Objects for World {
    fn object(&self, _: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.0.get(&key).cloned()
    }
}

impl World {
    fn apply(&mut self, change: &Change) {
        let (Change::Create(kind, object)
        | Change::Update(kind, object)
        | Change::Recreate(kind, object)) = change;
        let part = |part: &str| {
            object["metadata"][part]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let key = (kind.resource().to_owned(), part("namespace"), part("name"));
        self.0.insert(key, object.clone());
    }

    fn at(&mut self, resource: &str, name: &str) -> &mut Value {
        let key = (resource.to_owned(), String::new(), name.to_owned());
        self.0.get_mut(&key).unwrap()
    }
}

#[test]
fn reconciling_adds_missing_rules_and_keeps_added_ones() {
    let standard = Standard::new();
    let mut world = World::default();
    let changes = reconcile(&standard, &world);
    assert_eq!(changes.len(), 69 + 50 + 7 + 7);
    assert!(
        changes
            .iter()
            .all(|change| matches!(change, Change::Create(..)))
    );
    changes.iter().for_each(|change| world.apply(change));
    assert_eq!(reconcile(&standard, &world), []);

    // Rules that the aggregation controller writes do not count as a difference.
    world.at("clusterroles", "view")["rules"] = read_pods();
    let own = json!({"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]});
    world.at("clusterroles", "system:kube-dns")["rules"] = json!([own]);
    world.at("clusterrolebindings", "system:kube-dns")["roleRef"]["name"] = json!("other");
    world.at("clusterrolebindings", "system:discovery")["subjects"] = json!([]);
    let protected = world.at("clusterroles", "system:discovery");
    protected["rules"] = json!([]);
    protected["metadata"]["annotations"] =
        json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});

    let changes = reconcile(&standard, &world);
    let [
        Change::Update(_, role),
        Change::Update(_, subjects),
        Change::Recreate(_, binding),
    ] = changes.as_slice()
    else {
        panic!("{changes:?}");
    };
    assert_eq!(role["rules"].as_array().unwrap().len(), 1 + 4);
    assert_eq!(role["rules"][0], own);
    assert_eq!(subjects["subjects"][0]["name"], "system:authenticated");
    assert_eq!(binding["roleRef"]["name"], "system:kube-dns");
    changes.iter().for_each(|change| world.apply(change));
    assert_eq!(reconcile(&standard, &world), []);
}

#[test]
fn rules_review_separates_resource_and_non_resource_rules() {
    let mut policy = standard();
    put(&mut policy, role("reader", read_pods()));
    put(
        &mut policy,
        binding("b", "Role", "reader", user_subject("alice")),
    );
    put(
        &mut policy,
        binding("c", "Role", "gone", user_subject("alice")),
    );
    let alice = User::new("alice", &["system:authenticated"]);
    let found = rules_review(&policy, &alice, "ns");
    let found = serde_json::to_value(found).unwrap();
    let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
    assert!(
        found["resourceRules"].as_array().unwrap().contains(&pods),
        "{found}"
    );
    let version = json!({"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version",
        "/version/"], "verbs": ["get"]});
    assert!(
        found["nonResourceRules"]
            .as_array()
            .unwrap()
            .contains(&version),
        "{found}"
    );
    assert_eq!(found["incomplete"], false);
    let error = "role.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(found["evaluationError"], error);

    let kubelet = User::new("system:node:n1", &["system:nodes"]);
    let found = rules_review(&policy, &kubelet, "ns");
    assert!(found.incomplete);
    let error = "node authorizer does not support user rule resolution";
    assert_eq!(found.evaluation_error.as_deref(), Some(error));
}
