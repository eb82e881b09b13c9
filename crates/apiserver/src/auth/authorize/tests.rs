use serde_json::{Value, json};

use super::*;
use crate::auth::attributes::Resource;
use crate::auth::identity::{NODES, User};
use crate::auth::rbac::GROUP;

fn binding(name: &str, subject: &str, role: &str) -> Value {
    json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": subject}]})
}

fn grant(authorizer: &mut Authorizer, subject: &str, rules: Value) {
    let role = json!({"metadata": {"name": subject}, "rules": rules});
    authorizer
        .observe(GROUP, "clusterroles", "", subject, Some(&role))
        .unwrap();
    let binding = binding(subject, subject, subject);
    authorizer
        .observe(GROUP, "clusterrolebindings", "", subject, Some(&binding))
        .unwrap();
}

fn authorizer(subject: &str, rules: Value) -> Authorizer {
    let mut authorizer = Authorizer::default();
    grant(&mut authorizer, subject, rules);
    authorizer
}

fn pods<'a>(verb: &'a str, name: &'a str) -> Attributes<'a> {
    let resource = Resource {
        resource: "pods",
        namespace: "ns",
        name,
        ..Resource::default()
    };
    Attributes::resource(verb, resource)
}

fn read_pods() -> Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])
}

#[test]
fn masters_are_allowed_everything_and_others_by_roles() {
    let authorizer = authorizer("alice", read_pods());
    let root = User::new("root", &[MASTERS]);
    let allowed = authorizer.authorize(&root, &pods("explode", "p"));
    assert_eq!(allowed, Decision::Allow(AllowReason::Masters));
    let alice = User::new("alice", &[]);
    assert_eq!(authorizer.check(&alice, &pods("list", "")), Ok(()));
    assert_eq!(
        authorizer
            .check(&alice, &pods("delete", "p"))
            .unwrap_err()
            .to_string(),
        "pods \"p\" is forbidden: User \"alice\" cannot delete resource \"pods\" in API group \"\" \
         in the namespace \"ns\""
    );
    assert_eq!(
        authorizer
            .check(&User::anonymous(), &Attributes::path("get", "/"))
            .unwrap_err()
            .to_string(),
        "forbidden: User \"system:anonymous\" cannot get path \"/\""
    );
}

#[test]
fn denial_of_a_kubelet_lists_all_reasons() {
    let mut authorizer = Authorizer::default();
    let binding = binding("b", "system:node:n1", "gone");
    authorizer
        .observe(GROUP, "clusterrolebindings", "", "b", Some(&binding))
        .unwrap();
    let pod = json!({"spec": {"nodeName": "n1"}});
    authorizer
        .observe("", "pods", "ns", "p", Some(&pod))
        .unwrap();
    let kubelet = User::new("system:node:n1", &[NODES]);
    let allowed = authorizer.authorize(&kubelet, &pods("get", "p"));
    assert_eq!(allowed, Decision::Allow(AllowReason::Node));
    assert_eq!(
        authorizer
            .check(&kubelet, &pods("list", ""))
            .unwrap_err()
            .to_string(),
        "pods is forbidden: User \"system:node:n1\" cannot list resource \"pods\" in API group \
         \"\" in the namespace \"ns\": can only list/watch pods with spec.nodeName field \
         selector\nRBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found"
    );
}

fn self_review(authorizer: &Authorizer, review: Value) -> Result<Value, String> {
    let alice = User::new("alice", &[]);
    let review = serde_json::from_value(review).unwrap();
    match review_self(authorizer, &alice, &review) {
        Ok(status) => Ok(serde_json::to_value(status).unwrap()),
        Err(problems) => Err(plimsoll_core::problem::aggregate(&problems)),
    }
}

