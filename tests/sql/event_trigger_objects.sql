-- What event triggers learn: the objects that a command defines and drops, the tables that it writes again.
create function tell_defined() returns event_trigger language plpgsql as $$
declare
    c record;
begin
    for c in select * from pg_event_trigger_ddl_commands() loop
        raise notice 'defined: % % % %', c.command_tag, c.object_type, c.schema_name, c.object_identity;
    end loop;
end $$;
create function tell_dropped() returns event_trigger language plpgsql as $$
declare
    d record;
begin
    for d in select * from pg_event_trigger_dropped_objects()
        where object_type not in ('toast table', 'trigger', 'rule') and not (object_type = 'type' and is_temporary)
            and object_identity !~ '^pg_toast' order by object_type, object_identity loop
        raise notice 'dropped: % % % % named % kept as % % temporary % original %', tg_tag, d.object_type, d.schema_name,
            d.object_identity, d.object_name, d.address_names, d.address_args, d.is_temporary, d.original;
    end loop;
end $$;
create function tell_rewritten() returns event_trigger language plpgsql as $$
begin
    raise notice 'rewritten: % % for %', tg_tag, pg_event_trigger_table_rewrite_oid()::regclass, pg_event_trigger_table_rewrite_reason();
end $$;
select * from pg_event_trigger_dropped_objects();
select * from pg_event_trigger_ddl_commands();
select pg_event_trigger_table_rewrite_oid();
select pg_event_trigger_table_rewrite_reason();
create event trigger defined on ddl_command_end execute function tell_defined();
create event trigger dropped on sql_drop execute function tell_dropped();
create event trigger rewritten on table_rewrite execute function tell_rewritten();

-- Defined
create schema s;
create table s.t (a int primary key, b text unique);
create table s.serial (a serial, b bigserial primary key);
create table s.identity (a int generated always as identity, b int references s.t);
create table s.part (a int primary key) partition by list (a);
create table s.part_1 partition of s.part for values in (1);
create view s.v as select 1 as x;
create materialized view s.m as select 1 as x;
create index i on s.t (b);
create sequence s.q;
create type s.mood as enum ('sad');
create type s.pair as (x int, y int);
create domain s.positive as int check (value > 0);
create function s.f(a int, b text) returns int language sql as 'select 1';
create or replace function s.f(a int, b text) returns int language sql as 'select 2';
create procedure s.p() language sql as 'select 1';
create trigger tr before update on s.t for each row execute function suppress_redundant_updates_trigger();
create policy pol on s.t;
create statistics s.st on a, b from s.t;
create temporary table tmp (a int);
create table s.from_query as select 1 as x;
create schema s2 create table t (a int primary key) create view v as select 1 as x;
alter table s.t add c int;
alter sequence s.q increment 2;
refresh materialized view s.m;
comment on table s.t is 'x';
comment on column s.t.a is 'x';
grant select on s.t to public;
revoke select on s.t from public;
alter default privileges in schema s grant select on tables to public;

-- Renamed and moved, where others mention them
create view s.mentions as select b, a, 1::s.positive as c from s.t where b <> '';
create function s.takes(x s.t) returns int language sql begin atomic select x.a; end;
alter table s.t rename to t1;
alter table s.t1 rename to t;
alter table s.t rename column b to bb;
alter view s.mentions rename column b to bb;
alter table s.t rename column bb to b;
alter table s.t rename constraint t_pkey to t_key;
alter table s.part rename constraint part_pkey to part_key;
alter policy pol on s.t rename to pol2;
alter policy pol2 on s.t rename to pol;
alter type s.pair rename attribute x to xx;
alter type s.pair rename to pair2;
alter domain s.positive rename to positive2;
alter domain s.positive2 rename constraint positive_check to checked;
alter function s.takes rename to takes2;
alter function s.takes2 set schema public;
alter table s.t set schema public;
alter table t set schema s;
alter domain s.positive2 set schema public;
alter materialized view s.m rename column x to y;
drop view s.mentions;
drop function takes2;

-- Rewritten
alter table s.t alter b type varchar;
insert into s.t values (1, '1', 1);
alter table s.t alter c type bigint;
alter table s.t add d int default 1;
alter table s.t add e float default random();

-- Dropped
drop trigger tr on s.t;
drop policy pol on s.t;
drop statistics s.st;
drop function s.f;
drop view s.v;
alter table s.t drop column e;
alter table s.t drop constraint t_b_key;
drop index s.i;
drop type s.mood;
drop table tmp;
drop table if exists nothing;
create function refuse() returns event_trigger language plpgsql as $$ begin raise exception '% is refused', tg_tag; end $$;
create event trigger refused on sql_drop when tag in ('DROP TABLE') execute function refuse();
drop table s.from_query;
select count(*) from s.from_query;
drop event trigger refused;
set client_min_messages = warning;
drop schema s2 cascade;
drop event trigger defined;
drop event trigger dropped;
drop event trigger rewritten;
drop schema s cascade;
