#!/usr/bin/env python3
"""Derives the type tables from a checkout of Kubernetes; run it when the release moves.

    derive.py <checkout> <output directory>

Facts only: names, Go types, JSON tags, patch tags, protobuf numbers (from the types.go files) and the list, map and
key facts of the published OpenAPI v3 documents. Documentation texts stay where they are.
"""
import json, pathlib, re, sys

CHECKOUT, OUTPUT = map(pathlib.Path, sys.argv[1:3])
# Table name -> (apiVersion, Go package below staging/src/k8s.io).
PACKAGES = {
    "meta": ("v1", "apimachinery/pkg/apis/meta/v1"),
    "core": ("v1", "api/core/v1"),
    "apps": ("apps/v1", "api/apps/v1"),
    "authentication": ("authentication.k8s.io/v1", "api/authentication/v1"),
    "authorization": ("authorization.k8s.io/v1", "api/authorization/v1"),
    "autoscaling": ("autoscaling/v1", "api/autoscaling/v1"),
    "batch": ("batch/v1", "api/batch/v1"),
    "certificates": ("certificates.k8s.io/v1", "api/certificates/v1"),
    "coordination": ("coordination.k8s.io/v1", "api/coordination/v1"),
    "discovery": ("discovery.k8s.io/v1", "api/discovery/v1"),
    "events": ("events.k8s.io/v1", "api/events/v1"),
    "networking": ("networking.k8s.io/v1", "api/networking/v1"),
    "node": ("node.k8s.io/v1", "api/node/v1"),
    "policy": ("policy/v1", "api/policy/v1"),
    "rbac": ("rbac.authorization.k8s.io/v1", "api/rbac/v1"),
    "resource": ("resource.k8s.io/v1", "api/resource/v1"),
    "scheduling": ("scheduling.k8s.io/v1", "api/scheduling/v1"),
    "storage": ("storage.k8s.io/v1", "api/storage/v1"),
}
# Types that other tables know by name and that no table describes.
BUILTIN = {
    "metav1.Time": "Time", "metav1.MicroTime": "MicroTime", "metav1.Duration": "Duration",
    "metav1.FieldsV1": "FieldsV1", "resource.Quantity": "Quantity",
    "intstr.IntOrString": "IntOrString", "runtime.RawExtension": "RawExtension",
    "types.UID": "UID", "types.NodeName": "NodeName",
}
NOT_SERVED = re.compile(r"(List|Options|PodStatusResult|SerializedReference|RangeAllocation|"
                        r"ComponentStatus|Table|PartialObjectMetadata|APIVersions|APIGroup)$")
SERVED_ANYWAY = {("meta", "DeleteOptions"), ("meta", "Status")}
PRIMITIVES = {"string", "bool", "int", "int32", "int64", "float64", "byte"}


def parse_go(package, path):
    """The structs and named types of a types.go: (name -> list of fields, name -> type)."""
    structs, aliases, imports = {}, {}, {}
    name = None
    for line in path.read_text().splitlines():
        text = line.strip()
        if match := re.match(r'^(\w+)?\s*"(k8s\.io/[^"]+)"$', text):
            imports[match[1] or match[2].rsplit("/", 1)[-1]] = match[2]
        if match := re.match(r"^type (\w+) struct \{(\})?$", line):
            name = match[1]
            structs[name] = []
            if match[2]:
                name = None
        elif match := re.match(r"^type (\w+)\s+=?\s*([\w.\[\]*]+)$", line):
            aliases[match[1]] = match[2]
        elif line == "}":
            name = None
        elif name and not text.startswith("//"):
            if match := re.match(r"^(?:(\w+)\s+)?([\w.\[\]*]+)\s+`(.*)`", text):
                structs[name].append((match[2], match[3]))
    return structs, aliases, imports


GO = {name: parse_go(name, CHECKOUT / f"staging/src/k8s.io/{path}/types.go")
      for name, (_, path) in PACKAGES.items()}
OPENAPI = {}
for document in sorted((CHECKOUT / "api/openapi-spec/v3").glob("api*_openapi.json")):
    OPENAPI |= json.loads(document.read_text()).get("components", {}).get("schemas", {})


def package_of(package, alias):
    path = GO[package][2].get(alias, "")
    for name, (_, where) in PACKAGES.items():
        if path == f"k8s.io/{where}":
            return name
    raise KeyError(f"{alias} in {package}")


def resolve(package, go_type):
    """The type as tables write it: `[]core.Container`, `map[string]Quantity`, `*int64`."""
    if go_type.startswith("*"):
        return "*" + resolve(package, go_type[1:])
    if go_type.startswith("[]"):
        return "[]" + resolve(package, go_type[2:])
    if match := re.match(r"^map\[([\w.]+)\](.+)$", go_type):
        return f"map[{resolve(package, match[1])}]{resolve(package, match[2])}"
    if package == "meta" and f"metav1.{go_type}" in BUILTIN:
        return BUILTIN[f"metav1.{go_type}"]
    if "." in go_type:
        alias, name = go_type.split(".")
        if BUILTIN.get(go_type):
            return BUILTIN[go_type]
        if GO[package][2].get(alias) == "k8s.io/apimachinery/pkg/apis/meta/v1" and BUILTIN.get(f"metav1.{name}"):
            return BUILTIN[f"metav1.{name}"]
        return f"{package_of(package, alias)}.{name}"
    if go_type in PRIMITIVES:
        return go_type
    return f"{package}.{go_type}"


