-- Rules: conditions and commands, OLD and NEW, order, counts, RETURNING, views, what is refused, the catalog.

create table t (a int, b text default 'none', c int default 7);
create table log (n serial, what text, a int, b text);

-- Beside the statement, one command a row that it finds.
create rule ins as on insert to t do also insert into log (what, a, b) values ('insert', new.a, new.b);
create rule upd as on update to t where old.b is distinct from new.b
  do also insert into log (what, a, b) values ('update', old.a, old.b || ' -> ' || new.b);
create rule del as on delete to t do also insert into log (what, a, b) select 'delete', old.a, old.b;
insert into t values (1, 'one'), (2, 'two');
insert into t (a) values (3);
insert into t select g, 'many' from generate_series(4, 6) g;
insert into t values (7, default, 1) returning *;
update t set b = upper(b) where a < 3;
update t set c = c + 1;
update t set (b, c) = (select 'x', 9) where a = 3;
update t set b = v.y from (values (4, 'four'), (5, 'many')) v (x, y) where t.a = v.x;
delete from t where a > 5 returning a;
delete from t using log where log.a = t.a and log.what = 'update' and t.a = 4;
select what, a, b from log order by n;
select * from t order by a;
truncate t, log;

-- A command that mentions no row runs once, whatever the statement finds; with a condition once a row.
create rule del2 as on delete to t do also insert into log (what) values ('deleted');
insert into t values (1), (2);
delete from t;
insert into t values (1), (2);
delete from t where a < 10;
select what, a from log order by n;
drop rule del2 on t;
drop rule ins on t;
drop rule upd on t;
drop rule del on t;
truncate t, log;

-- Instead of the statement: under a condition, without one, nothing; several rules in the order of their names.
create rule b_small as on insert to t where new.a < 10 do instead nothing;
create rule a_large as on insert to t where new.a > 100 do instead insert into log (what, a) values ('large', new.a);
create rule c_all as on insert to t do also insert into log (what, a) values ('all', new.a);
insert into t values (1), (20), (200);
insert into t values (5);
insert into t values (500);
insert into t select a + 30 from t;
select a from t order by a;
select what, a from log order by n;
drop rule b_small on t;
drop rule a_large on t;
drop rule c_all on t;
truncate t, log;

-- The tag counts the statement, or the last command of its kind instead of it.
create rule r as on update to t do instead (
  insert into log (what, a) values ('before', old.a);
  update log set b = new.b where log.a = old.a;
  delete from log where what = 'no'
);
insert into t values (1), (2), (3);
update t set b = 'z' where a > 1;
select what, a, b from log order by n;
create or replace rule r as on update to t do instead insert into log (what, a) values ('changed', new.a);
update t set a = a + 10;
create or replace rule r as on update to t do instead nothing;
update t set a = a + 10;
select what, a from log order by n;
drop rule r on t;
truncate t, log;

-- Whole rows, columns without a value, defaults, generated columns, sequences at each place.
create table g (id serial, x int, y int generated always as (x * 2) stored);
create table g_log (n serial, id int, row text, y int);
create rule g_ins as on insert to g do also insert into g_log (id, row, y) values (new.id, (new.x, new.y)::text, new.y);
create rule g_upd as on update to g do also insert into g_log (id, row, y) values (new.id, new::text, old.y);
insert into g (x) values (5);
insert into g (id, x) values (100, 1), (101, default);
update g set x = x + 1 where id = 100;
select id from g order by 1;
select id, row, y from g_log where id <> 2 order by n;
drop table g, g_log;

