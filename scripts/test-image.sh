#!/usr/bin/env bash
# test-image.sh IMAGE.tar: starts the image's entry as process 1 of its root, without a container engine (root; PORT, 15432 at first, is free).
set -euo pipefail
image=$(realpath "$1")
port=${PORT:-15432}
[ "$(id -u)" = 0 ] || { echo "a chroot needs root" >&2; exit 1; }
command -v psql >/dev/null || { echo "psql is needed" >&2; exit 1; }
work=$(mktemp -d)
root=$work/root
engine=
finish() {
    [ -z "$engine" ] || kill -KILL "$engine" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT

json() { python3 -c "import json, sys; print(eval('json.load(open(sys.argv[1]))' + sys.argv[2]))" "$@"; }
digest() { echo "$work/image/blobs/sha256/${1#sha256:}"; }

mkdir -p "$work/image" "$root"
tar -xf "$image" -C "$work/image"
(cd "$work/image/blobs/sha256" && for file in *; do echo "$file  $file"; done | sha256sum --quiet -c)
manifest=$(digest "$(json "$work/image/index.json" "['manifests'][0]['digest']")")
config=$(digest "$(json "$manifest" "['config']['digest']")")
layer=$(digest "$(json "$manifest" "['layers'][0]['digest']")")
[ "sha256:$(gunzip -c "$layer" | sha256sum | cut -d' ' -f1)" = "$(json "$config" "['rootfs']['diff_ids'][0]")" ]
tar --numeric-owner -xzf "$layer" -C "$root"
touch "$root/dev/null" && chmod 666 "$root/dev/null" # as a file: a device needs more rights than a chroot
mapfile -t entry < <(python3 -c "import json, sys; c = json.load(open(sys.argv[1]))['config']; print(*c['Entrypoint'], sep='\n')" "$config")

# start NAME=VALUE ... -- ARGUMENTS: the entry in namespaces of its own for processes and mounts; its words are in $work/said.
start() {
    local variables=()
    while [ "$1" != -- ]; do variables+=("$1"); shift; done
    shift
    env -i PATH=/usr/sbin:/usr/bin PGDATA=/var/lib/melba/data "${variables[@]}" \
        unshare --pid --fork --mount --propagation private --kill-child chroot "$root" /bin/sh -c 'mount -t proc proc /proc; exec "$@"' - "${entry[@]}" "$@" \
        > "$work/said" 2>&1 &
    engine=$!
}
# As process 1, the child of unshare.
first() { pgrep -P "$engine" | head -1; }
await() { # until it says so, a minute at most
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        ! grep -q "$1" "$work/said" || return 0
        kill -0 "$engine" 2>/dev/null || break
        sleep 0.1
    done
    echo "failed: it does not say \"$1\" but:" >&2
    cat "$work/said" >&2
    exit 1
}
# The engine's signal for an end, and the exit code.
stop() {
    local code=0
    kill -INT "$(first)"
    wait "$engine" || code=$?
    engine=
    return $code
}
# A command in the container, as an engine runs one.
inside() { nsenter -t "$(first)" -p -m -r -w /usr/bin/env "$@"; }
check() {
    local what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "failed: $what" >&2; cat "$work/said" >&2; exit 1; fi
}
ends_saying() { ! wait "$engine" && engine= && grep -q "$1" "$work/said"; }
serving() { start "$@" -c port="$port"; await 'ready to accept connections.*\|melba is ready'; }
outside=$(hostname -I | cut -d' ' -f1)
ask() { psql -w -h "${HOST:-$outside}" -p "$port" -At -c "$1" "${@:2}"; }
says() { [ "$(ask "${@:2}" 2>&1)" = "$1" ]; }

start --
check "asks for a password" ends_saying 'POSTGRES_PASSWORD is not set'
start POSTGRES_PASSWORD=secret POSTGRES_INITDB_ARGS=-k --
check "refuses arguments of initdb" ends_saying 'POSTGRES_INITDB_ARGS'
start POSTGRES_PASSWORD=secret POSTGRES_PASSWORD_FILE=/etc/passwd --
check "refuses a variable that is set twice" ends_saying 'both POSTGRES_PASSWORD and'
[ -z "$(ls -A "$root/var/lib/melba/data")" ]

scripts=$root/docker-entrypoint-initdb.d
echo "create table a (n int); insert into a values (1);" > "$scripts/1.sql"
echo "insert into a values (2);" | gzip > "$scripts/2.sql.gz"
printf '%s\n' '#!/bin/bash' 'set -e' 'psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<-END' \
    '    insert into a values (3);' 'END' > "$scripts/3.sh"
chmod +x "$scripts/3.sh"
echo 'melba sql -c "insert into a values (4)"' > "$scripts/4.sh"
echo "it's secret" > "$root/etc/secret"
chmod 644 "$root/etc/secret"
serving POSTGRES_PASSWORD_FILE=/etc/secret POSTGRES_USER="app's" POSTGRES_DB=shop -- -c memory=256MB
await 'the database is made'
sleep 1
export PGUSER="app's" PGPASSWORD="it's secret" PGDATABASE=shop
check "runs scripts of all kinds, in order" says '1,2,3,4' "select string_agg(n::text, ',') from a"
check "passes options on" says 256MB 'show memory'
check "the account is not root" test "$(ps -o uid= -p "$(pgrep -P "$(first)" | head -1)" | tr -d ' ')" = 999
check "a wrong password is refused" says "$(PGPASSWORD=wrong ask 'select 1' 2>&1 | grep 'password authentication failed')" 'select 1' -d 'dbname=shop password=wrong'
check "the first superuser has no password" bash -c "! psql -w -h $outside -p $port -U postgres -c 'select 1' postgres 2>/dev/null"
check "the health check is well" inside "POSTGRES_USER=app's" PGPORT="$port" /usr/bin/melba-entry health
check "ends well when it is stopped" stop
check "says so" grep -q 'database system is shut down' "$work/said"
serving POSTGRES_PASSWORD=other --
check "keeps data and password, and runs no script again" says 4 'select count(*) from a'
# An orphan whose parent has ended is process 1's.
inside /bin/sh -c '(sleep 0.2 &)'
sleep 1
check "reaps orphans" bash -c "! ps --ppid $(first) -o stat= | grep -q Z"
check "ends well again" stop

rm -rf "$root"/var/lib/melba/data/* "$scripts"/*
echo "select nonsense;" > "$scripts/1.sql"
start POSTGRES_HOST_AUTH_METHOD=trust -- -c port="$port"
check "a script that fails ends it" ends_saying 'nonsense'
start POSTGRES_HOST_AUTH_METHOD=trust -- -c port="$port"
check "what is unfinished is not served" ends_saying 'first start failed'
rm -rf "$root"/var/lib/melba/data/* "$scripts"/*
serving POSTGRES_HOST_AUTH_METHOD=trust --
await 'the database is made'
sleep 1
unset PGPASSWORD
check "trust asks for nothing" says postgres 'select current_user' -U postgres postgres
check "ends well at last" stop
start -- melba --version
check "runs other commands" bash -c "sleep 1; grep -q '^melba ' '$work/said'"
wait "$engine"
engine=
