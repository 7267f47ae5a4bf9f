-- Many rows at once into tables that have indexes: whose is a key?
create table p (id bigint primary key, phone text, n int check (n > 0));
create unique index p_phone on p (phone);
create index p_n on p (n);
insert into p select i, 'x' || i, i from generate_series(1, 20000) i;
select count(*), min(id), max(id) from p;
-- The first row whose key is taken is the one that is named: by a row that is there, by another of the statement, in either index.
insert into p select i, 'x' || i, i from generate_series(30000, 15000, -1) i;
insert into p select i, 'x' || (i - 100), i from generate_series(20050, 50000) i;
insert into p select case when i > 45000 then i - 10 else i end, 'q' || i, i from generate_series(30000, 60000) i;
insert into p select i, 'q' || least(i, 45000), i from generate_series(30000, 60000) i;
-- Nulls are not equal.
insert into p select i, null, i from generate_series(40001, 60000) i;
select count(*), count(phone) from p;
-- Before errors of later rows.
insert into p select case when i = 70050 then null else i end, 'q' || i, i from generate_series(70001, 90000) i;
insert into p select case when i = 75000 then 5 else i end, 'q' || i, 80000 - i from generate_series(70001, 90000) i;
insert into p select case when i = 71000 then 5 else i end, 'q' || i, 1 + 1 / (80000 - i) from generate_series(70001, 90000) i;
insert into p select case when i = 85000 then 5 else i end, 'q' || i, 1 + 1 / (80000 - i) from generate_series(70001, 90000) i;
select count(*), count(phone), sum(id), sum(n) from p;
-- COPY knows the line.
\copy p (id, phone) from program 'seq 100001 120000 | awk ''{ if ($1 == 117000) print "33\tz" $1; else print $1 "\tz" $1 }'''
\copy p (id, phone) from program 'seq 100001 120000 | awk ''{ if ($1 == 117000) print $1 "\tz116999"; else print $1 "\tz" $1 }'''
\copy p (id, phone) from program 'seq 100001 120000 | awk ''{ print $1 ",\"z\n" $1 "\"" } END { print "33,z" }''' (format csv)
\copy p (id, phone) from program 'seq 100001 120000 | awk ''{ print $1 "\tz" $1 } END { print "33\tz" }''' where id % 3 = 0
\copy p (id, phone) from program 'seq 100001 120000 | awk ''{ if ($1 == 110000) print "33\tz"; else print $1 "\tz" $1 } END { print "what" }'''
select count(*) from p where id > 100000;
-- What a savepoint takes back is free again, and a row that is gone leaves its key.
begin;
savepoint a;
insert into p select i, 'z' || i, i from generate_series(100001, 120000) i;
select count(*) from p;
select * from p where id = 100500;
select id from p where phone = 'z100700';
rollback to a;
select count(*) from p;
select * from p where id = 100500;
insert into p select i, 'z' || i, i from generate_series(100001, 120000) i;
delete from p where id between 100100 and 110200;
insert into p select i, 'z' || i, i from generate_series(100100, 110200) i;
update p set phone = 'y' || id where id % 1000 = 1;
commit;
select count(*), count(phone), sum(id) from p;
select count(*) from p where phone like 'z1%';
select count(*) from p where n between 100 and 40300;
insert into p select i, 'z' || i, i from generate_series(110001, 130000) i on conflict do nothing;
insert into p select i, 'w' || i, i from generate_series(110001, 130000) i on conflict (id) do update set phone = 'v' || excluded.id;
select count(*), count(phone) from p where id > 100000;
-- Deferrable constraints, foreign keys, generated columns, expressions, predicates, temporary tables.
create table d (id int primary key deferrable initially deferred, x int unique);
insert into d select i, i from generate_series(1, 20000) i;
insert into d select i, i + 100000 from generate_series(20000, 40000) i;
insert into d select i, i from generate_series(20000, 40000) i;
begin;
insert into d select i, i + 100000 from generate_series(20000, 40000) i;
delete from d where id = 20000 and x = 20000;
commit;
select count(*), sum(x) from d;
create table f (id int references p, a int unique);
insert into f select i, i from generate_series(1, 20000) i;
insert into f select i, i from generate_series(1, 20001) i;
insert into f select i, i + 50000 from generate_series(10000, 25000) i;
select count(*) from f;
create table g (a int, b int generated always as (a * 2) stored unique, c int check (c < 100000) not null);
insert into g select i, default, i from generate_series(1, 20000) i;
insert into g (a, c) select i, i from generate_series(1, 20000) i;
insert into g (a, c) select i, i from generate_series(-20000, 10000) i;
insert into g (a, c) select i, i from generate_series(90000, 110000) i;
select count(*), sum(b) from g;
create table e (a int, b text);
create unique index on e (lower(b)) where a > 10;
insert into e select i, 'B' || i from generate_series(1, 20000) i;
insert into e values (11, 'b5');
insert into e values (12, 'b50');
insert into e select i, 'b' || i from generate_series(1, 20000) i;
create table o (a int, unique nulls not distinct (a));
insert into o select nullif(i, 77) from generate_series(1, 20000) i;
insert into o select i from generate_series(20001, 40000) i union all select null;
create temp table t (id int primary key);
insert into t select generate_series(1, 30000);
insert into t select generate_series(1, 30000);
select count(*) from t where id between 100 and 300;
drop table f, p, d, g, e, o;
