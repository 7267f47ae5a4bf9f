#!/bin/sh
# make.sh MELBA NAME: keeps a data directory that a build of an earlier version writes, as NAME.tar.gz. Run once a format version, before it is
# raised; the file stays as it is for ever.
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill -KILL $server 2>/dev/null || true; rm -rf "$work"' EXIT
port=${PORT:-15433}
"$1" serve --data "$work/data" --listen "127.0.0.1:$port" > "$work/log" 2>&1 &
server=$!
for _ in $(seq 200); do grep -q 'is ready' "$work/log" && break; sleep 0.1; done
for content in content more; do
    psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$port" -U postgres -d postgres -f "$here/$content.sql" > /dev/null
done
# As a crash leaves it, with a log to replay.
kill -KILL $server
wait $server 2>/dev/null || true
rm -rf "$work/data/temp" "$work/data/reserve" "$work"/data/*.lock "$work"/data/wal/spare*
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=2000-01-01 --sparse -C "$work" -cf - data | gzip -9n > "$here/$2.tar.gz"
ls -l "$here/$2.tar.gz"
