-- Triggers: before and after rows and statements, their variables, conditions, columns, order, errors.

create table log (n int generated always as identity, line text);
create table t (a int primary key, b text, c int default 7);

create function say() returns trigger language plpgsql as $$
begin
  raise notice '% % % % % %', tg_name, tg_when, tg_level, tg_op, old, new;
  if tg_level = 'STATEMENT' then return null; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;

create trigger b_row before insert or update or delete on t for each row execute function say();
create trigger a_row after insert or update or delete on t for each row execute function say();
create trigger b_statement before insert or update or delete or truncate on t execute function say();
create trigger a_statement after insert or update or delete or truncate on t for each statement execute function say();

insert into t values (1, 'one'), (2, 'two');
insert into t values (1, 'again') on conflict do nothing;
insert into t values (1, 'again') on conflict (a) do update set b = excluded.b || '!' returning *;
update t set b = upper(b) where a > 1;
update t set b = b where a > 100;
delete from t where a = 1 returning *;
copy t (a, b) from stdin;
5	five
6	six
\.
merge into t using (values (5, 'x'), (9, 'nine')) v (a, b) on t.a = v.a
  when matched then update set b = v.b when not matched then insert (a, b) values (v.a, v.b);
select * from t order by a;
truncate t;

-- The order of names, and what one changes the next one sees.
drop trigger b_row on t;
drop trigger a_row on t;
drop trigger b_statement on t;
drop trigger a_statement on t;
create function append() returns trigger language plpgsql as $$
begin
  new.b := coalesce(new.b, '') || tg_argv[0];
  new.c = new.c + tg_nargs;
  return new;
end $$;
create trigger m2 before insert or update on t for each row execute function append('second', 'more');
create trigger m1 before insert or update on t for each row execute function append('first');
insert into t values (1), (2) returning *;
update t set c = 0 returning *;
alter trigger m2 on t rename to a2;
update t set b = null returning *;
alter table t disable trigger m1;
update t set b = null returning *;
alter table t enable trigger m1;
comment on trigger m1 on t is 'the first';
select obj_description(oid, 'pg_trigger') from pg_trigger where tgname = 'm1';
select tgname, tgtype, tgenabled, tgnargs, tgattr, tgisinternal, tgdeferrable, encode(tgargs, 'escape'),
  pg_get_triggerdef(oid) from pg_trigger where tgrelid = 't'::regclass order by tgname;
drop trigger m1 on t;
drop trigger a2 on t;
drop trigger a2 on t;
drop trigger if exists a2 on t;
drop trigger if exists a2 on nothing;

-- Rows that a trigger skips, and rows that it replaces.
create function keep() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' and new.a % 2 = 0 then return null; end if;
  if tg_op = 'UPDATE' and new.c > 100 then return null; end if;
  if tg_op = 'DELETE' and old.a = 3 then return null; end if;
  return case tg_op when 'DELETE' then old else new end;
end $$;
create trigger k before insert or update or delete on t for each row execute function keep();
delete from t;
insert into t select i from generate_series(1, 5) i returning a;
update t set c = a * 40 returning a, c;
with d as (delete from t returning a) select * from d order by a;
select * from t order by a;
copy t (a) from stdin;
10
11
12
13
\.
select a from t order by a;
drop trigger k on t;

-- WHEN and OF.
create trigger w1 after update on t for each row when (old.* is distinct from new.*) execute function say();
create trigger w2 after update of b on t for each row execute function say();
create trigger w3 before update of c, b on t for each row when (new.c > 50 and old.b is null) execute function say();
create trigger w4 after update on t for each statement when (current_user <> '') execute function say();
update t set a = a;
update t set b = 'b';
update t set c = 60, b = null;
update t set c = 70;
select pg_get_triggerdef(oid, true), pg_get_triggerdef(oid) from pg_trigger where tgrelid = 't'::regclass order by tgname;
alter table t rename column c to "see D";
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 't'::regclass and tgname = 'w3';
alter table t drop column "see D";
alter table t drop column "see D" cascade;
select tgname from pg_trigger where tgrelid = 't'::regclass order by tgname;
select trigger_name, event_manipulation, event_object_table, action_order, action_condition, action_statement, action_orientation,
  action_timing from information_schema.triggers where event_object_table = 't' order by 1, 2;
select event_object_column from information_schema.triggered_update_columns where trigger_name = 'w2';

-- Errors of definitions.
create trigger w1 after update on t for each row execute function say();
create trigger e after update on nothing for each row execute function say();
create trigger e after update of nothing on t for each row execute function say();
create trigger e after update of b, b on t for each row execute function say();
create trigger e after insert on t for each row when (old.a > 1) execute function say();
create trigger e after delete on t for each row when (new.a > 1) execute function say();
create trigger e after delete on t for each statement when (new.a > 1) execute function say();
create trigger e after insert on t for each row when (new.a) execute function say();
create trigger e after insert on t for each row when (exists (select 1)) execute function say();
create trigger e after insert on t for each row when (a > 1) execute function say();
create trigger e before truncate on t for each row execute function say();
create trigger e instead of insert on t for each row execute function say();
create trigger e after insert on t for each row execute function nothing();
create trigger e after insert on t for each row execute function now();
create function not_a_trigger() returns int language sql as 'select 1';
create trigger e after insert on t for each row execute function not_a_trigger();
create function in_sql() returns trigger language sql as 'select 1';
alter trigger nothing on t rename to e;
alter trigger w1 on t rename to w2;
alter table t disable trigger nothing;
create or replace trigger w1 after update on t for each row execute function say();
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 't'::regclass and tgname = 'w1';
drop function say();
drop function say() cascade;

