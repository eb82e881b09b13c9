#!/usr/bin/env python3
"""Writes types.txt: the Go types behind the kinds that are served.

usage: generate.py <kubernetes git repository> <tag> > types.txt
"""

import re
import subprocess
import sys

API = "staging/src/k8s.io/api"
META = "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go"
GROUPS = (
    "apps authentication authorization autoscaling batch certificates coordination core events node "
    "policy rbac resource scheduling storage"
).split()
# Types of packages that are read for nothing else.
OUTSIDE = {
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intOrString",
    "runtime.RawExtension": "raw",
    "types.UID": "string",
    "types.NodeName": "string",
}
# Types whose Go declaration says less than how they are decoded.
SPECIAL = {"meta.Time": "time", "meta.MicroTime": "microTime", "meta.FieldsV1": "raw", "meta.Duration": "duration"}
SCALARS = {"string", "bool", "int32", "int64", "byte", "float64", "int", "uint32"}


def show(repo, tag, path):
    return subprocess.run(
        ["git", "-C", repo, "show", f"{tag}:{path}"], check=True, capture_output=True, text=True
    ).stdout


def resolve(group, text):
    """A Go type as the table spells it: `*T`, `[]T`, `{}T`, a scalar, or group.Name."""
    if text.startswith("*"):
        return "*" + resolve(group, text[1:])
    if text.startswith("[]"):
        return "[]" + resolve(group, text[2:])
    if match := re.match(r"map\[([\w.]+)\](.+)", text):
        return "{" + resolve(group, match[1]) + "}" + resolve(group, match[2])
    if text in SCALARS:
        return text
    if text in OUTSIDE:
        return text
    package, _, name = text.rpartition(".")
    owner = {"": group, "metav1": "meta", "v1": "core", "corev1": "core", "apiv1": "core"}.get(package)
    assert owner, (group, text)
    return f"{owner}.{name}"


def declarations(group, source):
    lines = iter(source.splitlines())
    for line in lines:
        if match := re.match(r"type (\w+) struct \{$", line):
            fields = []
            for line in lines:
                if line.startswith("}"):
                    break
                text = line.split("//")[0] if line.strip().startswith("//") else line
                tag = re.search(r'`json:"([^"]*)"', text)
                if not tag:
                    continue
                words = text.strip().split()
                name, *options = tag[1].split(",")
                if name == "-":
                    continue
                # An embedded field has no name of its own.
                is_embedded = words[1].startswith("`")
                kind = words[0] if is_embedded else words[1]
                fields.append((name, options, resolve(group, kind), is_embedded))
            yield f"{group}.{match[1]}", fields
        elif match := re.match(r"type (\w+) (=? ?)([\w\[\].*]+)\s*(//.*)?$", line):
            yield f"{group}.{match[1]}", resolve(group, match[3])


def flattened(types, name):
    """The fields of a struct with those of embedded ones, marked with where they come from."""
    for field, options, kind, is_embedded in types[name]:
        if is_embedded and not field:
            inner = kind.lstrip("*")
            for other, options, kind, via in flattened(types, inner):
                yield other, options, kind, [inner.split(".")[1], *via]
        else:
            yield field, options, kind, []


def reachable(types):
    """The names of the kinds and of all types below them."""
    found = set()
    waiting = ["meta.DeleteOptions"]
    for name, fields in types.items():
        is_kind = isinstance(fields, list) and any(kind == "meta.TypeMeta" for _, _, kind, _ in fields)
        if is_kind and not name.startswith("meta.") and not name.endswith("List"):
            waiting.append(name)
    while waiting:
        name = waiting.pop()
        if name in found or name not in types:
            continue
        found.add(name)
        below = types[name] if isinstance(types[name], str) else " ".join(f[2] for f in types[name])
        waiting.extend(re.findall(r"\w+\.\w+", below))
    return found


def main():
    repo, tag = sys.argv[1:]
    types = {}
    for group, path in [("meta", META), *((g, f"{API}/{g}/v1/types.go") for g in GROUPS)]:
        types.update(declarations(group, show(repo, tag, path)))
    print(f"# The Go types of Kubernetes {tag}; written by generate.py.")
    print("#")
    print("# `group.Name type` is a type with a name; `group.Name` alone a struct, its fields below it:")
    print("# `name type`, `!` before names that are printed even when empty, `?` before structs that are left")
    print("# out when zero, `<Embedded` behind fields of an embedded struct. Types: `*T` may be absent, `[]T`")
    print("# list, `{K}V` map.")
    for name, kind in sorted((OUTSIDE | SPECIAL).items()):
        print(name, kind)
    for name in sorted(reachable(types) - SPECIAL.keys()):
        if isinstance(types[name], str):
            kind = types[name]
            while isinstance(types.get(kind), str):
                kind = types[kind]
            # The one type that is another struct by a second name, core.List, is never sent.
            if kind not in types:
                print(name, kind)
        else:
            print(name)
            for field, options, kind, via in flattened(types, name):
                mark = "?" if "omitzero" in options else "" if "omitempty" in options else "!"
                print(f" {mark}{field} {kind}{''.join(' <' + v for v in via)}")


if __name__ == "__main__":
    main()
