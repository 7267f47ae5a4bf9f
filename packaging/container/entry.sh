#!/bin/bash
# Starts the container: makes the database on an empty volume, as the variables of PostgreSQL's image ask for, then becomes the server.
# The variables and the order of steps are in docs/handbook/container.md.
set -euo pipefail

die() { echo "melba: $*" >&2; exit 1; }

# The value of the variable NAME, or of the file that NAME_FILE names (a secret).
variable() {
    local name=$1 file=${1}_FILE value=${2:-}
    if [ -n "${!name:-}" ] && [ -n "${!file:-}" ]; then die "both $name and $file are set"; fi
    if [ -n "${!name:-}" ]; then value=${!name}; elif [ -n "${!file:-}" ]; then value=$(< "${!file}"); fi
    printf -v "$name" %s "$value"
    export "${name?}"
    unset "$file"
}

# Text as a literal, and as an identifier, of SQL.
literal() { printf "'%s'" "${1//\'/\'\'}"; }
identifier() { printf '"%s"' "${1//\"/\"\"}"; }

sql() { melba sql --quiet -v ON_ERROR_STOP=1 "$@"; }

# A server that only this container's programs reach, for as long as the database is made.
start_private() {
    melba serve --data "$PGDATA" "$@" -c listen_addresses= -c unix_socket_directories=/run/melba -c port=5432 > /run/melba/first-start &
    private=$!
    until PGUSER=postgres PGDATABASE=postgres sql -c 'select 1' >/dev/null 2>&1; do
        kill -0 $private 2>/dev/null || die "the server has not started"
        sleep 0.1
    done
}

stop_private() {
    kill -INT $private
    wait $private || die "the server has not stopped well"
    rm -f /run/melba/first-start
}

# Anybody outside needs the password, or what POSTGRES_HOST_AUTH_METHOD says instead. Programs in the container need none.
write_rules() {
    local method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
    [ "$method" != trust ] || echo "melba: POSTGRES_HOST_AUTH_METHOD is trust: whoever reaches the port needs no password" >&2
    printf '# type  database  role  address       method\nlocal   all       all                 trust\n' > "$PGDATA/pg_hba.conf"
    printf 'host    all       all   127.0.0.1/32  trust\nhost    all       all   ::1/128       trust\n' >> "$PGDATA/pg_hba.conf"
    printf 'host    all       all   all           %s\n' "$method" >> "$PGDATA/pg_hba.conf"
}

make_role_and_database() {
    local password=NULL
    [ -z "$POSTGRES_PASSWORD" ] || password=$(literal "$POSTGRES_PASSWORD")
    local role verb=create
    role=$(identifier "$POSTGRES_USER")
    [ "$POSTGRES_USER" != postgres ] || verb=alter
    # Through a pipe: what is on a command line all processes can read.
    echo "$verb role $role login superuser password $password;" | PGUSER=postgres PGDATABASE=postgres sql -f -
    if [ "$POSTGRES_DB" != postgres ]; then
        echo "create database $(identifier "$POSTGRES_DB") owner $role;" | PGUSER=postgres PGDATABASE=postgres sql -f -
    fi
}

run_scripts() {
    local script
    for script in /docker-entrypoint-initdb.d/*; do
        case $script in
        *.sh)
            echo "melba: running $script"
            # As in PostgreSQL's image: a program runs by itself, other text in this shell.
            # shellcheck disable=SC1090
            if [ -x "$script" ]; then "$script"; else . "$script"; fi
            ;;
        *.sql) echo "melba: running $script" && sql -f "$script" ;;
        *.sql.gz) echo "melba: running $script" && gunzip -c "$script" | sql -f - ;;
        *.sql.xz) echo "melba: running $script" && xz -dc "$script" | sql -f - ;;
        '/docker-entrypoint-initdb.d/*') ;;
        *) echo "melba: not run, neither .sh nor .sql, .sql.gz, .sql.xz: $script" >&2 ;;
        esac
    done
}

# The database of a new volume. A start that is cut short leaves a mark: what it has made is never served.
make_database() {
    [ -z "${POSTGRES_INITDB_ARGS:-}${POSTGRES_INITDB_WALDIR:-}" ] ||
        die "POSTGRES_INITDB_ARGS and POSTGRES_INITDB_WALDIR are not supported: there is no initdb; give settings as -c NAME=VALUE"
    if [ -z "$POSTGRES_PASSWORD" ] && [ "${POSTGRES_HOST_AUTH_METHOD:-}" != trust ]; then
        die "the database is not made yet, and POSTGRES_PASSWORD is not set
  hint: Set it (-e POSTGRES_PASSWORD=...), or POSTGRES_HOST_AUTH_METHOD=trust to let everybody in without one."
    fi
    echo > "$PGDATA/unfinished.conf"
    export PGHOST=/run/melba PGUSER=$POSTGRES_USER PGDATABASE=$POSTGRES_DB
    unset PGPORT PGPASSWORD
    start_private "$@"
    make_role_and_database
    run_scripts
    stop_private
    write_rules
    rm "$PGDATA/unfinished.conf"
    unset PGHOST PGUSER PGDATABASE
    echo "melba: the database is made"
}

main() {
    if [ "${1:-}" = health ]; then
        exec melba sql -t -c 'select 1' "host=/run/melba user=${POSTGRES_USER:-postgres} dbname=postgres" >/dev/null
    fi
    # Options are the server's; another program runs as it is.
    case ${1:-} in '' | -*) set -- melba serve "$@" ;; esac
    [ "$1 ${2:-}" = 'melba serve' ] || exec "$@"
    shift 2
    export PGDATA=${PGDATA:-/var/lib/melba/data}
    if [ "$(id -u)" = 0 ]; then
        mkdir -p "$PGDATA" /run/melba
        chown melba:melba /run/melba
        find "$PGDATA" \! -user melba -exec chown melba:melba {} +
        chmod 700 "$PGDATA"
        exec setpriv --reuid melba --regid melba --init-groups "$0" melba serve "$@"
    fi
    variable POSTGRES_PASSWORD
    variable POSTGRES_USER postgres
    variable POSTGRES_DB "$POSTGRES_USER"
    [ ! -e "$PGDATA/unfinished.conf" ] ||
        die "$PGDATA holds a database whose first start failed
  hint: Remove the volume, mend what failed, and start again."
    [ -e "$PGDATA/MANIFEST" ] || make_database "$@"
    unset POSTGRES_PASSWORD
    exec melba serve --data "$PGDATA" -c 'listen_addresses=*' -c unix_socket_directories=/run/melba "$@"
}

main "$@"
