"""Drives a server with the Python client: every kind of request, and what must come back.

KUBECONFIG names the server. Ends with "all steps passed".
"""

import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

config.load_kube_config()
core = client.CoreV1Api()
apps = client.AppsV1Api()
NAMESPACE = "python"


def step(name):
    print(name, flush=True)


def refused(code, reason, call):
    try:
        call()
    except ApiException as error:
        body = error.body if isinstance(error.body, str) else error.body.decode()
        assert error.status == code, (error.status, body)
        assert f'"reason":"{reason}"' in body, body
        return
    raise AssertionError(f"not refused with {code} {reason}")


def secret(name, **labels):
    metadata = client.V1ObjectMeta(name=name, labels=labels or None)
    return client.V1Secret(metadata=metadata, string_data={"key": "value"})


step("version and discovery")
assert client.VersionApi().get_code().minor == "36"
groups = {group.name for group in client.ApisApi().get_api_versions().groups}
assert {"apps", "batch", "coordination.k8s.io"} <= groups, groups
assert any(r.name == "pods" for r in core.get_api_resources().resources)

step("create")
core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
for number in range(5):
    core.create_namespaced_secret(NAMESPACE, secret(f"s{number}", n=str(number)))
refused(409, "AlreadyExists", lambda: core.create_namespaced_secret(NAMESPACE, secret("s0")))
refused(422, "Invalid", lambda: core.create_namespaced_secret(NAMESPACE, secret("No Name")))
pod = client.V1Pod(
    metadata=client.V1ObjectMeta(generate_name="web-"),
    spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="example.org/web:1")]),
)
pod = core.create_namespaced_pod(NAMESPACE, pod)
assert pod.metadata.name.startswith("web-") and pod.spec.service_account_name == "default"
assert pod.status.phase == "Pending" and pod.metadata.creation_timestamp is not None

step("list")
assert len(core.list_namespaced_secret(NAMESPACE).items) == 5
page = core.list_namespaced_secret(NAMESPACE, limit=2)
assert page.metadata.remaining_item_count == 3
rest = core.list_namespaced_secret(NAMESPACE, limit=10, _continue=page.metadata._continue)
assert [item.metadata.name for item in page.items + rest.items] == [f"s{n}" for n in range(5)]
picked = core.list_secret_for_all_namespaces(label_selector="n in (1,3)")
assert [item.metadata.name for item in picked.items] == ["s1", "s3"]
named = core.list_namespaced_pod(NAMESPACE, field_selector="status.phase=Pending")
assert len(named.items) == 1
refused(400, "BadRequest", lambda: core.list_namespaced_pod(NAMESPACE, label_selector="=="))
refused(404, "NotFound", lambda: core.read_namespaced_secret("none", NAMESPACE))

step("replace")
found = core.read_namespaced_secret("s0", NAMESPACE)
found.metadata.labels["n"] = "zero"
replaced = core.replace_namespaced_secret("s0", NAMESPACE, found)
assert replaced.metadata.labels["n"] == "zero"
refused(409, "Conflict", lambda: core.replace_namespaced_secret("s0", NAMESPACE, found))

step("patch")
api = client.ApiClient()
dynamic_client = dynamic.DynamicClient(api)
deployments = dynamic_client.resources.get(api_version="apps/v1", kind="Deployment")


def patch(media_type, body):
    return deployments.patch(
        body=body, name="web", namespace=NAMESPACE, content_type=f"application/{media_type}")


def apply(body, **options):
    return deployments.server_side_apply(
        body=body, name="web", namespace=NAMESPACE, field_manager="py", **options)


template = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "image": "example.org/a:1"}]},
}
apps.create_namespaced_deployment(NAMESPACE, {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
})
strategic = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "example.org/b:1"}]}}}}
patched = patch("strategic-merge-patch+json", strategic)
containers = patched.spec.template.spec.containers
assert [container.name for container in containers] == ["b", "a"], containers
patched = patch("merge-patch+json", {"spec": {"replicas": 3}})
assert patched.spec.replicas == 3 and patched.metadata.generation == 3
operations = [{"op": "test", "path": "/spec/replicas", "value": 3},
              {"op": "replace", "path": "/spec/replicas", "value": 4}]
patched = patch("json-patch+json", operations)
assert patched.spec.replicas == 4
applied = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
           "spec": {"replicas": 5}}
refused(409, "Conflict", lambda: apply(applied))
patched = apply(applied, force_conflicts=True)
assert patched.spec.replicas == 5
managers = {entry.manager for entry in patched.metadata.managedFields}
assert "py" in managers, managers
scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
assert scale.spec.replicas == 5

step("watch")
start = core.list_namespaced_secret(NAMESPACE).metadata.resource_version


def change():
    core.create_namespaced_secret(NAMESPACE, secret("late", color="red"))
    core.patch_namespaced_secret("late", NAMESPACE, {"metadata": {"labels": {"color": "blue"}}})
    core.delete_namespaced_secret("late", NAMESPACE)


threading.Timer(0.2, change).start()
seen = []
stream = watch.Watch().stream(
    core.list_namespaced_secret, NAMESPACE, resource_version=start, timeout_seconds=30)
for event in stream:
    seen.append((event["type"], event["object"].metadata.name))
    if event["type"] == "DELETED":
        break
assert seen == [("ADDED", "late"), ("MODIFIED", "late"), ("DELETED", "late")], seen
ended = watch.Watch().stream(core.list_namespaced_secret, NAMESPACE, timeout_seconds=1)
assert len(list(ended)) == 5

step("dynamic client")
leases = dynamic_client.resources.get(api_version="coordination.k8s.io/v1", kind="Lease")
lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
         "spec": {"holderIdentity": "me", "leaseDurationSeconds": 10}}
leases.create(body=lease, namespace=NAMESPACE)
assert leases.get(name="l", namespace=NAMESPACE).spec.holderIdentity == "me"
applied = dict(lease, spec={"holderIdentity": "you"})
leases.server_side_apply(body=applied, namespace=NAMESPACE, field_manager="py", force_conflicts=True)
assert leases.get(name="l", namespace=NAMESPACE).spec.holderIdentity == "you"

step("delete")
gone = core.delete_namespaced_pod(pod.metadata.name, NAMESPACE)
assert gone.metadata.name == pod.metadata.name
refused(404, "NotFound", lambda: core.read_namespaced_pod(pod.metadata.name, NAMESPACE))
answer = core.delete_namespaced_secret("s0", NAMESPACE)
answer = answer if isinstance(answer, dict) else answer.to_dict()
assert answer["status"] == "Success", answer
core.delete_collection_namespaced_secret(NAMESPACE, label_selector="n!=4")
assert [item.metadata.name for item in core.list_namespaced_secret(NAMESPACE).items] == ["s4"]

print("all steps passed")
