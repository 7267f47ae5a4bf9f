-- What lies below views: rules, locks, privileges, texts; and column definitions that children share.

create role beside_owner;
create role beside_user;
grant create on schema public to beside_owner, beside_user;

-- A view over a view with rules: the rules do what the statement says.
create table below(a int, b text);
create view with_rules as select a, b from below;
create rule r_insert as on insert to with_rules do instead insert into below values (new.a, 'by rule ' || new.b) returning *;
create view over_rules as select b as bb, a as aa from with_rules where a > 0;
select table_name, is_updatable, is_insertable_into from information_schema.views
  where table_name in ('with_rules', 'over_rules') order by 1;
select table_name, column_name, is_updatable from information_schema.columns
  where table_name in ('with_rules', 'over_rules') order by 1, 2;
insert into over_rules(aa, bb) values (1, 'one'), (2, 'two') returning *;
insert into over_rules select 'three', 3;
-- An UPDATE has no rule yet.
update over_rules set bb = 'changed' where aa = 1 returning *;
create rule r_update as on update to with_rules do instead update below set b = new.b || ', by rule' where a = old.a returning below.*;
create rule r_delete as on delete to with_rules do instead delete from below where a = old.a returning old.*;
update over_rules set bb = 'again' where aa < 2 returning *;
delete from over_rules where bb like 'by%' returning aa;
select * from below order by a;
select table_name, is_updatable, is_insertable_into from information_schema.views
  where table_name in ('with_rules', 'over_rules') order by 1;
alter view over_rules alter column bb set default 'default';
insert into over_rules(aa) values (9);
select * from below order by a;
create view over_aggregate as select count(*) as n from with_rules;
select pg_relation_is_updatable('over_rules'::regclass, false), pg_relation_is_updatable('over_aggregate'::regclass, true),
  pg_column_is_updatable('over_rules'::regclass, 1::smallint, false);
drop table below cascade;

-- LOCK TABLE of a view locks what is below it, which its owner must be allowed to lock.
create table locked(a int);
create table locked_child() inherits (locked);
create table locked_in_sublink(a int);
create view locked_view as select * from locked where a in (select a from locked_in_sublink);
create view locked_above as with w as (select * from locked_view) select * from w;
begin;
lock table locked_above in exclusive mode;
select relation::regclass from pg_locks where relation::regclass::text like 'locked%' and mode = 'ExclusiveLock' order by 1;
rollback;
begin;
lock table only locked_child in share mode;
select relation::regclass from pg_locks where relation::regclass::text like 'locked%' and mode = 'ShareLock' order by 1;
rollback;
alter view locked_view owner to beside_owner;
grant all on locked_view, locked_above to beside_user;
set role beside_user;
begin;
lock table locked_view;
rollback;
reset role;
grant all on locked, locked_in_sublink to beside_owner;
set role beside_user;
begin;
lock table locked_view;
rollback;
reset role;
alter view locked_view set (security_invoker);
set role beside_user;
begin;
lock table locked_view;
rollback;
reset role;
drop table locked, locked_in_sublink cascade;

-- Rows that are locked through a view are locked through the views in it.
create table rows_locked(a int);
insert into rows_locked values (1);
create view inner_view as select * from rows_locked;
alter view inner_view owner to beside_owner;
grant all on rows_locked to beside_owner;
grant select on inner_view to beside_user;
create view outer_view as select * from inner_view;
alter view outer_view owner to beside_user;
set role beside_user;
select * from outer_view;
select * from outer_view for update;
reset role;
grant update on inner_view to beside_user;
set role beside_user;
select * from outer_view for update;
-- MERGE that does nothing looks at rows.
merge into rows_locked using (values (1)) v(x) on true when matched then do nothing;
reset role;
drop table rows_locked cascade;

-- Names that are hidden, or are not those of a result.
create table j1(i int, a int);
create table j2(i int, b int);
select x.i from (j1 join j2 using (i) as x) as xx;
select xx.i from (j1 join j2 using (i) as x) as xx;
create view set_operation as select i, i + 1 from j1 union all select i, i + 2 from j2 union select 1, 2;
select pg_get_viewdef('set_operation'::regclass);
create view into_view as select 1 as a into j3;
create view into_view as (select 1 as a into j3) union select 2;
drop table j1, j2 cascade;

