-- roles
create role acc_new
create role acc_new superuser
create role acc_new createdb
create role acc_new replication
create role acc_new bypassrls
create role acc_new role acc_owner
create role acc_new in role acc_group
create role acc_new in role acc_root
create role pg_new
alter role current_user superuser
alter role current_user createrole
alter role current_user password 'x'
alter role current_user set work_mem = '1MB'
alter role acc_victim password 'x'
alter role acc_victim nologin
alter role acc_victim createdb
alter role acc_victim replication
alter role acc_victim rename to acc_taken
alter role acc_victim set work_mem = '1MB'
alter role acc_root password 'x'
alter role acc_root rename to acc_taken
alter role acc_root set work_mem = '1MB'
alter role pg_monitor login
alter role all set work_mem = '1MB'
drop role acc_victim
drop role acc_root
drop role acc_managed
drop role pg_monitor
grant acc_root to current_user
grant acc_group to current_user
grant acc_group to acc_stranger
grant acc_group to acc_stranger with admin option
grant acc_group to acc_stranger granted by acc_owner
grant acc_group to acc_stranger granted by acc_root
grant acc_managed to acc_stranger
grant pg_read_server_files to current_user
grant pg_database_owner to current_user
grant acc_owner to acc_group
grant acc_owner to public
revoke acc_owner from acc_member
revoke acc_group from acc_owner
revoke admin option for acc_group from acc_owner
set role acc_owner
set role acc_root
set session authorization acc_root
reset role
comment on role acc_victim is 'x'
comment on role acc_root is 'x'
-- schemas and databases
create schema acc_mine
create schema acc_mine authorization acc_root
create schema acc_mine authorization acc_owner
create schema pg_mine
alter schema acc rename to acc_renamed
alter schema acc rename to pg_renamed
alter schema acc owner to acc_root
alter schema acc owner to acc_group
alter schema acc_rooted rename to acc_renamed
alter schema pg_catalog rename to acc_catalog
drop schema acc_rooted
drop schema pg_catalog
drop schema public
grant create on schema acc to acc_stranger
grant usage on schema acc_hidden to acc_stranger
comment on schema acc is 'x'
comment on schema acc_rooted is 'x'
alter database postgres set work_mem = '1MB'
alter database postgres connection limit 5
alter database postgres owner to acc_owner
alter database postgres rename to acc_db
comment on database postgres is 'x'
grant create on database postgres to acc_stranger
create temporary table acc_temp (a int)
-- tables
create table acc.n (a int)
create table acc_hidden.n (a int)
create table pg_catalog.n (a int)
create table public.n (a int)
create table acc.n (like acc.t)
create table acc.n (a int references acc.t)
create table acc.n (a text references acc.t (secret))
create table acc.n () inherits (acc.t)
create table acc.n partition of acc.parts for values in (7)
create table acc.n (c acc.color)
create table acc.n (c acc.color[])
create table acc.n (c acc.pair)
create table acc.n (c acc.small)
create table acc.n (c text default ('red'::acc.color)::text)
create table acc.n as select id from acc.t
create table acc.n as select * from acc.t
alter table acc.t add column more int
alter table acc.t drop column open
alter table acc.t rename to renamed
alter table acc.t rename column open to opened
alter table acc.t owner to acc_root
alter table acc.t owner to acc_group
alter table acc.t set schema public
alter table acc.t set schema acc_hidden
alter table acc.t alter column open type varchar
alter table pg_catalog.pg_class add column x int
alter table pg_catalog.pg_class rename to pg_klass
drop table acc.t cascade
drop table pg_catalog.pg_class
truncate acc.empty
create index on acc.t (open)
drop index acc.t_open
alter index acc.t_open rename to renamed
reindex table acc.t
reindex index acc.t_open
analyze acc.t
analyze acc.empty
cluster acc.t using t_pkey
lock table acc.t in access exclusive mode
lock table acc.empty in share mode
comment on table acc.t is 'x'
comment on column acc.t.open is 'x'
comment on constraint small on acc.t is 'x'
grant select on acc.t to acc_stranger
grant select (secret) on acc.t to acc_stranger
grant truncate on acc.empty to acc_stranger
revoke select on acc.t from acc_grantee
-- rows
select id from acc.t
select id, open from acc.t
select secret from acc.t
select * from acc.t
select count(*) from acc.t
select t from acc.t
select from acc.t where secret = 'hidden'
select id from acc.t for update
select * from acc.v
select * from acc.m
select nextval('acc.s')
select * from acc.s
select last_value from acc.s
select setval('acc.s', 5)
insert into acc.t (id) values (50)
insert into acc.t (id, secret) values (50, 'mine')
insert into acc.t (id, open) values (50, 'x') returning id
insert into acc.t (id, open) values (50, 'x') returning secret
insert into acc.t (id) values (500)
insert into acc.t (id) values (50), (51)
insert into acc.t (id) values (1)
insert into acc.t (open) values ('x')
insert into acc.t (id) values (1) on conflict do nothing
insert into acc.t (id) values (1) on conflict (id) do update set open = 'y'
insert into acc.t (id) values (1) on conflict (secret) do nothing
insert into acc.t (id) values (1) on conflict on constraint t_secret_key do nothing
insert into acc.t (id) values (1) on conflict (id) do update set open = excluded.secret
insert into acc.t (id) values (1) on conflict (id) do update set secret = 'y'
insert into acc.parts (k, v) values (9, 'x')
insert into acc.parts (k, v) values (1, null)
update acc.parts set v = null
update acc.t set open = 'z'
update acc.t set open = secret
update acc.t set secret = 'z'
update acc.t set open = 'z' where secret is not null
update acc.v set open = 'z'
delete from acc.t
delete from acc.v
merge into acc.t using (values (1)) x (i) on id = i when matched then update set open = 'm'
merge into acc.t using (values (1)) x (i) on id = i when matched then delete
copy acc.t from '/etc/passwd'
copy (select 1) to '/tmp/acc-file'
-- views
create view acc.n as select secret from acc.t
create or replace view acc.v as select id, open from acc.t
drop view acc.v
alter view acc.v owner to acc_root
refresh materialized view acc.m
drop materialized view acc.m
-- sequences
create sequence acc.n
alter sequence acc.s restart
alter sequence acc.s owner to acc_root
drop sequence acc.s
-- types
create type acc.n as enum ('a')
create type acc.n as (c acc.color)
create domain acc.n as acc.small
create domain acc.n as acc.color
create table acc.n of acc.pair
create table acc.n (like acc.guarded including constraints)
create table acc.n (like acc.guarded including defaults)
drop aggregate acc.total(int)
alter type acc.color add value 'blue'
alter type acc.color rename to colour
alter type acc.color owner to acc_root
alter type acc.color set schema public
drop type acc.color
drop domain acc.small
comment on type acc.color is 'x'
grant usage on type acc.color to acc_stranger
select 'red'::acc.color
-- functions
create function acc.n() returns int language sql as 'select 1'
create function acc.n(acc.color) returns int language sql as 'select 1'
create function acc.n() returns acc.pair language sql as 'select 1, 2'
create function acc.n(int, int) returns int language internal as 'int4pl'
create function acc_hidden.n() returns int language sql as 'select 1'
select acc.f(1)
call acc.p()
select acc.whoami()
alter function acc.f(int) owner to acc_root
alter function acc.f(int) owner to acc_group
alter function acc.f(int) rename to g
alter function acc.f(int) set schema public
alter function acc.f(int) security definer
alter function acc.whoami() set role = acc_root
drop function acc.f(int)
grant execute on function acc.f(int) to acc_stranger
comment on function acc.f(int) is 'x'
create or replace function acc.f(int) returns int language sql as 'select 666'
-- the server
select pg_read_file('/etc/hostname')
select pg_ls_dir('/etc')
select pg_stat_file('/etc/hostname')
select lo_import('/etc/hostname')
select pg_reload_conf()
select rolpassword from pg_authid
select passwd from pg_shadow
select count(*) > 0 from pg_roles
show data_directory
show config_file
select setting from pg_settings where name = 'hba_file'
set session_replication_role = replica
set zero_damaged_pages = on
checkpoint
alter default privileges grant select on tables to acc_stranger
alter default privileges for role acc_owner grant select on tables to acc_stranger
alter default privileges for role acc_root grant select on tables to acc_stranger
security label on table acc.t is 'x'
