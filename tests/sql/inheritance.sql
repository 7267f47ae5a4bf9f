-- A query of a parent returns its rows and those of all its descendants.
create table p (a int primary key, b text not null default 'x', check (a > 0));
create table c (c int) inherits (p);
create table c2 (b text, z int, a int) inherits (p);
create table cc (d int default 5) inherits (c);
\d+ p
\d+ c
\d+ c2
insert into p values (1), (2);
insert into c values (3, 'c3', 30);
insert into c2 (z, b, a) values (40, 'c4', 4);
insert into cc values (5, 'cc5', 50);
insert into cc values (-5, 'no', 50);
insert into c values (6, null, 50);
-- A key is one table's.
insert into c values (1, 'again', 0);
select tableoid::regclass, ctid is not null as has_ctid, * from p order by a, b;
select tableoid::regclass, p from p order by a, b;
select * from only p order by a;
select (p).b, count(*) from p group by 1 order by 1;
-- Conditions reach the children, and use their indexes.
create index on c2 (a);
select * from p where a = 4;
explain (costs off) select * from p where b = 'x';
explain (costs off) select * from only p where b = 'x';
select p.a, q.a from p join p q on p.a = q.a - 1 order by 1, 2;
select a, (select max(q.a) from p q where q.a < p.a) from p order by 1, 2;
-- Changes reach the children, whose further columns stay.
update p set b = b || '!' where a >= 2 returning tableoid::regclass, *;
update p set a = p.a + 10 from c2 where c2.a = p.a returning p.tableoid::regclass, p.*;
update only p set b = 'own';
delete from p where a = 3 returning tableoid::regclass, *;
select * from c2; select * from cc;
merge into p using (values (5, 'm'), (14, 'n'), (99, 'new')) v (a, b) on p.a = v.a
    when matched and v.a = 5 then delete when matched then update set b = v.b when not matched then insert values (v.a, v.b);
select tableoid::regclass, * from p order by a;
select * from c2;
begin;
select * from p where a > 10 order by a for update;
rollback;
create view pv as select * from p where a < 50;
update pv set b = 'through' where a = 14;
select tableoid::regclass, * from p where a = 14;
drop view pv;
-- What changes in a parent changes in its children.
alter table p add column n int default 7;
alter table p add column n int;
alter table c add column mine text;
alter table p add column mine text;
alter table p add column mine2 text check (mine2 <> '');
insert into c values (20, 'b', 1, 2, '', '');
select tableoid::regclass, * from p order by a;
\d c
\d c2
alter table c2 drop column a;
alter table c2 alter column a type bigint;
alter table c2 rename column a to aa;
alter table only p rename column a to aa;
alter table only p add column o int;
alter table only p alter column a type bigint;
alter table p rename column a to aa;
alter table p alter column aa type bigint;
alter table p alter column b set default 'y';
alter table p alter column b drop not null;
alter table p drop column mine;
alter table p drop column n;
\d c
\d c2
alter table p add constraint ck check (aa < 10);
alter table p add constraint ck check (aa < 1000);
alter table c drop constraint ck;
alter table only p drop constraint ck;
\d c
alter table c drop constraint ck;
alter table p alter column b set not null;
update p set b = 'z' where b is null;
-- NO INHERIT and INHERIT.
alter table c2 no inherit p;
alter table c2 no inherit p;
select count(*) from p where aa > 0;
alter table c2 drop column mine2;
alter table c2 inherit p;
alter table c2 add column mine2 int;
alter table c2 inherit p;
alter table c2 alter column mine2 type text;
alter table c2 inherit p;
alter table c2 add constraint p_mine2_check check (mine2 <> '');
alter table c2 inherit p;
alter table c2 inherit p;
alter table p inherit cc;
select tableoid::regclass, * from p order by 2;
-- Several parents.
create table m1 (x int, y int default 1);
create table m2 (y int default 2, w text);
create table m3 (y int, v text) inherits (m1, m2);
create table m3 (y int default 3, v text) inherits (m1, m2);
create table m4 (y text) inherits (m1);
create table m4 () inherits (m1, m1);
create table m4 () inherits (m1, m2);
\d m3
select attname, attislocal, attinhcount from pg_attribute where attrelid = 'm3'::regclass and attnum > 0 order by attnum;
select inhrelid::regclass, inhparent::regclass, inhseqno from pg_inherits where inhrelid = 'm3'::regclass order by inhseqno;
alter table m1 drop column y;
\d m3
alter table m2 drop column y;
\d m3
drop table m2;
drop table m1, m2, m3;
-- Storage and compression.
create table s1 (f text);
alter table s1 alter f set storage external;
create table s2 (f text);
alter table s2 alter f set storage main;
create table s3 () inherits (s1, s2);
create table s3 (f text compression pglz) inherits (s1);
\d+ s3
create table s4 (f text compression lz4) inherits (s3);
drop table s1, s2, s3;
-- TRUNCATE, LOCK and DROP.
begin;
lock table p in share mode;
select count(*) from pg_locks l join pg_class c on c.oid = l.relation where l.mode = 'ShareLock' and c.relname in ('p', 'c', 'c2', 'cc');
rollback;
truncate only p;
select count(*) from only p; select count(*) > 0 from p;
truncate p;
select count(*) from p;
drop table p;
drop table p cascade;
-- A table below another in two ways.
create table d1 (a int);
create table d2 (b int) inherits (d1);
create table d3 () inherits (d1, d2);
alter table d1 add column c int check (c > 0);
select attrelid::regclass, attname, attinhcount, attislocal from pg_attribute
    where attrelid in ('d2'::regclass, 'd3'::regclass) and attnum > 0 order by 1, attnum;
select conrelid::regclass, conname, coninhcount, conislocal from pg_constraint where conname = 'd1_c_check' order by 1;
alter table d2 add constraint d1_c_check check (c > 0);
alter table d2 add constraint d1_c_check check (c > 1);
alter table d1 drop constraint d1_c_check;
select conrelid::regclass, conname, coninhcount, conislocal from pg_constraint where conname = 'd1_c_check' order by 1;
alter table d1 drop column c;
\d d3
alter table d2 alter a type bigint;
alter table d1 alter a type bigint;
-- A child's row as one of its parent's.
insert into d3 values (1, 2);
select d3::d1, (d3::d2).b, d2::d1 from d3, d2;
explain (costs off) delete from d1;
drop table d1 cascade;
create table e1 (a int); create table e2 (a int); create table e3 () inherits (e1, e2);
alter table e1 alter a type bigint;
drop table e1, e2 cascade;
