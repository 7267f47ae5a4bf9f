-- What the parts of one statement have in common for triggers: WITH queries that change the same table, actions of foreign keys.

create function say() returns trigger language plpgsql as $$
begin
  raise notice '% on %: % % %', tg_name, tg_table_name, tg_when, tg_level, tg_op;
  return coalesce(new, old);
end $$;
create function old_rows() returns trigger language plpgsql as $$
begin
  raise notice '% %: old %', tg_name, tg_op, (select string_agg(o::text, ' ' order by a) from o);
  return null;
end $$;
create function new_rows() returns trigger language plpgsql as $$
begin
  raise notice '% %: new %', tg_name, tg_op, (select string_agg(n::text, ' ' order by a) from n);
  return null;
end $$;

-- WITH: statement triggers fire once, and see the rows of all parts.
create table t (a int primary key, b text);
create trigger b before insert or update or delete on t for each statement execute function say();
create trigger i after insert on t referencing new table as n for each statement execute function new_rows();
create trigger u after update on t referencing new table as n for each statement execute function new_rows();
create trigger d after delete on t referencing old table as o for each statement execute function old_rows();
with w as (insert into t values (1, 'w')) insert into t values (2, 'main');
with w as (insert into t values (3, 'w')) merge into t using (values (4)) v (x) on a = x when not matched then insert values (x, 'merge');
with w as (insert into t values (5, 'w') returning a), x as (insert into t values (6, 'x')) update t set b = 'main' where a = 1;
with w as (update t set b = 'w' where a = 2), x as (delete from t where a = 3) update t set b = 'again' where a = 4;

-- Events come in the order of the changes, whichever table they are made to.
create table s (a int, b text);
create trigger r after insert on s for each row execute function say();
create trigger s after insert on s execute function say();
create trigger r after insert on t for each row execute function say();
with w as (insert into s values (1, 'x'), (2, 'y') returning a) insert into t select a + 10, 'of w' from w;
with w as (insert into s values (3, 'x'), (4, 'y')) insert into t values (21, 'main'), (22, 'main');
drop table s, t;

-- Actions of foreign keys belong to the statement that caused them.
create table f (a int primary key, up int references f on delete cascade);
create trigger b before delete on f execute function say();
create trigger s after delete on f referencing old table as o for each statement execute function old_rows();
insert into f values (1, null), (2, 1), (3, 2), (4, 3);
delete from f where a = 1;
create trigger r after delete on f referencing old table as o for each row execute function old_rows();
insert into f values (1, null), (2, 1), (3, 2);
delete from f where a = 1;
create table g (a int references f on delete cascade on update cascade, b int);
create trigger s after update or delete on g execute function say();
create trigger o after delete on g referencing old table as o for each statement execute function old_rows();
insert into f values (1, null), (2, null);
insert into g values (1, 1), (1, 2), (2, 3);
update f set a = a + 10;
delete from f;
drop table f, g;

-- MERGE does not say which change was to be made.
create table p (a int primary key, n int default 0);
create table c (a int primary key references p, n int);
create function count_up() returns trigger language plpgsql as $$
begin update p set n = n + 1 where a = old.a; return old; end $$;
create trigger b before update or delete on p for each row when (pg_trigger_depth() = 0) execute function count_up();
insert into p values (1);
merge into p using (values (1)) v (x) on a = x when matched then update set n = 7;
merge into p using (values (1)) v (x) on a = x when matched then delete;
update p set n = 7;
delete from p;
drop table c, p;

-- Triggers at rows that read all rows keep tables out of hierarchies.
create table t (a int);
create trigger r after insert on t referencing new table as n for each row execute function new_rows();
create table parent (a int);
alter table t inherit parent;
drop trigger r on t;
alter table t inherit parent;
