#!/usr/bin/env bash
# Installs what is missing: `build` for compiling (pg_query is C and runs bindgen), `run` for connecting, `test` for the tests' clients,
# `console` for the test of the console in a browser.
# Says nothing and does nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { # a command or file, and the package that brings it
    command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || missing+=("$2")
}

install_missing() {
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || { echo "please install: ${missing[*]}" >&2; exit 1; }
    local sudo=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { echo "please install as root: ${missing[*]}" >&2; exit 1; }
        sudo="sudo"
    fi
    echo "installing ${missing[*]}"
    $sudo apt-get update -qq
    apt() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
    case " ${missing[*]} " in
    *" postgresql "*)
        # Only its programs are wanted: no cluster that is started at every boot and takes port 5432.
        apt postgresql-common
        local conf=/etc/postgresql-common/createcluster.conf
        $sudo cp -a "$conf" "$conf.melba"
        echo "create_main_cluster = false" | $sudo tee -a "$conf" >/dev/null
        apt "${missing[@]}"
        $sudo mv "$conf.melba" "$conf"
        ;;
    *) apt "${missing[@]}" ;;
    esac
    missing=()
}

for part in "$@"; do
    case "$part" in
    build)
        command -v cargo >/dev/null || { echo "a Rust toolchain is needed: https://rustup.rs" >&2; exit 1; }
        need gcc gcc
        need make make
# bindgen wants the library and clang's own headers: only the -dev package brings both.
        compgen -G "/usr/lib/llvm-*/lib/libclang.so" >/dev/null || missing+=(libclang-dev)
        ;;
    run)
        # A server serves without it.
        if ! command -v psql >/dev/null && [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
            echo "to connect with psql, install as root: postgresql-client (or use: melba sql)" >&2
            continue
        fi
        need psql postgresql-client
        ;;
    test)
        need psql postgresql-client
        # Debian puts pgbench outside PATH, behind the version.
        command -v pgbench >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/pgbench" >/dev/null || missing+=(postgresql-contrib)
        # A real PostgreSQL, to compare with.
        compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || missing+=(postgresql)
        need python3 python3
        need curl curl
        need pgbadger pgbadger
        python3 -c "import ensurepip" 2>/dev/null || missing+=(python3-venv)
        ;;
    console)
        need chromium chromium
        need node nodejs
        need npm npm
        ;;
    *)
        echo "usage: $0 [build] [run] [test] [console]" >&2
        exit 2
        ;;
    esac
    install_missing
done
