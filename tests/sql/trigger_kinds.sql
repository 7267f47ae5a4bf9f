-- Triggers on views and partitioned tables, transition tables, constraint triggers.

create function say() returns trigger language plpgsql as $$
begin
  raise notice '% on %: % % % % %', tg_name, tg_table_name, tg_when, tg_level, tg_op, old, new;
  return coalesce(new, old);
end $$;

-- Views.
create table t (a int primary key, b text);
create view v as select a, upper(b) as b, a + 1 as c from t where a < 100;
create function do_v() returns trigger language plpgsql as $$
begin
  raise notice '% % % % %', tg_when, tg_level, tg_op, old, new;
  if tg_op = 'INSERT' then
    if new.a > 50 then return null; end if;
    insert into t values (new.a, new.b); new.c := 1000; return new;
  elsif tg_op = 'UPDATE' then
    update t set a = new.a, b = new.b where a = old.a; return new;
  end if;
  delete from t where a = old.a;
  if not found then return null; end if;
  return old;
end $$;
insert into v (a, b) values (1, 'x');
create trigger v1 instead of insert or update or delete on v for each row execute function do_v();
create trigger v2 before insert or update or delete on v for each statement execute function say();
create trigger v3 after insert or update or delete on v for each statement execute function say();
insert into v (a, b) values (1, 'one'), (2, 'two'), (51, 'none') returning *;
insert into v select i, 'i' || i from generate_series(3, 5) i;
update v set b = 'changed' where a = 2 returning a, b, c;
update v set a = v.a + 10 from (values (3), (4)) w (x) where v.a = w.x returning v.*, w.x;
delete from v where c > 12 returning *;
delete from v using t where t.a = v.a and t.b = 'changed' returning v.a;
copy v (a, b) from stdin;
7	seven
60	none
\.
select * from t order by a;
create trigger no before insert on v for each row execute function say();
create trigger no after truncate on v for each statement execute function say();
create trigger no instead of insert on v for each statement execute function say();
create trigger no instead of update of a on v for each row execute function say();
create trigger no instead of update on v for each row when (old.a > 1) execute function say();
select tgname, tgtype, pg_get_triggerdef(oid) from pg_trigger where tgrelid = 'v'::regclass order by 1;
drop view v;
drop table t;

-- Partitions.
create table p (a int, b text) partition by range (a);
create table p1 partition of p for values from (0) to (10);
create trigger b1 before insert or update or delete on p for each row execute function say();
create trigger a1 after insert or update or delete on p for each row when (pg_trigger_depth() = 0) execute function say();
create trigger s1 before insert or update or delete on p for each statement execute function say();
create trigger s2 after insert or update or delete on p for each statement execute function say();
create table p2 (x int, b text, a int);
alter table p2 drop column x;
alter table p attach partition p2 for values from (10) to (20);
create table p3 partition of p for values from (20) to (40) partition by range (a);
create table p31 partition of p3 for values from (20) to (30);
select tgrelid::regclass, tgname, tgparentid <> 0 as child from pg_trigger where tgrelid::regclass::text like 'p%' and not tgisinternal order by 1, 2;
insert into p values (1, 'one'), (11, 'eleven'), (21, 'twenty-one'), (2, 'two');
update p set b = upper(b) where a in (1, 11);
update p set a = 12 where a = 2;
update p set a = 25 where a = 12;
delete from p where a > 20;
insert into p1 values (3, 'direct');
copy p from stdin;
4	copied
14	copied
\.
select tableoid::regclass, * from p order by a;
alter trigger b1 on p rename to b2;
alter trigger b1 on p1 rename to b3;
alter trigger b2 on p1 rename to b3;
drop trigger b2 on p1;
alter table p disable trigger a1;
alter table only p1 enable always trigger a1;
select tgrelid::regclass, tgname, tgenabled from pg_trigger where tgrelid::regclass::text like 'p%' and not tgisinternal order by 1, 2;
alter table p detach partition p2;
select tgrelid::regclass, tgname from pg_trigger where tgrelid::regclass::text like 'p%' and not tgisinternal order by 1, 2;
drop trigger b2 on p;
drop trigger a1 on p;
select tgrelid::regclass, tgname from pg_trigger where tgrelid::regclass::text like 'p%' and not tgisinternal order by 1, 2;
create function move() returns trigger language plpgsql as $$ begin new.a := new.a + 10; return new; end $$;
create trigger m before insert on p for each row execute function move();
insert into p values (5, 'x');
create trigger no after insert on p referencing new table as n for each row execute function say();
drop table p, p2;

