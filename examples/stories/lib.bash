# Shared by the stories: a cluster of their own, and functions to show what happens in it.
#
# A story sources `../lib.bash`, starts a cluster (`start_node` for one with a node on this
# machine, as root; `start_api` for one with fake nodes), and then shows:
#
#   heading TEXT               prints a heading
#   show COMMAND…              runs a command and shows it with its output
#   show_when TEXT COMMAND…    waits until a command's output has TEXT in it, and shows both
#   until_shows TEXT COMMAND…  waits without showing
#
# PLIMSOLL names the binary [default: the release build of this repository].
# A story removes everything it creates when it ends.

set -euo pipefail
story=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
cd "$story"
plimsoll=${PLIMSOLL:-$story/../../../target/release/plimsoll}
work=$(mktemp -d)
export KUBECONFIG=$work/data/admin.kubeconfig
export KUBECACHEDIR=$work/cache
# The slowdown factor, which tests set on emulated machines.
slowness=${PLIMSOLL_TEST_SLOWNESS:-1}
# How long anything may take, in seconds.
patience=$((60 * slowness))
# The cgroup that limits the node, and the bridge of its pods. Tests check that both are removed.
cgroup=/plimsoll-story-$$
bridge=pls$$
# An image that runs anywhere: this machine's busybox.
image=busybox:local
processes=()

[ -x "$plimsoll" ] || { echo "error: no $plimsoll; run cargo build --release, or set PLIMSOLL" >&2; exit 1; }

heading() { printf '\n# %s\n' "$*"; }

# A command as one would type it.
typed() {
    local word line='$'
    for word in "$@"; do
        word=${word//"$work"/DIR}
        case $word in *[][\ \(\)\{\}\|]*) line+=" '$word'" ;; *) line+=" $word" ;; esac
    done
    printf '%s\n' "$line"
}

show() {
    typed "$@"
    "$@" 2>&1 || true
}

# Leaves the output in `shown`.
until_shows() {
    local text=$1 deadline=$((SECONDS + patience))
    shift
    while shown=$("$@" 2>&1 || true); [[ $shown != *"$text"* ]]; do
        if [ $SECONDS -ge $deadline ]; then
            printf 'error: timed out waiting for %q from: %s\n%s\n' "$text" "$*" "$shown" >&2
            tail -n 20 "$work"/*.log >&2
            exit 1
        fi
        # A tenth of a second.
        sleep "$((slowness / 10)).$((slowness % 10))"
    done
}

show_when() {
    local text=$1
    shift
    until_shows "$text" "$@"
    typed "$@"
    printf '%s\n' "$shown"
}

# The trees of cgroup v1, or the one of v2.
cgroup_trees() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo /sys/fs/cgroup
    else
        local tree
        for tree in /sys/fs/cgroup/*/; do [ -w "$tree/cgroup.procs" ] && echo "${tree%/}"; done
    fi
}

make_cgroup() {
    local tree file controller
    for tree in $(cgroup_trees); do
        mkdir -p "$tree$cgroup"
        for file in cpuset.cpus cpuset.mems; do
            [ -e "$tree/cpuset.cpu_exclusive" ] && cat "$tree/$file" >"$tree$cgroup/$file"
        done
        if [ "$tree" = /sys/fs/cgroup ]; then
            for controller in $(cat "$tree/cgroup.controllers"); do
                echo "+$controller" >"$tree/cgroup.subtree_control" || true
                echo "+$controller" >"$tree$cgroup/cgroup.subtree_control" || true
            done
        fi
    done 2>/dev/null
    return 0
}

# Puts the node's data on a file system of its own: $1 MiB, $2 inodes.
small_disk() {
    mkdir -p "$work/data"
    truncate -s "$1M" "$work/disk"
    mkfs.ext4 -q -m 0 -O ^has_journal -N "$2" "$work/disk"
    mount -o loop "$work/disk" "$work/data"
}

