-- Unlogged tables and sequences: what the catalogs say, changing to and from them, and foreign keys between kinds of table.
create unlogged table u (a serial primary key, b text unique, c int generated always as identity);
create table l (a serial primary key, b int);
select relname, relkind, relpersistence from pg_class where relname ~ '^[ul]_' or relname in ('u', 'l') order by relname;
insert into u (b) select 'row ' || i from generate_series(1, 5) i;
insert into l (b) values (1), (2);
\d u
\d u_a_seq

-- Rows, indexes and sequences follow.
alter table u set logged;
select relname, relpersistence from pg_class where relname ~ '^u' order by relname;
insert into u (b) values ('after') returning *;
insert into u (b) values ('row 3');
alter table u set logged;
alter table u set unlogged;
select relname, relpersistence from pg_class where relname ~ '^u' order by relname;
select * from u order by a;
set enable_seqscan = off;
select a from u where b = 'row 2';
reset enable_seqscan;
begin;
alter table u set logged;
insert into u (b) values ('rolled back');
rollback;
select relpersistence, (select count(*) from u) from pg_class where relname = 'u';
insert into u (b) values ('on') returning a;

-- Foreign keys.
create table permanent_to_unlogged (a int references u);
create unlogged table unlogged_to_permanent (a int references l);
create unlogged table unlogged_to_unlogged (a int references u);
create temporary table temporary_to_permanent (a int references l);
create temporary table t (a int primary key);
create table permanent_to_temporary (a int references t);
alter table l add foreign key (b) references u;
alter table unlogged_to_unlogged set logged;
alter table unlogged_to_permanent set logged;
alter table l set unlogged;
alter table unlogged_to_permanent set unlogged;
alter table l set unlogged;
alter table unlogged_to_permanent set logged;
create unlogged table own (a int primary key, b int references own);
alter table own set logged;
alter table own set unlogged;

-- Sequences of their own.
create unlogged sequence s;
select nextval('s'), nextval('s');
select relpersistence from pg_class where relname = 's';
alter sequence s set logged;
select relpersistence, nextval('s') from pg_class where relname = 's';
alter sequence s set unlogged;
alter sequence u_a_seq set logged;

-- What cannot be.
alter table t set logged;
alter table t set unlogged;
create unlogged view v as select 1;
create unlogged materialized view m as select 1;
create view v as select 1 as a;
alter table v set unlogged;
alter table v set access method heap;
create table x (a int) using nothing;
create table x (a int) using btree;
set default_table_access_method = nothing;
show default_table_access_method;
select 1 as a into unlogged made;
create unlogged table made_as as select * from u;
select relname, relpersistence from pg_class where relname ~ '^made' order by relname;

-- Changes across both kinds are one transaction.
begin;
insert into u (b) values ('both');
insert into l (b) values (7);
rollback;
begin;
insert into u (b) values ('both, then');
savepoint s;
insert into l (b) values (8);
delete from u;
rollback to s;
commit;
select (select count(*) from u where b like 'both%'), (select count(*) from l where b > 5);