-- Transition tables.
create table t (a int primary key, b text);
create function changed() returns trigger language plpgsql as $$
declare r record;
begin
  if tg_op <> 'INSERT' then
    for r in select * from o order by a loop raise notice '% % %: old %', tg_name, tg_op, tg_level, r; end loop;
  end if;
  if tg_op <> 'DELETE' then
    for r in select n.*, count(*) over () from n order by a loop raise notice '% % %: new %', tg_name, tg_op, tg_level, r; end loop;
  end if;
  return null;
end $$;
create trigger i after insert on t referencing new table as n for each statement execute function changed();
create trigger u after update on t referencing old table as o new table as n for each statement execute function changed();
create trigger d after delete on t referencing old table as o for each statement execute function changed();
create trigger r after update on t referencing old table as o new table as n for each row execute function changed();
insert into t values (1, 'one'), (2, 'two'), (3, 'three');
insert into t select a + 3, b from t;
update t set b = upper(b) where a < 3;
update t set b = null where a > 100;
insert into t values (1, 'x'), (10, 'ten') on conflict (a) do update set b = 'conflict';
merge into t using (values (1), (2), (77)) v (x) on a = x
  when matched and a = 1 then delete when matched then update set b = 'merged' when not matched then insert values (x, 'new');
copy t from stdin;
20	twenty
21	twenty-one
\.
with w as (insert into t values (30, 'with') returning a) delete from t using w where t.a = 2;
delete from t where a > 5;
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 't'::regclass order by tgname;
drop trigger i on t;
drop table t;
create table p (a int, b text) partition by list (a);
create table p1 (b text, a int);
alter table p attach partition p1 for values in (1, 2);
create table p2 partition of p for values in (3);
create trigger i after insert on p referencing new table as n for each statement execute function changed();
create trigger u after update on p referencing old table as o new table as n for each statement execute function changed();
create trigger d after delete on p referencing old table as o for each statement execute function changed();
insert into p values (1, 'x'), (3, 'y');
update p set b = b || '!';
update p set a = 2 where a = 3;
delete from p;
insert into p1 values ('direct', 1);
drop table p;
create table f (a int primary key);
create table g (a int references f on delete cascade, b int);
create trigger d after delete on g referencing old table as o for each statement execute function changed();
insert into f values (1), (2);
insert into g values (1, 1), (1, 2), (2, 3);
delete from f;
drop table f, g;
create table t (a int);
create trigger no before update on t referencing old table as o for each statement execute function say();
create trigger no after update on t referencing old table as o old table as n for each statement execute function say();
create trigger no after update on t referencing old table as o new table as o for each statement execute function say();
create trigger no after insert on t referencing old table as o for each statement execute function say();
create trigger no after delete on t referencing new table as o for each statement execute function say();
create trigger no after insert or update on t referencing new table as o for each statement execute function say();
create trigger no after update of a on t referencing new table as o for each statement execute function say();
create trigger no after truncate on t referencing new table as o for each statement execute function say();
create trigger no after update on t referencing new row as o for each row execute function say();

-- Constraint triggers.
create function check_sum() returns trigger language plpgsql as $$
begin
  if (select sum(a) from t) > 10 then raise exception 'too much: %', (select sum(a) from t) using errcode = 'check_violation'; end if;
  raise notice '% fine', tg_name;
  return null;
