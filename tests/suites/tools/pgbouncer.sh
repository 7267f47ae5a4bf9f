#!/bin/sh
# pgbouncer.sh PROGRAM MODE PORT: ten clients of pgbench share three connections, but in mode session, where each keeps its own.
set -e
folder=$(mktemp -d)
psql -Xqc "drop role if exists pooled" -c "create role pooled superuser login password 'secret'" 2>/dev/null
psql -XAtc "select to_regclass('pgbench_accounts') is null" | grep -q f || pgbench -qi 2>/dev/null
pool=$([ "$2" = session ] && echo 20 || echo 3)
echo '"pooled" "secret"' >"$folder/users.txt"
cat >"$folder/pgbouncer.ini" <<INI
[databases]
$PGDATABASE = host=$PGHOST port=$PGPORT
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $3
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $folder/users.txt
pool_mode = $2
default_pool_size = $pool
server_reset_query_always = 1
logfile = $folder/log
pidfile = $folder/pid
INI
chmod -R a+rwX "$folder"
# It does not run as root.
[ "$(id -u)" != 0 ] || set -- "$1" "$2" "$3" -u nobody
"$1" -q -d ${4:+$4 $5} "$folder/pgbouncer.ini"
trap 'cat "$folder/log"; kill $(cat "$folder/pid"); rm -rf "$folder"' EXIT
export PGHOST=127.0.0.1 PGPORT="$3" PGUSER=pooled PGPASSWORD=secret
for _ in $(seq 50); do psql -XAtc 'select 1' >/dev/null 2>&1 && break; sleep 0.2; done
psql -XAtc 'select 1' -c 'select count(*) from customers'
for protocol in simple extended; do
    pgbench -n -c 10 -t 20 -M $protocol $([ "$2" = statement ] && echo -S) 2>&1 | tee "$folder/pgbench"
    grep -q 'actually processed: 200/200' "$folder/pgbench"
done
# What a session sets ends with it.
psql -XAtc "set application_name = 'left behind'" >/dev/null
for _ in 1 2 3 4; do psql -XAtc 'show application_name' | grep -q 'left behind' && exit 1; done
[ "$2" != session ] || [ "$(psql -XAt -c 'set statement_timeout = 1234' -c 'show statement_timeout' | tail -1)" = 1234ms ]
[ "$2" = statement ] || [ "$(psql -XAtc 'begin; select 2 + 2; commit' | grep 4)" = 4 ]
