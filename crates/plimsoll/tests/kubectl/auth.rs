//! Authorization: `auth`, impersonation, tokens, unauthenticated callers.

use crate::session::{Session, with_every_kubectl, with_kubectl_from};

/// Runs a command with only a token.
fn with_token(s: &Session, token: &str, command: &str) -> crate::printed::Printed {
    let config = s.unmasked("config view --raw -o json");
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    config["users"][0]["user"] = serde_json::json!({"token": token});
    s.file("token.kubeconfig", &config.to_string());
    s.run(&format!("--kubeconfig token.kubeconfig {command}"))
}

#[test]
#[ignore = "tier: tools"]
fn auth_can_i_reports_rights() {
    with_every_kubectl(|s| {
        s.run("auth can-i list pods").says("yes");
        let stranger = s.run("auth can-i list pods --as=alice");
        assert_eq!(
            (stranger.stdout.split(' ').next(), stranger.code),
            (Some("no"), 1)
        );
        s.ok("create role r --verb=get,list --resource=pods,pods/log");
        s.ok("create rolebinding rb --role=r --user=alice");
        s.run("auth can-i list pods --as=alice").says("yes");
        s.run("auth can-i get pods --subresource=log --as=alice")
            .says("yes");
        s.run("auth can-i --list --as=alice").mentions(&[
            "Resources  Non-Resource URLs  Resource Names  Verbs",
            "pods  []  []  [get list]",
            "pods/log  []  []  [get list]",
            "selfsubjectaccessreviews.authorization.k8s.io  []  []  [create]",
        ]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn forbidden_errors_name_verb_and_resource() {
    with_every_kubectl(|s| {
        s.run("get pods -A --as=alice").fails(
            "Error from server (Forbidden): pods is forbidden: User \"alice\" cannot list \
             resource \"pods\" in API group \"\" at the cluster scope",
        );
        s.run("get pod x --as=alice").fails(
            "Error from server (Forbidden): pods \"x\" is forbidden: User \"alice\" cannot get \
             resource \"pods\" in API group \"\" in the namespace \"NS\"",
        );
        s.run("delete deploy x --as=alice --as-group=devs").fails(
            "Error from server (Forbidden): deployments.apps \"x\" is forbidden: User \"alice\" \
             cannot delete resource \"deployments\" in API group \"apps\" in the namespace \"NS\"",
        );
        s.ok("create role half --verb=impersonate --resource=users");
        s.run("get pods --as=alice --as-group=system:masters")
            .mentions(&[]);
    });
}

#[test]
#[ignore = "tier: tools"]
fn users_cannot_grant_more_than_they_have() {
    with_every_kubectl(|s| {
        s.ok("create rolebinding adm --clusterrole=admin --user=alice");
        s.run("create role r --verb=delete --resource=nodes --as=alice")
            .fails_with(
                "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"alice\" \
             (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
             currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"delete\"]}",
            );
        s.run("create rolebinding esc --clusterrole=cluster-admin --user=alice --as=alice")
            .fails_with("is attempting to grant RBAC permissions not currently held:");
    });
}

#[test]
#[ignore = "tier: tools"]
fn roles_are_reconciled() {
    with_every_kubectl(|s| {
        s.file(
            "rbac.yaml",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, \
              metadata: {name: r, namespace: $NS}, \
              rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}\n---\n\
             {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, \
              metadata: {name: rb, namespace: $NS}, \
              roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, \
              subjects: [{kind: User, name: zoe, apiGroup: rbac.authorization.k8s.io}]}\n",
        );
        s.run("auth reconcile -f rbac.yaml").mentions(&[
            "role.rbac.authorization.k8s.io/r reconciled",
            "rolebinding.rbac.authorization.k8s.io/rb reconciled",
        ]);
        s.run("auth can-i get pods --as=zoe").says("yes");
        s.run("auth reconcile -f rbac.yaml")
            .mentions(&["role.rbac.authorization.k8s.io/r"]);
    });
}

/// `whoami` is of 1.27 in this form.
#[test]
#[ignore = "tier: tools"]
fn whoami_prints_the_user() {
    with_kubectl_from(27, |s| {
        s.run("auth whoami --as=alice --as-group=devs").says(
            "ATTRIBUTE  VALUE\n\
             Username  alice\n\
             Groups  [devs system:authenticated]",
        );
    });
}

/// `create token` is of 1.24.
#[test]
#[ignore = "tier: tools"]
fn accounts_act_with_their_tokens() {
    with_kubectl_from(24, |s| {
        s.ok("create serviceaccount bot");
        s.run("create token nope")
            .fails("error: failed to create token: serviceaccounts \"nope\" not found");
        s.run("create token bot --duration=10s").fails(
            "error: failed to create token: TokenRequest.authentication.k8s.io \"\" is invalid: \
             spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 \
             minutes",
        );
        let token = s.unmasked("create token bot");
        let token = token.trim();
        with_token(s, token, "get pods").fails(
            "Error from server (Forbidden): pods is forbidden: User \
             \"system:serviceaccount:NS:bot\" cannot list resource \"pods\" in API group \"\" in \
             the namespace \"NS\"",
        );
        s.ok("create rolebinding v --clusterrole=view --serviceaccount=$NS:bot");
        s.eventually(
            "auth can-i list pods --as=system:serviceaccount:$NS:bot",
            |p| p.stdout == "yes",
        );
        with_token(s, token, "get pods").remarks("No resources found in NS namespace.");
        s.ok("delete serviceaccount bot");
        with_token(s, token, "get pods")
            .fails("error: You must be logged in to the server (Unauthorized)");
    });
}

#[test]
#[ignore = "tier: tools"]
fn unauthenticated_requests_are_rejected() {
    with_every_kubectl(|s| {
        with_token(s, "no-such-token", "get pods")
            .fails("error: You must be logged in to the server (Unauthorized)");
    });
}