-- Views that rules make changeable, and RETURNING.
create view v as select a as k, b as text, c from t where c > 0;
create rule v_ins as on insert to v do instead insert into t (a, b, c) values (new.k, coalesce(new.text, '-'), 1) returning t.a, t.b, t.c;
create rule v_upd as on update to v do instead update t set b = new.text where a = old.k returning a, b, c;
create rule v_del as on delete to v do instead delete from t where a = old.k;
insert into v values (1, 'one', 5), (2, null, 0);
insert into v (k) values (3) returning *;
insert into v (k, text) select 4, 'four' returning k, upper(text) as up, v;
update v set text = text || '!' where k < 3 returning v.*, k + 1 as next;
update v set text = x.s from (values (3, 'three')) x (i, s) where k = x.i returning k, text, x.s;
delete from v where k = 1 returning *;
delete from v where k = 1;
select * from v order by k;
select is_updatable, is_insertable_into from information_schema.views where table_name = 'v';
select pg_relation_is_updatable('v', false), pg_column_is_updatable('v', 1::smallint, false);
alter view v alter column text set default 'by view';
insert into v (k) values (5) returning text;
create view joined as select t.a, log.what from t join log using (a);
insert into joined values (1, 'x');
create rule j as on insert to joined where new.a > 0 do instead insert into t values (new.a);
insert into joined values (1, 'x');
drop view joined;
drop view v;
truncate t, log;

-- WITH, prepared statements, functions.
create rule r as on insert to t do also insert into log (what, a) values ('also', new.a);
prepare p as insert into t (a) values ($1), ($1 + 1);
execute p(1);
with w as (select 5 as x) insert into t (a) select x from w;
with w as (insert into t (a) values (6) returning a) select * from w;
create or replace rule r as on insert to t do instead insert into log (what, a) values ('instead', new.a);
execute p(10);
with w as (select 5 as x) insert into t (a) select x from w;
with w as (insert into t (a) values (6)) select 1 as one;
drop rule r on t;
execute p(20);
create rule r as on insert to t do instead (insert into log (a) values (new.a); insert into log (a) values (new.a));
with w as (select 5 as x) insert into t (a) select x from w;
with w as (insert into t (a) values (6)) select 1 as one;
create or replace rule r as on insert to t do instead nothing;
with w as (insert into t (a) values (6)) select 1 as one;
create or replace rule r as on insert to t where new.a > 0 do instead nothing;
with w as (insert into t (a) values (6)) select 1 as one;
create function put(int) returns int language plpgsql as $$
declare n int;
begin
  insert into t (a) values ($1), (-$1);
  get diagnostics n = row_count;
  return n;
end $$;
select put(3);
create function put_sql(int) returns void language sql as 'insert into t (a) values ($1), (-$1)';
select put_sql(4);
select a from t order by a;
drop rule r on t;
truncate t, log;

-- Refused.
create rule r as on insert to t do instead insert into log (a) values (new.a);
insert into t values (1) returning *;
insert into t values (1) on conflict do nothing;
drop rule r on t;
create rule r as on update to t do also nothing;
alter table t enable rule r;
drop rule r on t;
create rule r as on insert to t do also update t set c = 0 where a = new.a;
create rule s as on update to t do also insert into log (a) values (new.a);
create rule q as on update to t do also insert into t (a) values (0);
insert into t values (1);
drop rule r on t;
drop rule s on t;
drop rule q on t;
create rule r as on insert to t do also insert into log (a) values (old.a);
create rule r as on delete to t do also insert into log (a) values (new.a);
create rule r as on update to t where t.a > 0 do also nothing;
create rule r as on insert to t do also insert into log (a) values (1) returning *;
create rule r as on insert to t where new.a > 0 do instead insert into t values (1) returning *;
create rule r as on insert to t do instead insert into t values (1) returning a;
create rule r as on insert to t do instead insert into t values (1) returning a, b, c, c;
create rule r as on insert to t do instead insert into t values (1) returning b, b, c;
create rule r as on insert to t where new.a > 0 do also notify c;
create rule r as on update to t do also with w as (select new.a) insert into log (a) select * from w;
create rule r as on insert to t where new.a > 0 do also insert into log (a) select 1 union select 2;
create rule "_RETURN" as on insert to t do instead nothing;
create rule r as on insert to log_n_seq do instead nothing;
create rule r as on insert to pg_class do instead nothing;
create rule r as on insert to no_such do instead nothing;
create rule r as on insert to t do instead nothing;
create rule r as on insert to t do instead nothing;
create rule s as on insert to t do instead nothing;
alter rule r on t rename to s;
alter rule x on t rename to s;
alter rule r on t rename to r2;
alter table t disable rule x;
drop rule r on t;
drop rule if exists r on t;
drop rule if exists r on no_such;
comment on rule r on t is 'x';
comment on rule r2 on t is 'does nothing';
select obj_description(oid, 'pg_rewrite'), rulename, ev_type, ev_enabled, is_instead, ev_qual from pg_rewrite where rulename = 'r2';
create view w as select 1 as one;
drop rule "_RETURN" on w;
alter rule "_RETURN" on w rename to x;
create rule x as on select to w do instead select 2 as one;
drop view w;

