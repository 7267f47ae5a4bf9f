-- DROP OWNED and REASSIGN OWNED.
drop role if exists owned_ann, owned_bob, owned_cee, owned_dan;
create role owned_ann;
create role owned_bob;
create role owned_cee;
create role owned_dan createrole;
grant usage, create on schema play to owned_ann, owned_bob, owned_dan;

create table not_hers (a int, b text);
grant select, insert (b) on not_hers to owned_ann with grant option;
grant select on not_hers to owned_bob;
create sequence not_hers_s;
grant usage on sequence not_hers_s to owned_ann;
create type not_hers_e as enum ('a');
grant usage on type not_hers_e to owned_ann;
create function not_hers_f(int) returns int language sql as 'select $1';
grant execute on function not_hers_f(int) to owned_ann;
select lo_create(7001) as lo;
grant select on large object 7001 to owned_ann;
alter default privileges in schema play grant select on tables to owned_ann;
alter default privileges for role owned_ann grant select on tables to owned_bob;

set role owned_ann;
grant select on not_hers to owned_cee;
create table hers (id int primary key, a int references hers, e not_hers_e);
create sequence hers_s owned by hers.id;
create view hers_v as select id from hers;
create type hers_c as (x int, y text);
create type hers_e as enum ('a', 'b');
create domain hers_d as int check (value > 0);
create function hers_f() returns int language sql as 'select 1';
select lo_create(7002) as lo;
comment on large object 7002 is 'hers';
grant select on hers to owned_bob;
grant usage on type hers_e to owned_bob;
grant execute on function hers_f() to owned_bob;
reset role;
create view from_hers as select id from hers;
create table of_hers_e (e hers_e, d hers_d);

-- what there is
select classid::regclass, count(*), deptype from pg_shdepend where refobjid = 'owned_ann'::regrole and classid not in (1261, 2613) group by 1, 3 order by classid::int, 3;
drop role owned_ann;

-- who may not
drop owned by nobody_at_all;
drop owned by owned_bob, public;
drop owned by postgres;
reassign owned by postgres to owned_ann;
drop owned by pg_monitor;
reassign owned by pg_monitor to owned_bob;
reassign owned by owned_ann to nobody_at_all;
reassign owned by owned_ann to public;

-- to another owner and back
begin;
reassign owned by owned_ann to owned_bob;
select relname, relowner::regrole, replace(relacl::text, 'm/', '/') as relacl from pg_class where relname ~ '^hers' and relnamespace = 'play'::regnamespace order by 1;
select typname, typowner::regrole, typacl from pg_type where typname ~ '^_?hers' and typnamespace = 'play'::regnamespace order by 1;
select proname, proowner::regrole, proacl from pg_proc where proname = 'hers_f';
select oid, lomowner::regrole from pg_largeobject_metadata where oid in (7001, 7002) order by 1;
select defaclrole::regrole, defaclnamespace::regnamespace from pg_default_acl order by 1, 2;
reassign owned by owned_bob, owned_bob to owned_ann;
select count(*) from pg_class where relowner = 'owned_bob'::regrole;
rollback;
begin;
reassign owned by owned_ann to current_role;
select count(*) from pg_class where relowner = 'owned_ann'::regrole;
rollback;

-- a role that may not create where the objects are
create role owned_eve;
grant owned_eve, owned_ann to owned_dan;
set role owned_dan;
reassign owned by owned_ann to owned_eve;
reset role;
revoke owned_eve, owned_ann from owned_dan;
drop role owned_eve;

-- who grants and who revokes
set role owned_bob;
drop owned by owned_bob;
reset role;
select replace(relacl::text, 'm/', '/') as relacl from pg_class where relname = 'not_hers';

-- all goes
drop owned by owned_ann;
drop owned by owned_ann restrict;
drop owned by owned_ann cascade;
select replace(relacl::text, 'm/', '/') as relacl from pg_class where relname in ('not_hers', 'not_hers_s') order by 1;
select attname, attacl from pg_attribute where attrelid = 'not_hers'::regclass and attnum > 0 order by attnum;
select typacl from pg_type where typname = 'not_hers_e';
select proacl from pg_proc where proname = 'not_hers_f';
select oid, lomacl from pg_largeobject_metadata where oid in (7001, 7002) order by 1;
select obj_description(7002, 'pg_largeobject');
select relname from pg_class where relname ~ 'hers' and relnamespace = 'play'::regnamespace order by 1;
select typname from pg_type where typname ~ 'hers' and typnamespace = 'play'::regnamespace order by 1;
select count(*) from pg_default_acl;
select nspacl::text ~ 'owned_ann' from pg_namespace where nspname = 'play';
drop owned by owned_ann;
drop role owned_ann;
drop owned by owned_bob, owned_cee, owned_dan;
drop role owned_bob, owned_cee, owned_dan;
select lo_unlink(7001);

-- schemas
create role owned_ann;
create schema owned_s authorization owned_ann;
create table owned_s.t (a int);
drop owned by owned_ann;
drop owned by owned_ann cascade;
drop role owned_ann;
