-- Columns of equal names in FROM, and aliases that list the columns of an item whose tables get others.
create table ta (id int, x int, u int);
create table tb (id int, y int);
insert into ta values (1, 2, 9);
insert into tb values (1, 3);
create view doubled (a, b, c, d, e) as select * from (ta join tb on ta.id = tb.id) as j;
select pg_get_viewdef('doubled');
select * from doubled;
create view named_twice (a, b, c, d, e) as select * from (ta join tb on ta.id = tb.id) as j(a, b, a, a_1, d);
select pg_get_viewdef('named_twice');
select * from named_twice;
create view nested (a, b, c, d, e, f, g, h) as select * from ((ta join tb on true) as j join ta as k on true);
select pg_get_viewdef('nested');
select * from nested;
create view subquery (a, b, c, d, e) as select * from (select * from ta join tb on true) as j where j is not null;
select * from subquery;
create view of_with (a, b, c, d, e) as with q as (select * from ta join tb on true) select * from q;
select * from of_with;
create view aliased_with as with q(x, y) as (select 1 as a, 2 as b) select k.m, k.y from q as k(m);
select * from aliased_with;
create view of_values (a, b) as select * from (values (1, 2)) as v(q, q);
create view of_functions (a, b, c) as select * from rows from (generate_series(1, 2), generate_series(3, 4)) with ordinality;
select * from of_functions;

-- The row of a join has its columns' names.
create view whole as select row_to_json(j) as r, row_to_json(row(j, 1)) as rr from (ta natural full join tb) as j;
select pg_get_viewdef('whole');
select * from whole;
create view whole_subquery as select row_to_json(s) as r, s.y from (select * from ta join tb on true) as s;
select r from whole_subquery;
create view whole_doubled as select row_to_json(j) as r, j.y from (ta join tb on true) as j;
select * from whole_doubled;
create view field as select (j).x as k from (ta natural full join tb) as j;
select pg_get_viewdef('field');
create view of_using as select row_to_json(m) as k from (ta full join tb using (id) as m);
select * from of_using;

-- Columns come and go.
create view placed as select j.d, j.e from (ta join tb on ta.id = tb.id) as j(a, b, c, d, e);
create view merged as select * from (ta join tb using (id)) as j(a, b, c, d);
create view over_view as select j.* from (doubled join tb on true) as j(a, b, c, d, e, f, g);
create materialized view kept as select j.e from (ta join tb on ta.id = tb.id) as j(a, b, c, d, e);
create function body() returns int return (select j.e from (ta join tb on ta.id = tb.id) as j(a, b, c, d, e));
create table t (a int);
create table log (m int);
create rule r as on insert to t do also insert into log select j.e from (ta join tb on ta.id = tb.id) as j(a, b, c, d, e);
create policy p on t using (exists (select from (ta join tb on true) as j(a, b, c, d, e) where j.e = 3));
alter table ta add column n int default 7;
select pg_get_viewdef('placed');
select * from placed;
select * from merged;
select * from doubled;
select * from nested;
select pg_get_viewdef('doubled');
refresh materialized view kept;
select * from kept;
select body();
insert into t values (1);
select * from log;
select pg_get_expr(polqual, polrelid) from pg_policy where polrelid = 't'::regclass;
alter table ta rename column x to y;
select pg_get_viewdef('doubled');
select * from doubled;
alter table ta add column d int, add column e int;
select pg_get_viewdef('placed');
select * from placed;
alter table ta drop column n, drop column d;
select pg_get_viewdef('placed');
select * from placed;
create or replace view doubled (a, b, c, d, e, more) as select j.*, 5 from (select 1, 2, 3, 4, 5) as j;
select * from over_view;

-- A function's row.
create type row_type as (a int, b int);
create function row_of() returns row_type language sql as 'select 1, 2';
create view numbered as select * from row_of() with ordinality as t(a, b, o);
create view beside as select * from rows from (row_of(), generate_series(3, 4)) with ordinality as t(a, b, g, o);
alter type row_type add attribute c int;
create or replace function row_of() returns row_type language sql as 'select 1, 2, 3';
select * from numbered;
select * from beside;
drop type row_type cascade;
drop table ta, tb, t, log cascade;

-- A view that groups by a primary key needs it.
create table keyed (id int primary key, name text, n int);
insert into keyed values (1, 'a', 5);
create view by_key as select id, name, sum(n) from keyed group by id;
alter table keyed drop constraint keyed_pkey;
create view in_query as select * from (select id, name from keyed group by id having count(n) > 0) as s;
select pg_describe_object(classid, objid, 0), pg_describe_object(refclassid, refobjid, 0) from pg_depend where refclassid = 'pg_constraint'::regclass and classid = 'pg_rewrite'::regclass order by 1;
alter table keyed drop constraint keyed_pkey cascade;
select count(*) from pg_views where viewname in ('by_key', 'in_query');
create view collated as select name from keyed;
create or replace view collated as select name collate "C" from keyed;
drop table keyed cascade;

-- Columns of a function's row.
create table rowed (f1 text, f2 int, f3 text, f4 text);
insert into rowed values ('foo', 1, 'baz', '42');
create function of_rowed() returns setof rowed language sql as 'select * from rowed';
create view from_function as select t.* from of_rowed() t;
create view in_sublink as select (select max(t.f2) from of_rowed() t) as m;
alter table rowed drop column f3;
alter table rowed alter column f4 type integer using f4::integer;
alter table rowed drop column f2;
drop view in_sublink;
create view two_columns as select t.f1, t.f4 from of_rowed() with ordinality as t(f1, f2, f3, f4, o);
drop view from_function;
alter table rowed drop column f3;
select * from two_columns;
alter table rowed add column f5 int;
select * from two_columns;
drop table rowed cascade;
create schema temp_views;
create temp table temporary (a int);
create view temp_views.v as select * from temporary;
drop schema temp_views;