-- Enabled or not.
insert into t values (1);
alter table t disable rule r2;
alter table t disable rule s;
insert into t values (2);
alter table t enable replica rule r2;
insert into t values (3);
set session_replication_role = replica;
insert into t values (4);
reset session_replication_role;
alter table t enable always rule r2;
insert into t values (5);
select a from t order by a;
drop rule r2 on t;
drop rule s on t;
truncate t, log;

-- Definitions, and names that change.
create table other (x int, y text);
create rule one as on insert to t where new.a > 0 and new.b <> '' do instead insert into other values (new.a, new.b);
create rule two as on update to t do also (
  update other set y = new.b from log l where l.a = other.x and other.x = old.a;
  delete from other where x = old.a and exists (select 1 from log where log.a = new.a)
);
create rule three as on delete to t do instead nothing;
create rule four as on insert to t do also insert into other (x) select new.a from log where log.a = new.a;
create rule five as on delete to t do also notify changes, 'deleted';
select pg_get_ruledef(oid) from pg_rewrite where ev_class = 't'::regclass order by rulename;
select pg_get_ruledef(oid, true) from pg_rewrite where ev_class = 't'::regclass order by rulename;
select tablename, rulename from pg_rules where schemaname = 'public' order by 1, 2;
\d t
alter table t rename column b to bb;
alter table other rename to others;
alter table others rename y to why;
select definition from pg_rules where tablename = 't' order by rulename;
insert into t values (1, 'moved');
select * from others;
select relhasrules from pg_class where oid = 't'::regclass;

-- Dependencies.
drop table others;
alter table t drop column bb;
alter table t alter column a type bigint;
drop table others cascade;
select rulename from pg_rewrite where ev_class = 't'::regclass order by 1;
alter table t drop column bb cascade;
drop rule three on t;
drop rule five on t;
drop table t;

-- The relations that a rule names are used with the privileges of the owner of its relation.
create role rules_owner;
create role rules_user;
create table mine (a int);
create table hidden (a int, who text default current_user);
create rule r as on insert to mine do also insert into hidden values (new.a);
alter table mine owner to rules_owner;
grant insert on mine to rules_user;
set role rules_user;
insert into mine values (1);
select * from hidden;
reset role;
grant insert on hidden to rules_owner;
set role rules_user;
insert into mine values (2);
create rule s as on insert to mine do also nothing;
reset role;
select * from hidden;
drop table mine, hidden;
drop role rules_owner;
drop role rules_user;

-- Transactions that only read.
create table t (a int);
create rule r as on insert to t do instead delete from log;
begin read only;
insert into t values (1);
rollback;
create or replace rule r as on insert to t do instead nothing;
explain (costs off) insert into t values (1);
copy t from stdin;
1
\.
select * from t;
create view v as select a from t;
merge into t using (values (1)) x (a) on t.a = x.a when matched then delete;
drop table t cascade;
drop table log;
