#!/bin/sh
# mysql.sh PROGRAM FOLDER PORT: pgloader loads a database of MySQL 9, which MYSQL_ADDRESS (host:port) and MYSQL (its client as root) name.
set -e
here=$(cd "$(dirname "$0")" && pwd)
$MYSQL <<'SQL'
drop database if exists shop;
create database shop;
use shop;
create table authors (id int unsigned not null auto_increment primary key, name varchar(100) not null unique, rate double, picture blob,
    made datetime default current_timestamp, flag tinyint(1), kind enum('a', 'b'));
create table books (id bigint primary key, author int unsigned, price decimal(10, 2), printed date, doc json, index books_author (author),
    foreign key (author) references authors (id));
insert into authors (name, rate, picture, flag, kind) values ('ann', 1.5, x'00ff07', 1, 'a'), ('bob', null, null, 0, 'b'), ('mü', 2, x'01', null, null);
insert into books values (1, 1, 9.99, '2024-02-29', '{"a": 1}'), (2, 2, 0.5, null, null);
drop user if exists 'loader'@'%';
create user 'loader'@'%' identified by '';
grant all on shop.* to 'loader'@'%';
SQL
python3 "$here/mysql_proxy.py" "$3" "${MYSQL_ADDRESS%:*}" "${MYSQL_ADDRESS##*:}" &
proxy=$!
trap 'kill $proxy' EXIT
sleep 1
"$1" --root-dir "$2/pgloader" "mysql://loader@127.0.0.1:$3/shop" "postgresql://$PGUSER@$PGHOST:$PGPORT/$PGDATABASE"
[ "$(psql -XAtc "select id, name, rate, picture, flag, kind from shop.authors order by id" | tr '\n' ' ')" = '1|ann|1.5|\x00ff07|t|a 2|bob|||f|b 3|mü|2|\x01|| ' ]
[ "$(psql -XAtc "select author, price, printed, doc->>'a' from shop.books order by id" | tr '\n' ' ')" = '1|9.99|2024-02-29|1 2|0.50|| ' ]
psql -Xqc 'insert into shop.books (id, author) values (3, 7)' 2>&1 | grep -q 'violates foreign key constraint'
[ "$(psql -XAtqc "insert into shop.authors (name) values ('new') returning id")" = 4 ]