#[test]
fn reviews_return_the_reason() {
    let authorizer = authorizer("alice", read_pods());
    let ask = |attributes: Value| self_review(&authorizer, json!({ "spec": attributes }));
    let pods = |verb: &str| {
        json!({"resourceAttributes": {"resource": "pods", "namespace": "ns",
        "verb": verb}})
    };
    assert_eq!(
        ask(pods("list")).unwrap(),
        json!({"allowed": true, "reason": "RBAC: allowed by ClusterRoleBinding \"alice\" of \
            ClusterRole \"alice\" to User \"alice\""})
    );
    assert_eq!(ask(pods("delete")).unwrap(), json!({"allowed": false}));
    let path = json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}});
    assert_eq!(ask(path).unwrap(), json!({"allowed": false}));

    let spec = serde_json::from_value(json!({"user": "bob", "groups": ["system:masters"],
        "resourceAttributes": {"resource": "pods", "verb": "get", "namespace": "ns"}}))
    .unwrap();
    let status = review_subject(&authorizer, &Default::default(), &spec).unwrap();
    assert_eq!((status.allowed, status.reason), (true, None));
    let metadata = serde_json::from_value(json!({"namespace": "ns"})).unwrap();
    assert!(review_local(&authorizer, &metadata, &spec).unwrap().allowed);
}

#[test]
fn invalid_selectors_are_ignored_and_reported() {
    let authorizer = Authorizer::default();
    let ask = |selectors: Value| {
        let mut attributes = json!({"resource": "pods", "verb": "list"});
        for (key, value) in selectors.as_object().unwrap() {
            attributes[key] = value.clone();
        }
        let review = json!({"spec": {"resourceAttributes": attributes}});
        self_review(&authorizer, review).map(|status| status["evaluationError"].clone())
    };
    let field = "spec.resourceAttributes.fieldSelector";
    let label = "spec.resourceAttributes.labelSelector";
    assert_eq!(
        ask(json!({"fieldSelector": {"rawSelector": "a=b"}})),
        Ok(Value::Null)
    );
    assert_eq!(
        ask(json!({"fieldSelector": {"rawSelector": "a"}, "labelSelector": {"rawSelector": "!!"}})),
        Ok(json!(format!(
            "{field} ignored due to parse error; {label} ignored due to parse error"
        )))
    );
    let requirements = json!([{"key": "a", "operator": "In", "values": ["b"]},
        {"key": "a", "operator": "Exists"}]);
    assert_eq!(
        ask(json!({"fieldSelector": {"requirements": requirements}})),
        Ok(json!(format!(
            "{field} partially ignored due to parse error"
        )))
    );
    assert_eq!(
        ask(json!({"fieldSelector": {}})),
        Err(format!(
            "{field}.requirements: Required value: when {field} is specified, requirements or \
             rawSelector is required"
        ))
    );
}

#[test]
fn reviews_without_attributes_are_invalid() {
    let authorizer = Authorizer::default();
    let path = json!({"path": "/", "verb": "get"});
    let resource = json!({"resource": "pods", "verb": "get", "namespace": "ns"});
    let cases = [
        (
            json!({"spec": {}}),
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
             resourceAttributes must be specified",
        ),
        (
            json!({"spec": {"resourceAttributes": resource, "nonResourceAttributes": path}}),
            "spec.nonResourceAttributes: Invalid value: {\"path\":\"/\",\"verb\":\"get\"}: cannot \
             be specified in combination with resourceAttributes",
        ),
        (
            json!({"metadata": {"name": "x"}, "spec": {"nonResourceAttributes": path}}),
            "metadata: Invalid value: {\"name\":\"x\"}: must be empty",
        ),
    ];
    for (review, expected) in cases {
        assert_eq!(self_review(&authorizer, review).unwrap_err(), expected);
    }
    let spec = serde_json::from_value(json!({ "resourceAttributes": resource })).unwrap();
    let metadata = serde_json::from_value(json!({"namespace": "other"})).unwrap();
    let problems = review_local(&authorizer, &metadata, &spec).unwrap_err();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
            "spec.resourceAttributes.namespace: Invalid value: \"ns\": must match \
             metadata.namespace",
        ]
    );
}

fn act_as(authorizer: &Authorizer, requester: &User, wanted: &User) -> Result<User, String> {
    let outcome = impersonate(authorizer, requester, wanted, &pods("list", ""));
    outcome.map_err(|forbidden| forbidden.to_string())
}

