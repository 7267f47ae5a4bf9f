#!/bin/sh
# pg_activity.sh PROGRAM FOLDER: shows a statement that runs and one that waits, in a terminal of script(1).
set -e
psql -Xqc 'begin; lock table customers; select pg_sleep(20) as is_seen; commit' >/dev/null &
sleep 1
psql -Xqc 'select count(*) from customers as waits_for_it' >/dev/null &
rm -f "$2/screen"
# It asks the terminal first, and waits for answers. The second screen has what waits, the third what blocks.
{ sleep 14; printf '2'; sleep 3; printf 'q'; sleep 1; } |
    TERM=xterm timeout 40 script -qec "stty cols 250 rows 40; $1 -h $PGHOST -p $PGPORT -U $PGUSER -d $PGDATABASE" "$2/screen" >/dev/null
wait
grep -q is_seen "$2/screen"
grep -q waits_for_it "$2/screen"
grep -q 'WAITING QUERIES' "$2/screen"
! grep -q Traceback "$2/screen"