def openapi_name(package, name):
    path = PACKAGES[package][1]
    prefix = "io.k8s." + path.replace("/", ".")
    return f"{prefix}.{name}"


def tag(tags, key):
    match = re.search(rf'{key}:"([^"]*)"', tags)
    return match[1] if match else ""


def fields_of(package, struct, numbers=()):
    """The JSON fields in Go's order; inlined structs are spread out.

    `numbers` are the protobuf fields that lead to the struct from the one it is inlined in.
    """
    for go_type, tags in GO[package][0][struct]:
        name, *options = tag(tags, "json").split(",")
        if name == "-":
            continue
        number = (tag(tags, "protobuf").split(",") + [""])[1]
        if not name:
            assert "inline" in options, (package, struct, go_type)
            qualified = resolve(package, go_type.lstrip("*"))
            inner_package, inner = qualified.split(".")
            yield from fields_of(inner_package, inner, (*numbers, number))
            continue
        flags = []
        if "omitzero" in options:
            flags.append("omitzero")
        elif "omitempty" not in options:
            flags.append("always")
        if strategy := tag(tags, "patchStrategy"):
            key = tag(tags, "patchMergeKey")
            flags.append(f"patch={strategy}" + (f":{key}" if key else ""))
        elif key := tag(tags, "patchMergeKey"):
            flags.append(f"patch=:{key}")
        if number and all(numbers):
            flags.append("pb=" + ".".join((*numbers, number)))
        yield name, resolve(package, go_type), flags


KEY_DEFAULTS = {}   # (element schema, key) -> default
for schema in OPENAPI.values():
    for prop in schema.get("properties", {}).values():
        if prop.get("x-kubernetes-list-type") == "map":
            item = prop["items"]
            ref = item.get("$ref") or item["allOf"][0]["$ref"]
            element = ref.rsplit("/", 1)[-1]
            for key in prop["x-kubernetes-list-map-keys"]:
                default = OPENAPI[element]["properties"][key].get("default")
                if default is not None:
                    KEY_DEFAULTS[element, key] = default


def openapi_flags(package, struct, name):
    schema = OPENAPI.get(openapi_name(package, struct))
    if schema is None:
        return []
    prop = schema["properties"].get(name)
    if prop is None:
        print("not in OpenAPI:", package, struct, name, file=sys.stderr)
        return []
    flags = []
    kind = prop.get("x-kubernetes-list-type")
    if kind == "map":
        flags.append("list=map:" + ",".join(prop["x-kubernetes-list-map-keys"]))
    elif kind == "set":
        flags.append("list=set")
    if prop.get("x-kubernetes-map-type") == "atomic":
        flags.append("atomic")
    default = KEY_DEFAULTS.get((openapi_name(package, struct), name))
    if default is not None:
        flags.append("default=" + json.dumps(default))
    return flags


def named_types(written):
    return [t for t in re.findall(r"[a-z]+\.\w+", written)]


def reachable():
    todo = [(p, s) for p in PACKAGES for s in GO[p][0] if is_kind(p, s)]
    seen = set(todo)
    while todo:
        package, name = todo.pop()
        if name in GO[package][0]:
            found = [t for _, written, _ in fields_of(package, name) for t in named_types(written)]
        else:
            found = named_types(resolve(package, GO[package][1][name]))
        for other in found:
            pair = tuple(other.split("."))
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return seen


def is_kind(package, struct):
    if (package, struct) in SERVED_ANYWAY:
        return True
    embeds = any(t.endswith("TypeMeta") and 'json:",inline"' in tags for t, tags in GO[package][0][struct])
    return embeds and package != "meta" and not NOT_SERVED.search(struct)


WANTED = reachable()
for package, (api_version, _) in PACKAGES.items():
    local = lambda written: re.sub(rf"\b{package}\.", "", written)
    lines = [f"package {package} {api_version}"]
    for name, target in GO[package][1].items():
        if (package, name) in WANTED:
            lines.append(f"alias {name} {local(resolve(package, target))}")
    for struct in GO[package][0]:
        if (package, struct) not in WANTED:
            continue
        schema = OPENAPI.get(openapi_name(package, struct), {})
        marks = ["kind"] if is_kind(package, struct) else []
        if schema.get("x-kubernetes-map-type") == "atomic":
            marks.append("atomic")
        lines.append(" ".join([f"struct {struct}", *marks]))
        fields = list(fields_of(package, struct))
        missing = set(schema.get("properties", {})) - {name for name, _, _ in fields}
        assert not missing, (struct, missing)
        for name, written, flags in fields:
            prop = schema.get("properties", {}).get(name, {})
            strategy = prop.get("x-kubernetes-patch-strategy", "")
            told = next((f for f in flags if f.startswith("patch=")), "")
            assert told.removeprefix("patch=").split(":")[0] == strategy, (struct, name, told, strategy)
            lines.append(" ".join([f"  {name} {local(written)}", *flags, *openapi_flags(package, struct, name)]))
    (OUTPUT / f"{package}.txt").write_text("\n".join(lines) + "\n")