#[test]
fn impersonate_verb_allows_users_groups_and_service_accounts() {
    let authorizer = authorizer(
        "alice",
        json!([
            {"apiGroups": [""], "resources": ["users", "serviceaccounts"], "verbs": ["impersonate"]},
            {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"],
                "resourceNames": ["dev"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes", "uids"],
                "verbs": ["impersonate"]},
        ]),
    );
    let alice = User::new("alice", &[]);
    let mut bob = User::new("bob", &["dev"]);
    bob.uid = "u".to_owned();
    bob.extra.insert("scopes".to_owned(), vec!["a".to_owned()]);
    let acting = act_as(&authorizer, &alice, &bob).unwrap();
    assert_eq!(acting.groups, ["dev", "system:authenticated"]);
    assert_eq!(
        (acting.uid, acting.extra),
        (bob.uid.clone(), bob.extra.clone())
    );

    let account = User::new("system:serviceaccount:ns:web", &[]);
    let acting = act_as(&authorizer, &alice, &account).unwrap();
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    ];
    assert_eq!(acting.groups, groups);
    let anonymous = act_as(&authorizer, &alice, &User::new("system:anonymous", &[])).unwrap();
    assert_eq!(anonymous.groups, ["system:unauthenticated"]);
    // The legacy verb treats a node like any other user.
    let node = act_as(&authorizer, &alice, &User::new("system:node:n1", &[])).unwrap();
    assert_eq!(node.groups, ["system:authenticated"]);

    for wanted in [
        User::new("bob", &["ops"]),
        User::new("bob", &["dev", MASTERS]),
    ] {
        assert!(act_as(&authorizer, &alice, &wanted).is_err());
    }
    assert_eq!(
        act_as(&authorizer, &User::new("eve", &[]), &User::new("bob", &[])).unwrap_err(),
        "pods is forbidden: User \"eve\" cannot impersonate-on:user-info:list resource \"pods\" in \
         API group \"\" in the namespace \"ns\""
    );
}

#[test]
fn constrained_impersonation_allows_one_type_of_user_and_request() {
    let narrow = |mode: &str, resource: &str| {
        json!([
            {"apiGroups": [""], "resources": ["pods"],
                "verbs": [format!("impersonate-on:{mode}:list")]},
            {"apiGroups": ["authentication.k8s.io"], "resources": [resource, "groups"],
                "verbs": [format!("impersonate:{mode}")]},
        ])
    };
    let mut authorizer = authorizer("users", narrow("user-info", "users"));
    grant(&mut authorizer, "nodes", narrow("arbitrary-node", "nodes"));
    grant(
        &mut authorizer,
        "accounts",
        narrow("serviceaccount", "serviceaccounts"),
    );
    let own_node = "system:serviceaccount:kube-system:agent";
    grant(
        &mut authorizer,
        own_node,
        narrow("associated-node", "nodes"),
    );

    let user = |name: &str| User::new(name, &[]);
    let groups = |requester: &str, wanted: &User| {
        act_as(&authorizer, &user(requester), wanted).map(|user| user.groups.join(","))
    };
    let node = user("system:node:n1");
    let account = user("system:serviceaccount:ns:web");
    let authenticated = "system:authenticated".to_owned();
    assert_eq!(groups("users", &user("bob")), Ok(authenticated.clone()));
    assert_eq!(
        groups("users", &User::new("bob", &["x"])),
        Ok(format!("x,{authenticated}"))
    );
    assert_eq!(
        groups("nodes", &node),
        Ok(format!("system:nodes,{authenticated}"))
    );
    let accounts = format!("system:serviceaccounts,system:serviceaccounts:ns,{authenticated}");
    assert_eq!(groups("accounts", &account), Ok(accounts));
    assert!(groups("users", &node).is_err());
    assert!(groups("users", &account).is_err());
    assert!(groups("nodes", &user("bob")).is_err());
    assert_eq!(
        groups("users", &User::new("bob", &[MASTERS])).unwrap_err(),
        "groups.authentication.k8s.io \"system:masters\" is forbidden: User \"users\" cannot \
         impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the \
         cluster scope: impersonating the system:masters group is not allowed"
    );
    let other = impersonate(
        &authorizer,
        &user("users"),
        &user("bob"),
        &pods("delete", "p"),
    );
    assert!(other.is_err());

    let mut agent = user(own_node);
    agent.extra.insert(
        crate::auth::identity::NODE_NAME.to_owned(),
        vec!["n1".to_owned()],
    );
    assert!(act_as(&authorizer, &agent, &node).is_ok());
    assert!(act_as(&authorizer, &agent, &user("system:node:n2")).is_err());
}
