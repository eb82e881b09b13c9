# Installs packages of the distribution; sourced by the scripts beside it.

# Takes COMMAND:PACKAGE words and installs the packages whose commands are missing. Words of packages
# without a command of their own are in `missing` already.
install_missing() {
    local pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    [ ${#missing[@]} -eq 0 ] && return
    if [ "$(id -u)" -ne 0 ]; then
        echo "error: missing packages: ${missing[*]}" >&2
        echo "hint: apt-get install ${missing[*]}, or run this script as root" >&2
        exit 1
    fi
    echo "== installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}
missing=()
