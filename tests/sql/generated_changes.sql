-- What generated columns and joins by names of columns make of changes of a table.

-- DROP DEFAULT comes before a change of the type, SET DEFAULT after it.
create table defaults(a text default 'x', b text);
insert into defaults values ('5', '6');
alter table defaults alter a drop default, alter a type int using a::int, alter a set default 9;
alter table defaults alter b type int using b::int, alter b set default 8, alter b drop default;
insert into defaults default values returning *;
drop table defaults;

-- UPDATE OF a generated column: the statement assigns what it is computed from.
create table computed(a int, b int, s int generated always as (a * 2) stored);
create function tell() returns trigger language plpgsql as $$ begin raise notice '% % %', tg_name, old, new; return new; end $$;
create trigger of_s after update of s on computed for each row execute function tell();
insert into computed values (1, 1);
update computed set a = 2;
update computed set b = 2;
create trigger first before update on computed for each row execute function tell();
update computed set b = 3;
drop table computed;
create table parts(k int, a int, s int generated always as (a * 2) stored) partition by list (k);
create table part_1 partition of parts for values in (1);
create trigger of_s after update of s on parts for each row execute function tell();
insert into parts values (1, 1);
update parts set a = 4;
update parts set k = 1;
merge into parts using (values (1)) v(k) on parts.k = v.k when matched then update set a = 9;
drop table parts;
drop function tell;

-- A view that joins by a name keeps its columns, whatever they are called later.
create table a(x int, p int);
create table b(x int, q int);
create table c(k int, q int);
insert into a values (1, 2);
insert into b values (1, 3);
insert into c values (5, 3);
create view v1 as select * from a join b using (x);
create view v2 as select x, q from a full join b using (x);
create view v3 as select * from a natural join b;
create view v4 as select * from a join b using (x) join c using (q);
create view v5 as select * from v1 join c using (q);
alter table b rename column x to y;
select * from v1; select * from v2; select * from v3; select * from v4; select * from v5;
alter table b add column x int;
alter table a add column q int;
select * from v1; select * from v2; select * from v3; select * from v4; select * from v5;
alter table a rename column x to z;
alter view v1 rename column q to qq;
alter table b add column k int;
select * from v1; select * from v2; select * from v3; select * from v4; select * from v5;
select pg_get_viewdef('v1'), pg_get_viewdef('v2');
alter table b drop column x;
select * from v1; select * from v4;
drop view v5, v4, v3, v2, v1;
drop table a, b, c;

-- A view's definition has the names of its columns.
create table base(a int, b text);
create view named as select a, b from base;
alter view named rename column a to aa;
create view over_named as select * from named;
alter view over_named rename column b to bb;
alter view named rename column b to bx;
select pg_get_viewdef('named') ~ 'a AS aa,', pg_get_viewdef('over_named') ~ 'bx AS bb';
create view united as select a from base union select 1;
alter view united rename column a to q;
select pg_get_viewdef('united') ~ 'a AS q.* 1 AS q';
create materialized view kept as select a from base;
alter materialized view kept rename column a to z;
select pg_get_viewdef('kept') ~ 'a AS z';
drop table base cascade;

-- What reads an attribute keeps reading it when it is renamed.
create type pair as (x int, y int);
create table pairs(z pair, w pair[]);
insert into pairs values ((1, 2), array[(3, 4)::pair]);
create view v1 as select (z).x, (w[1]).y as yy from pairs where (z).x > 0;
create view v2 as select (q.z).x from (select * from pairs) q;
create view v3 as select (z).* from pairs;
create function takes(pairs) returns int language sql begin atomic select ($1.z).x; end;
create index on pairs(((z).x));
alter table pairs add check ((z).x > 0);
create rule r as on update to v1 do instead update pairs set z = row(new.x, 1) where (z).x = old.x;
alter type pair rename attribute x to xx;
alter type pair rename attribute y to yx;
select * from v1; select * from v2; select * from v3;
select takes(pairs) from pairs;
insert into pairs values ((-1, 2));
update v1 set x = 9;
select * from pairs;
select pg_get_viewdef('v1') ~ 'z\)\.xx AS x,', pg_get_viewdef('v2') ~ 'z\)\.xx AS x', pg_get_viewdef('v3') ~ 'z\)\.yx AS y';
select indexdef from pg_indexes where tablename = 'pairs';
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'pairs'::regclass;
set client_min_messages = warning;
drop table pairs cascade;
reset client_min_messages;
drop type pair;

-- A constraint goes with a column that its index includes.
create table included(a int, b int, c int, d int, unique (a) include (b, c));
create unique index included_d on included(d) include (c);
alter table included drop column c;
select indexdef from pg_indexes where tablename = 'included';
select conname from pg_constraint where conrelid = 'included'::regclass and contype = 'u';
drop table included;

-- COLLATE around an index's expression is the key's collation.
create table collated(a text, b text);
create index on collated((a collate "POSIX"), (lower(b) collate "C"), (b collate "C") collate "POSIX");
select indexdef from pg_indexes where tablename = 'collated';
drop table collated;

-- A materialized view without rows cannot be read.
create materialized view empty as select 1 as a with no data;
select * from empty;
create view over_empty as select a from empty;
select * from over_empty;
refresh materialized view concurrently empty;
refresh materialized view empty;
select * from over_empty;
refresh materialized view concurrently empty;
create unique index on empty(a);
refresh materialized view concurrently empty with no data;
refresh materialized view concurrently empty;
select * from empty;
drop materialized view empty cascade;

-- The collation of a recursive query's first term.
with recursive r(a) as (select 'x' collate "C" union select 'y' from r) select * from r;
with recursive r(a) as (select 'x' union select 'y' collate "C" from r) select * from r;

-- Owners, comments
create role changes_ann;
create table owned(a int primary key);
set client_min_messages = error;
alter index owned_pkey owner to changes_ann;
reset client_min_messages;
select relowner = (select relowner from pg_class where relname = 'owned') from pg_class where relname = 'owned_pkey';
create sequence counted;
comment on column counted.last_value is 'c';
comment on column owned_pkey.a is 'c';
drop table owned;
drop sequence counted;
drop role changes_ann;

-- Many digits
select length((9e131071 + x)::text) from generate_series(1, 2) x;
create table many(a numeric);
insert into many select 9e131071 + x from generate_series(1, 2) x;
select length(a::text) from many;
drop table many;
