-- Views.
create table person (id int primary key, name text, age int);
insert into person values (1, 'ann', 30), (2, 'bob', 15), (3, 'cat', 70);
create view adult as select id, name, age from person where age >= 18;
select * from adult order by id;
create view named (who, len) as select name, length(name) from adult;
select * from named order by who;
create or replace view adult as select id, name, age, age > 65 as old from person where age >= 18;
select name, old from adult order by name;
create or replace view adult as select id, name from person;
insert into adult (id, name, age) values (4, 'dan', 20) returning *;
update adult set age = 21 where name = 'dan' returning id, age, old;
update adult set age = 99 where name = 'bob';
delete from adult where id = 4;
select * from person order by id;
create view checked as select * from person where age < 50;
insert into checked values (5, 'eve', 60), (6, 'fay', 40);
select * from checked order by id;
create view total as select count(*) as n, max(age) from person;
insert into total values (1, 2);
create view joined as with t as (select * from person) select p.name, t.age, case when t.age > 20 then 'x' else 'y' end as c from person p left join t using (id) where p.name like 'a%' or p.id in (1, 2) order by t.age desc limit 3;
select * from joined;
select pg_get_viewdef('joined'::regclass, true);
drop table person;
drop view adult;
drop view adult cascade;
select * from named;
alter view total rename to totals;
select * from totals;
alter view totals rename column n to number;
select number from totals;
create view total as select nothing from person;
create view bad as select 1, 2;
create view bad as select 1 as a, 2 as a;
create view person as select 1;
create temporary view fleeting as select 1 as one;
select * from fleeting;
create materialized view kept as select count(*) from person;
\d totals
\d checked
drop view fleeting;
\dv
drop table person cascade;

-- A join with a name of its own hides the names within it, also in the text of a view.
create table jb(a int, b int);
insert into jb values (1, 2), (2, 3);
create view jv1 as select * from (jb a join jb b on a.a = b.a) j(x, y, z, w);
select count(*), max(w) from jv1;
select pg_get_viewdef('jv1');
create view jv2 as select x, y + w as s from (jb a left join jb b on a.b = b.a) j(x, y, z, w) where z is null or w > 1;
select * from jv2 order by 1;
select pg_get_viewdef('jv2');
create view jv3 as select j.a, b, c, d from (jb a full join jb b(c, d) on a.b = c) j;
select * from jv3 order by 1;
select pg_get_viewdef('jv3');
create view jv4 as select * from (jb a full join jb b using (a)) j(k, l);
select * from jv4 order by 1;
select (select x + j.z from (select 1 as x) q) from (jb a join jb b using (a)) j(x, y, z) order by 1;
-- A whole row among other values.
create view jv5 as select * from jb i, lateral (values (i)) s;
select * from jv5 order by 1;
select pg_get_viewdef('jv5');
drop view jv1, jv2, jv3, jv4, jv5;
drop table jb;
-- a column that another output column's name hides
create table hidden (c0 int, c1 numeric);
insert into hidden values (1, 2.0), (2, null), (3, 2.5);
create view hiding as select distinct on (s.c1) s.c0 as c1, 7 as c0 from hidden s order by s.c1, s.c0;
select * from hiding;
create view hiding_by as select c0 as c1, count(*) as c0 from hidden group by hidden.c0, hidden.c1 order by hidden.c1;
select * from hiding_by;
drop view hiding, hiding_by;
drop table hidden;
-- a merged column that only the join's USING alias tells from others
create table ua (id int, x int);
create table ub (id int, y int);
create table uc (id int, z int);
insert into ua values (1, 10), (2, 20);
insert into ub values (2, 200), (3, 300);
insert into uc values (1, 7), (3, 9);
create view merged as select j.id, x, y, z from (ua full join ub using (id) as j) left join uc on j.id = uc.id;
select * from merged order by 1;
drop view merged;
drop table ua, ub, uc;
-- a part of a part of an array
create view parts as select (a[1:3])[2:3] as b, (a[2:3])[1] as c, ((array[[1,2],[3,4]])[1:2])[2:2][1:1] as d from (values ('{1,2,3,4}'::int[])) v(a);
select * from parts;
drop view parts;

-- DEFAULT in an UPDATE of a view is the view's.
create table defaulting (a int, d int default 3, g int generated always as (a + 1) stored, i int generated always as identity);
create view defaulting_view as select * from defaulting;
insert into defaulting_view (a) values (1);
update defaulting_view set d = default returning *;
alter view defaulting_view alter d set default 77;
update defaulting_view set d = default returning *;
update defaulting_view set g = default;
update defaulting_view set i = default;
drop view defaulting_view;
drop table defaulting;

-- Operators within the syntax of functions keep their parentheses in the short form.
create view zoned as
    select (date '2024-01-02' + interval '1 day') at time zone 'UTC' as a, ('a' || chr(98)) is nfc normalized as b,
        extract(day from timestamptz '2024-01-02' at time zone ('U' || 'TC')) as c;
select pg_get_viewdef('zoned', true);
select pg_get_viewdef('zoned');
drop view zoned;
-- Merged columns whose bare name another table has too.
create table merged_a(x int, y int);
create table merged_b(x int, z int);
insert into merged_a values (1, 10), (2, 20);
insert into merged_b values (2, 200), (3, 300);
create view merged_one(a, b, c, d, e) as select * from merged_a full join merged_b using (x), merged_b other;
create view merged_two(a, b, c, d, e, f) as
  select * from merged_a full join merged_b using (x), merged_a a2 full join merged_b b2 using (x) where a2.y is null;
create view merged_inside as select a.x, (select count(*) from merged_two where merged_two.a > a.x) from merged_one a(x);
select * from merged_one order by a, d;
select * from merged_two order by a, d;
alter table merged_a add z int;
alter table merged_b add y int;
select * from merged_one order by a, d;
select * from merged_two order by a, d;
select * from merged_inside order by 1, 2;
drop table merged_a, merged_b cascade;