# Fills that file system until $1 MiB are left.
leave_free() {
    local free=$(($(stat -f -c '%a * %S' "$work/data") >> 20))
    dd if=/dev/zero bs=1M count="$((free - $1))" status=none >>"$work/data/ballast"
}

start() {
    local log=$work/$1.log
    "$plimsoll" "$@" >"$log" 2>&1 &
    processes+=($!)
}

# A cluster with one node, n1, in a cgroup of its own. Arguments go to `plimsoll up`.
start_node() {
    [ "$(id -u)" = 0 ] || { echo "error: this story runs containers, and needs root" >&2; exit 1; }
    make_cgroup
    mkdir -p "$work/root/bin"
    cp "$(command -v busybox)" "$work/root/bin/busybox"
    local applet
    for applet in $(busybox --list); do
        [ "$applet" = busybox ] || ln -s busybox "$work/root/bin/$applet"
    done
    mkdir -p "$work/root/tmp" "$work/root/proc" "$work/root/dev" "$work/root/sys"
    "$plimsoll" image import --data-dir "$work/data" --name "$image" --pin "$work/root" >"$work/import.log"
    start up --data-dir "$work/data" --listen 127.0.0.1:0 --node-name n1 --kubelet-listen 127.0.0.1:0 \
        --healthz-listen off --keep-kernel-settings --cgroup-root "$cgroup" \
        --bridge "$bridge" --pod-cidr "10.$((64 + $$ % 60)).$((RANDOM % 256)).0/24" --config node.yaml "$@"
    until_shows ' Ready ' kubectl get nodes
    until_shows default kubectl get serviceaccounts
}

# A cluster without agents. Arguments go to `plimsoll server`.
start_api() {
    start server --data-dir "$work/data" --listen 127.0.0.1:0 "$@"
    until_shows default kubectl get namespaces
    # Fake nodes send no heartbeats, and must stay ready for as long as a story takes.
    start controllers --kubeconfig "$KUBECONFIG" --node-monitor-grace-period 1h
    start scheduler --kubeconfig "$KUBECONFIG"
    until_shows default kubectl get serviceaccounts
}

taints() { kubectl get node "$1" -o json | jq -c '[.spec.taints[]?]'; }

# A fake node: name and zone.
fake_node() {
    kubectl create -f - >/dev/null <<NODE
{ "apiVersion": "v1", "kind": "Node",
  "metadata": { "name": "$1", "labels": { "kubernetes.io/hostname": "$1", "topology.kubernetes.io/zone": "$2" } } }
NODE
    kubectl patch node "$1" --subresource=status --type=merge >/dev/null -p '{ "status": {
        "capacity": { "cpu": "4", "memory": "8Gi", "pods": "110" },
        "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastHeartbeatTime": "'"$(date -u +%FT%TZ)"'", "lastTransitionTime": "'"$(date -u +%FT%TZ)"'" }] } }'
    until_shows '[]' taints "$1"
}

end() {
    local process tree folder
    trap - EXIT
    for process in "${processes[@]}"; do kill "$process" || true; done
    for process in "${processes[@]}"; do wait "$process" || true; done
    [ ! -d "$work/data/runtime" ] || "$plimsoll" down --data-dir "$work/data" --grace-period 0s || true
    for tree in $(cgroup_trees); do
        [ -d "$tree$cgroup" ] || continue
        # From the inside out: what runs is killed, what is empty is removed.
        find "$tree$cgroup" -depth -type d | while read -r folder; do
            for _ in $(seq 50); do
                while read -r process; do kill -9 "$process"; done <"$folder/cgroup.procs"
                rmdir "$folder" && break
                sleep 0.1
            done
        done
    done
    awk -v below="$work/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac |
        while read -r folder; do umount -l "$folder"; done
    rm -rf "$work"
} >/dev/null 2>&1
trap 'code=$?; end || true; exit $code' EXIT
