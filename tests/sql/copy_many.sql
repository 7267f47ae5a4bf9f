-- COPY of many rows: what is unusual amid thousands of plain lines, and bulk loads that end well or do not.
create table t (id bigint, a int, b text, v varchar(5), d date default '2024-01-01');
\copy t (id, a, b) from program 'seq 1 9000 | awk ''{ if ($1 == 5000) print $1 "\t\\N\ta\\tb\\\\"; else if ($1 % 1000 == 7) print $1 "\t" $1 % 7 "\t\\N"; else if ($1 == 6000) print "  " $1 "\t+6\tspaces"; else print $1 "\t" $1 % 7 "\tname " $1 % 13 }'''
select count(*), sum(id), sum(a), count(b), count(distinct b), min(d), max(d) from t;
select * from t where id in (4999, 5000, 5001, 6000) or b is null and id < 3000 order by id;
-- An error amid them has its line, and leaves nothing.
\copy t (id, a, b) from program 'seq 1 9000 | awk ''{ if ($1 == 7003) print $1 "\tx\ty"; else print $1 "\t1\ty" }'''
\copy t (id, a, b) from program 'seq 1 9000 | awk ''{ if ($1 == 8192) print $1 "\t1"; else print $1 "\t1\ty" }'''
\copy t (id, a, b) from program 'seq 1 9000 | awk ''{ if ($1 == 4097) print $1 "\t1\ty\tz"; else print $1 "\t1\ty" }'''
\copy t (id, v) from program 'seq 1 9000 | awk ''{ if ($1 == 2222) print $1 "\ttoo long"; else print $1 "\tshort" }'''
\copy t (id, a) from program 'seq 1 9000 | awk ''{ if ($1 == 100) printf "%d\t1\r\n", $1; else print $1 "\t1" }'''
\copy t (id, b) from program 'seq 1 9000 | awk ''{ if ($1 == 3000) printf "%d\t\\xff\n", $1; else print $1 "\t1" }'''
\copy t (id, a) from program 'seq 1 9000 | awk ''{ if ($1 == 8000) print $1 "\t3000000000"; else print $1 "\t1" }'''
select count(*) from t;
-- Other markers and delimiters, and an end amid the input.
truncate t;
\copy t (id, b) from program 'seq 1 9000 | awk ''{ if ($1 % 2) print $1 "|nil"; else print $1 "|null" }''' (delimiter '|', null 'nil')
select count(*), count(b), min(b), max(b) from t;
\copy t (id, v) from program '(trap "" PIPE; seq 1 5000 | sed "s/$/\t/"; echo "\\."; seq 1 10 2>/dev/null; true)' (null '')
select count(*), count(v) from t;
-- Into an index, also twice the same key.
create table u (id bigint primary key, b text);
\copy u from program 'seq 1 9000 | sed "s/$/\tx/"'
\copy u from program '(seq 9001 20000; echo 77) | sed "s/$/\tx/"'
\copy u from program '(seq 9001 20000; echo 12345) | sed "s/$/\tx/"'
select count(*), sum(id) from u;
begin;
\copy u from program 'seq 9001 30000 | sed "s/$/\tx/"'
savepoint s;
\copy u from program 'seq 30001 50000 | sed "s/$/\tx/"'
select count(*) from u where id > 29990 and id < 30010;
rollback to s;
select count(*) from u;
create table w as select * from u;
insert into w select id + 100000, b from u;
select count(*), sum(id) from w;
rollback;
select count(*), sum(id) from u;
insert into u select id + 9000, b from u;
insert into u select id + 18000, b from u;
select count(*), sum(id) from u;
-- Indexes over more rows than are entered one by one. Which of several equal keys is met first is nobody's promise.
\set VERBOSITY terse
create unique index u_b_id on u (b, id);
create unique index u_b on u (b);
alter table u add c int, add d int;
create unique index u_c on u (c);
create unique index u_d on u (c) nulls not distinct;
create unique index u_id_c on u ((id / 2), c);
create unique index u_expr on u ((id / 2));
update u set d = id % 30000 where id <> 77;
create unique index u_d on u (d) where id > 30000;
create unique index u_d_all on u (d);
create index u_b_desc on u (b desc, id desc);
select id from u where b = 'x' order by b desc, id desc limit 3;
select count(*) from u where id between 20000 and 25000;