-- A view's default for a generated column is a value for it.
create table generated(a int, b int generated always as (a * 2) stored);
create view of_generated as select * from generated;
insert into of_generated values (1), (2, default);
alter view of_generated alter column b set default 100;
insert into of_generated values (3);
insert into of_generated values (4, default), (5, default);
select * from generated order by a;

-- A generated column of children is one of their parent.
create table child() inherits (generated);
create table other_child(c int) inherits (generated);
alter table child alter column b drop expression;
alter table only generated alter column b drop expression;
alter table generated alter column b drop expression;
insert into child values (7, 8);
insert into other_child(a) values (9);
select tableoid::regclass, a, b from generated order by a;
select attrelid::regclass, attgenerated from pg_attribute
  where attrelid in ('generated'::regclass, 'child'::regclass, 'other_child'::regclass) and attname = 'b' order by 1;
drop table generated cascade;
create table in_key(a int, b int generated always as (a * 2) stored) partition by range ((b));
create table in_key(a int, b int generated always as (a * 2) stored) partition by range ((b + 1));
create table referenced(a int primary key);
create table referencing(a int, b int generated always as (a * 2) stored references referenced on update cascade);
create table referencing(a int, b int generated always as (a * 2) stored references referenced on delete set default);
create table referencing(a int, b int generated always as (a * 2) stored references referenced on delete cascade);
drop table referencing, referenced;

-- OVERRIDING USER VALUE takes one number for each row.
create table numbered(a int generated always as identity, b text);
insert into numbered overriding user value values (default, 'one'), (5, 'two'), (default, 'three');
insert into numbered values (default, 'four');
select * from numbered;
drop table numbered;

-- SET CONSTRAINTS reaches the parts of a key that refers to partitions of partitions.
create table keys(a int primary key) partition by list (a);
create table keys_1 partition of keys for values in (1, 2) partition by list (a);
create table keys_11 partition of keys_1 for values in (1);
create table refers(a int references keys deferrable initially immediate);
insert into keys values (1);
insert into refers values (1);
begin;
set constraints refers_a_fkey deferred;
delete from keys where a = 1;
delete from refers;
commit;
select count(*) from keys;
drop table refers, keys;

-- Columns that are named twice, modifiers of an index's columns, columns that USING computes from and that are dropped.
create table pair(a int, b int, primary key (a, b));
create table of_pair(a int, b int, foreign key (a, b) references pair on delete set null (b, b));
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'of_pair'::regclass;
drop table of_pair, pair;
create table modified(a varchar(10), b numeric(5, 2), c int, d varchar(7));
create index modified_a on modified(a, b) include (d);
create index modified_e on modified((a || 'x'), lower(a));
select attrelid::regclass, attname, format_type(atttypid, atttypmod) from pg_attribute
  where attrelid in ('modified_a'::regclass, 'modified_e'::regclass) order by 1, attnum;
alter table modified alter a type varchar(20), alter b type text;
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'modified_a'::regclass order by attnum;
insert into modified values ('one', '2', 3);
alter table modified alter a type text using a || ' and ' || b, drop column b, alter c type text using a || c;
select a, c, d from modified;
drop table modified;
select relkind, count(*) from pg_class where relkind in ('v', 'c', 'p', 'I') and relfilenode <> 0 group by 1;

-- The temporary schema, where tables would be created.
\c
set search_path = pg_temp, public;
select current_schema() like 'pg\_temp\_%';
create table t(a int);
select relnamespace = current_schema()::regnamespace from pg_class where oid = 't'::regclass;
reset search_path;

-- A message is told once.
select current_time(7) is null, current_time(7) is null;
select to_tsquery('simple', '');
select to_tsquery('simple', '');
select pg_sleep_for('1 ms'), pg_sleep_until(now());
drop operator class if exists nothing using nothing;
drop operator family if exists nothing using nothing;
revoke create on schema public from beside_owner, beside_user;
drop role beside_owner, beside_user;