-- Errors of functions.
create function bad() returns trigger language plpgsql as $$
begin
  if tg_argv[0] = 'no return' then null;
  elsif tg_argv[0] = 'raise' then raise exception 'not %', new.a using errcode = '22012', hint = 'Hint.';
  elsif tg_argv[0] = 'other' then return row(1, 2, 3);
  elsif tg_argv[0] = 'types' then return row('x'::text, 'y'::text);
  elsif tg_argv[0] = 'field' then new.nothing := 1; return new;
  elsif tg_argv[0] = 'new' then return new.a;
  else perform 1 / (new.a - new.a); return new;
  end if;
end $$;
create trigger bad before insert on t for each row execute function bad('no return');
insert into t values (100);
create or replace trigger bad before insert on t for each row execute function bad('raise');
insert into t values (100);
-- PostgreSQL 18 names the column in the detail.
\set VERBOSITY terse
create or replace trigger bad before insert on t for each row execute function bad('other');
insert into t values (100);
create or replace trigger bad before insert on t for each row execute function bad('types');
insert into t values (100);
\set VERBOSITY default
drop trigger bad on t;

-- What a trigger sees, and what it must not do.
create function count_rows() returns trigger language plpgsql as $$
begin
  insert into log (line) select format('%s %s: %s rows', tg_when, tg_level, count(*)) from t;
  return new;
end $$;
create trigger c1 before insert on t for each row execute function count_rows();
create trigger c2 after insert on t for each row execute function count_rows();
create trigger c3 after insert on t for each statement execute function count_rows();
truncate t;
insert into t values (1), (2), (3);
select line from log order by n;
truncate log;
drop function count_rows cascade;
create function meddle() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then delete from t where a = old.a; return old; end if;
  update t set b = 'meddled' where a = new.a;
  return new;
end $$;
create trigger x before update or delete on t for each row when (pg_trigger_depth() < 1) execute function meddle();
update t set b = 'x' where a = 1;
delete from t where a = 1;
select * from t order by a;
drop trigger x on t;
create function fib() returns trigger language plpgsql as $$
begin
  insert into log (line) values (format('depth %s', pg_trigger_depth()));
  if new.a < 8 then insert into t values (new.a + 1, new.b); end if;
  return new;
end $$;
truncate t;
create trigger f after insert on t for each row execute function fib();
insert into t values (5), (8);
insert into t values (6);
select line from log order by n;
select pg_trigger_depth();
drop trigger f on t;

-- Foreign keys: what cascades fires triggers too.
create table p (a int primary key);
create table k (a int references p on update cascade on delete cascade, b int references p on delete set null);
create function tell() returns trigger language plpgsql as $$
begin raise notice '% % % %', tg_op, tg_level, old, new; return coalesce(new, old); end $$;
create trigger k1 before update or delete on k for each row execute function tell();
create trigger k2 after update or delete on k for each row execute function tell();
create trigger k3 after update or delete on k execute function tell();
insert into p values (1), (2), (3);
insert into k values (1, 2), (2, 1), (3, null);
update p set a = 10 where a = 1;
update p set a = a + 30 where a = 3;
delete from p where a = 33;
select * from k order by a;

-- Suspended.
alter table k disable trigger all;
insert into k values (1000, 1000);
alter table k enable trigger all;
insert into k values (1001, 1000);
set session_replication_role = replica;
insert into k values (1001, 1000);
update k set b = null where a = 1001;
alter table k enable always trigger k1;
alter table k enable replica trigger k2;
update k set b = null where a = 1001;
reset session_replication_role;
update k set a = null where a = 1001;
select tgname, tgenabled from pg_trigger where tgrelid = 'k'::regclass and not tgisinternal order by 1;
alter table k disable trigger user;
update k set a = null;

-- Rows that do not change, generated columns.
create table g (a int, b int generated always as (a * 2) stored);
create function see() returns trigger language plpgsql as $$
begin raise notice '% % %', tg_when, old, new; new.b := 1000; return new; end $$;
create trigger g1 before insert or update on g for each row execute function see();
create trigger g2 after insert or update on g for each row execute function see();
create trigger zz before update on g for each row execute function suppress_redundant_updates_trigger();
insert into g values (1), (2);
update g set a = a * 10 where a = 2;
update g set a = a where a = 1;
create trigger g3 before update on g for each row when (new.b > 1) execute function see();
create trigger g3 before update on g for each row when (new is null) execute function see();
select * from g order by a;
create trigger g4 before insert on g for each row execute function suppress_redundant_updates_trigger();
insert into g values (1);

-- Privileges.
create role tr_user;
grant select, insert on t to tr_user;
set role tr_user;
create trigger no after insert on t for each row execute function tell();
drop trigger g1 on g;
reset role;
grant trigger on t to tr_user;
set role tr_user;
create trigger yes after insert on t for each row execute function tell();
insert into t values (77);
alter trigger yes on t rename to no;
reset role;
drop table t, log, p, k, g cascade;
drop function append, keep, bad, meddle, fib, tell, see, not_a_trigger;
drop role tr_user;
