#!/bin/sh
# pgloader.sh PROGRAM FOLDER: loads a CSV file, and a database of SQLite.
set -e
url=postgresql://$PGUSER@$PGHOST:$PGPORT/$PGDATABASE
printf 'id,name,price,day\n1,"a, ""b""",1.5,2024-01-02\n2,c,,2024-02-29\n' >"$2/l.csv"
cat >"$2/csv.load" <<LOAD
LOAD CSV FROM '$2/l.csv' (id, name, price [null if blanks], day) INTO $url?loaded (id, name, price, day)
WITH skip header = 1, fields optionally enclosed by '"', fields terminated by ',';
LOAD
psql -Xqc 'create table loaded (id int primary key, name text, price numeric, day date)'
"$1" --root-dir "$2/pgloader" "$2/csv.load"
[ "$(psql -XAtc 'select name, price, day from loaded order by id' | tr '\n' ' ')" = 'a, "b"|1.5|2024-01-02 c||2024-02-29 ' ]
python3 - "$2/s.db" <<'PYTHON'
import os, sqlite3, sys
if os.path.exists(sys.argv[1]):
    os.remove(sys.argv[1])
database = sqlite3.connect(sys.argv[1])
database.executescript("""
create table authors (id integer primary key autoincrement, name text not null, rate real, picture blob);
create table books (id integer primary key, author integer references authors (id), price numeric(10, 2), printed datetime);
create index books_author on books (author);
create unique index authors_name on authors (name);""")
database.executemany("insert into authors (name, rate, picture) values (?, ?, ?)", [(f"n{i}", i / 8, bytes([i % 256]) * 3) for i in range(1000)])
database.executemany("insert into books (author, price, printed) values (?, ?, '2024-02-29 12:00:00')", [(i % 1000 + 1, i / 100) for i in range(5000)])
database.commit()
PYTHON
"$1" --root-dir "$2/pgloader" "sqlite://$2/s.db" "$url"
[ "$(psql -XAtc 'select count(*), sum(price), min(printed)::date from books')" = '5000|124975.00|2024-02-29' ]
[ "$(psql -XAtc "select encode(picture, 'hex'), rate from authors where name = 'n7'")" = '070707|0.875' ]
# The foreign key and the sequence are there, too.
psql -Xqc 'insert into books (id, author) values (9999, 77777)' 2>&1 | grep -q 'violates foreign key constraint'
[ "$(psql -XAtqc "insert into authors (name) values ('new') returning id")" = 1001 ]
