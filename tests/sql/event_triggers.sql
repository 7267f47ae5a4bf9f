-- Event triggers at the beginning and the end of commands: which commands fire them, in which order, and what is refused.
create function report() returns event_trigger language plpgsql as $$
begin
    raise notice 'report: % %', tg_event, tg_tag;
end $$;
create function report_again() returns event_trigger language plpgsql as $$
begin
    raise notice 'report again: % %', tg_event, tg_tag;
    if tg_tag = 'CREATE SCHEMA' then
        raise exception 'no schemas';
    end if;
end $$;
create function plain() returns int language sql as 'select 1';
create function with_argument(a int) returns event_trigger language plpgsql as $$ begin end $$;
create function in_sql() returns event_trigger language sql as $$ select 1 $$;
select report();
create event trigger e on ddl_command_start execute function plain();
create event trigger e on ddl_command_start execute function nosuch();
create event trigger e on elephant_bootstrap execute function report();
create event trigger e on ddl_command_start when food in ('sandwich') execute function report();
create event trigger e on ddl_command_start when tag in ('sandwich') execute function report();
create event trigger e on ddl_command_start when tag in ('create table', 'create skunkcabbage') execute function report();
create event trigger e on ddl_command_start when tag in ('DROP EVENT TRIGGER') execute function report();
create event trigger e on ddl_command_start when tag in ('CREATE ROLE') execute function report();
create event trigger e on ddl_command_end when tag in ('TRUNCATE TABLE') execute function report();
create event trigger e on ddl_command_start when tag in ('create table') and tag in ('CREATE FUNCTION') execute function report();
create event trigger e on table_rewrite when tag in ('create table') execute function report();
create event trigger e on ddl_command_start execute function report();
create event trigger e on ddl_command_end execute function report();
create event trigger b on ddl_command_end when tag in ('create table', 'Create Function', 'create schema') execute function report_again();
create event trigger f on ddl_command_end execute function report();
select evtname, evtevent, pg_get_userbyid(evtowner) = current_user as own, evtfoid::regproc, evtenabled, evttags
    from pg_event_trigger order by 1;

-- Which statements fire them
create table t (a int primary key, b text);
create table if not exists t (a int);
alter table t add c int, add check (c > 0);
create index on t (b);
create view v as select * from t;
create function g() returns int language sql as 'select 1';
create schema s;
select count(*) from pg_namespace where nspname = 's';
create table from_query as select 1 as x;
select 1 as x into from_query2;
create materialized view m as select 1 as x;
refresh materialized view m;
create sequence q;
alter sequence q increment 2;
create type mood as enum ('sad');
alter type mood add value 'glad';
comment on table t is 'x';
comment on table t is null;
grant select on t to public;
revoke select on t from public;
create policy p on t;
create statistics st on a, b from t;
create trigger tr before update on t for each row execute function suppress_redundant_updates_trigger();
drop trigger tr on t;
drop table if exists nosuch;
drop table from_query, from_query2;
truncate t;
insert into t values (1, 'x', 1);
cluster t using t_pkey;
analyze t;
create role event_role;
drop role event_role;
create table t (a int);
do $$ begin create table in_block (a int); end $$;
drop table in_block;
begin;
create table t2 (a int);
rollback;
explain (costs off) create table t3 as select 1;

-- Changes of the triggers themselves fire none
alter event trigger e disable;
alter event trigger f enable replica;
create table t4 (a int);
set session_replication_role = replica;
create table t5 (a int);
alter event trigger e enable always;
create table t6 (a int);
reset session_replication_role;
create table t7 (a int);
select evtname, evtenabled from pg_event_trigger order by 1;
create table t8 (a int);
alter event trigger f rename to b;
alter event trigger f rename to a;
alter event trigger nosuch rename to a2;
comment on event trigger a is 'first';
comment on event trigger nosuch is 'first';
select obj_description(oid, 'pg_event_trigger') from pg_event_trigger where evtname = 'a';
drop event trigger if exists nosuch;
drop event trigger nosuch;
create role event_role;
alter event trigger a owner to event_role;
set role event_role;
create event trigger c on ddl_command_start execute function report();
alter event trigger a disable;
drop event trigger a;
reset role;
alter role event_role superuser;
alter event trigger a owner to event_role;
drop role event_role;
reassign owned by event_role to current_user;
drop role event_role;
drop function report();
drop function report_again() cascade;
drop event trigger a;
drop event trigger e;
drop table t, t4, t5, t6, t7, t8 cascade;

-- A trigger may forbid, and may define objects itself
create function forbid() returns event_trigger language plpgsql as $$ begin raise exception '% is forbidden', tg_tag; end $$;
create event trigger e on ddl_command_start when tag in ('DROP TABLE', 'ALTER TABLE') execute function forbid();
create table t (a int);
drop table t;
alter table t add b int;
drop event trigger e;
create function keep_log() returns event_trigger language plpgsql as $$
begin
    create table if not exists kept (tag text);
    insert into kept values (tg_tag);
end $$;
create event trigger e on ddl_command_end when tag in ('DROP TABLE') execute function keep_log();
drop table t;
create table t (a int);
drop table t;
select * from kept;
create function with_parameter() returns event_trigger language plpgsql as $$ begin return null; end $$;