end $$;
create constraint trigger c1 after insert or update on t deferrable initially deferred for each row execute function check_sum();
create constraint trigger c2 after insert or update on t for each row when (new.a > 4) execute function check_sum();
insert into t values (1), (2);
begin;
insert into t values (20);
update t set a = 1 where a = 20;
insert into t values (3);
delete from t where a = 3;
commit;
begin;
insert into t values (3), (4);
commit;
select * from t order by a;
begin;
set constraints c1 immediate;
insert into t values (3);
insert into t values (4);
rollback;
begin;
insert into t values (4);
savepoint s;
insert into t values (4);
rollback to s;
set constraints all immediate;
commit;
select * from t order by a;
begin;
insert into t values (1);
alter table t add b int;
rollback;
select conname, contype, condeferrable, condeferred, conrelid::regclass, pg_get_constraintdef(oid) from pg_constraint
  where conrelid = 't'::regclass order by 1;
select pg_get_triggerdef(oid), tgdeferrable, tginitdeferred from pg_trigger where tgrelid = 't'::regclass order by tgname;
alter table t drop constraint c1;
-- PostgreSQL 18 says where.
\set VERBOSITY sqlstate
create or replace constraint trigger c1 after insert on t for each row execute function check_sum();
\set VERBOSITY default
create constraint trigger c3 after insert on t from pg_class deferrable for each row execute function check_sum();
select pg_get_triggerdef(oid) from pg_trigger where tgname = 'c3';
create constraint trigger c4 after insert on t for each statement execute function check_sum();
create constraint trigger c4 before insert on t for each row execute function check_sum();
drop trigger c1 on t;
select conname from pg_constraint where conrelid = 't'::regclass order by 1;
truncate t;

-- Deferred triggers whose statements leave more to do, and DDL in triggers.
create function more() returns trigger language plpgsql as $$
begin
  if new.a < 5 then insert into t values (new.a + 1); end if;
  return null;
end $$;
drop trigger c2 on t;
drop trigger c3 on t;
create constraint trigger m after insert on t deferrable initially deferred for each row execute function more();
insert into t values (2);
select * from t order by a;
create function ddl() returns trigger language plpgsql as $$
begin execute tg_argv[0]; return new; end $$;
create trigger x before insert on t for each row execute function ddl('create index on t (a)');
insert into t values (9);
create or replace trigger x before insert on t for each row execute function ddl('alter table t add c int');
insert into t values (9);
create or replace trigger x before insert on t for each row execute function ddl('drop table t');
insert into t values (9);
create or replace trigger x after insert on t for each row execute function ddl('truncate t');
insert into t values (9);
-- Many rows.
drop table t;
create table t (a int primary key, b int, c text);
create function set_b() returns trigger language plpgsql as $$ begin new.b := new.a % 7; return new; end $$;
create trigger b before insert on t for each row execute function set_b();
insert into t select i, null, repeat('x', 3000) from generate_series(1, 300) i;
select count(*), sum(b), min(length(c)), max(length(c)) from t;
create table audit (a int, b int);
create function note() returns trigger language plpgsql as $$ begin insert into audit values (old.a, length(old.c)); return null; end $$;
create trigger n after update or delete on t for each row execute function note();
update t set c = c || 'y';
delete from t where a % 2 = 0;
select count(*), sum(b) from audit;
select count(*), sum(b), min(length(c)), max(length(c)) from t;
drop table t, audit;
drop function say, changed, check_sum, more, ddl, set_b, note, do_v, move;
-- INSERT ... ON CONFLICT into a view with INSTEAD OF triggers.
create table behind (id int primary key, v int);
create view before_it as select * from behind;
create function instead() returns trigger language plpgsql as $$ begin raise notice '% %', tg_op, new; return new; end $$;
create trigger instead instead of insert on before_it for each row execute function instead();
insert into before_it values (1, 1), (2, 2) on conflict do nothing;
insert into before_it values (1, 1) on conflict (id) do nothing;
insert into before_it values (1, 1) on conflict (id) do update set v = 2;
drop table behind cascade;
drop function instead;
