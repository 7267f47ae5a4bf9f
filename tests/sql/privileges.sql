-- GRANT and REVOKE: grant options, chains of them, default privileges.
drop role if exists privilege_ann, privilege_bob, privilege_cee;
create role privilege_ann;
create role privilege_bob;
create role privilege_cee;
create table t (a int, b text);

-- a chain falls with its beginning
grant select, update on t to privilege_ann with grant option;
set role privilege_ann;
grant usage on schema play to privilege_bob;
reset role;
grant usage on schema play to privilege_ann, privilege_bob, privilege_cee;
set role privilege_ann;
grant select on t to privilege_bob with grant option;
grant delete on t to privilege_bob;
grant select, delete on t to privilege_cee;
grant all on t to privilege_cee;
set role privilege_bob;
grant select on t to privilege_cee;
grant select on t to privilege_ann with grant option;
grant update on t to privilege_cee;
set role privilege_cee;
grant update on t to privilege_bob;
reset role;
select replace(relacl::text, 'm/', '/') as relacl from pg_class where oid = 't'::regclass;
revoke select on t from privilege_ann;
revoke grant option for select on t from privilege_ann;
revoke grant option for select on t from privilege_ann cascade;
select replace(relacl::text, 'm/', '/') as relacl from pg_class where oid = 't'::regclass;
revoke all on t from privilege_ann restrict;
revoke all on t from privilege_ann cascade;
select replace(relacl::text, 'm/', '/') as relacl from pg_class where oid = 't'::regclass;
grant select on t to public with grant option;
grant select on t to privilege_ann granted by privilege_bob;
grant usage on t to privilege_ann;
grant nonsense on t to privilege_ann;

-- columns
grant select (a), insert (a, b) on t to privilege_bob;
grant select on t to privilege_bob;
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;
revoke select on t from privilege_bob;
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;
grant select (none) on t to privilege_bob;
grant usage (a) on t to privilege_bob;
set role privilege_bob;
grant select (a) on t to privilege_cee;
grant insert (a) on t to privilege_cee;
insert into t values (1, 'x');
select a from t;
reset role;
revoke all on t from privilege_bob;
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;

-- sequences, types, schemas
create sequence s;
grant usage, select on sequence s to privilege_ann with grant option;
grant insert, select on s to privilege_bob;
grant select on sequence t to privilege_bob;
select replace(relacl::text, 'm/', '/') as relacl from pg_class where oid = 's'::regclass;
create type e as enum ('x');
create domain d as int;
revoke usage on type e from public;
grant usage on type e to privilege_ann with grant option;
grant usage on domain d to privilege_bob;
grant usage on domain e to privilege_bob;
grant usage on type e[] to privilege_bob;
grant usage on type _e to privilege_bob;
grant select on type e to privilege_bob;
select typname, typacl from pg_type where typname in ('e', 'd') and typnamespace = 'play'::regnamespace order by 1;
create index i on t (a);
grant select on i to privilege_ann;
create type c as (x int);
grant select on c to privilege_ann;
grant select on all tables in schema play to privilege_ann;
grant usage on all sequences in schema play to privilege_bob;
select relname, replace(relacl::text, 'm/', '/') as relacl from pg_class where relname in ('t', 's') and relnamespace = 'play'::regnamespace order by 1;

-- what is granted goes with the owner
alter table t owner to privilege_bob;
alter sequence s owner to privilege_bob;
alter type e owner to privilege_bob;
select relname, replace(relacl::text, 'm/', '/') as relacl from pg_class where relname in ('t', 's') and relnamespace = 'play'::regnamespace order by 1;
select typacl from pg_type where oid = 'e'::regtype;

-- default privileges
grant create on schema play to privilege_ann;
alter default privileges for role privilege_ann grant select on tables to privilege_bob;
alter default privileges for role privilege_ann in schema play grant insert on tables to privilege_cee;
alter default privileges for role privilege_ann grant usage on sequences to public;
alter default privileges for role privilege_ann revoke usage on types from public;
alter default privileges for role privilege_ann in schema play grant select on schemas to privilege_bob;
alter default privileges for role privilege_ann grant usage on schemas to privilege_bob;
alter default privileges for role privilege_ann grant usage on tables to privilege_bob;
alter default privileges for role nobody grant select on tables to privilege_bob;
select defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, replace(defaclacl::text, 'm/', '/') as defaclacl from pg_default_acl order by 3, 2;
set role privilege_ann;
create table made (a int);
create sequence made_s;
create view made_view as select 1 as x;
create type made_enum as enum ('a');
create domain made_domain as int;
reset role;
create table not_hers (a int);
select relname, replace(relacl::text, 'm/', '/') as relacl from pg_class where relnamespace = 'play'::regnamespace and relname ~ 'made|not' and relkind <> 'i' order by 1;
select typname, typacl from pg_type where typname in ('made_enum', 'made_domain', 'made') and typnamespace = 'play'::regnamespace order by 1;
alter default privileges for role privilege_ann revoke insert on tables from privilege_cee;
alter default privileges for role privilege_ann in schema play revoke insert on tables from privilege_cee;
alter default privileges for role privilege_ann grant usage on types to public;
select defaclnamespace::regnamespace, defaclobjtype, replace(defaclacl::text, 'm/', '/') as defaclacl from pg_default_acl order by 2, 1;

-- a role that is used stays
drop role privilege_ann;
drop table made, not_hers;
drop sequence made_s;
drop view made_view;
drop type made_enum;
drop domain made_domain;
revoke create, usage on schema play from privilege_ann;
drop role privilege_ann;
alter default privileges for role privilege_ann revoke select on tables from privilege_bob;
alter default privileges for role privilege_ann revoke usage on sequences from public;
alter default privileges for role privilege_ann revoke usage on schemas from privilege_bob;
select count(*) from pg_default_acl;
revoke all on type e from privilege_ann cascade;
revoke all on s, t from privilege_ann;
drop role privilege_ann;
drop table t;
drop sequence s;
drop type c, e;
drop domain d;
revoke usage on schema play from privilege_bob, privilege_cee;
drop role privilege_bob, privilege_cee;

-- Names of relations as has_table_privilege reads them.
create table priv_names (a int);
select has_table_privilege('12345', 'select');
select has_table_privilege('a.b.c.d', 'select');
select has_table_privilege('nodb.public.priv_names', 'select');
select has_table_privilege('nosch.priv_names', 'select');
select has_table_privilege('nosuch', 'nopriv');
select has_table_privilege('priv_names', 'nopriv');
select has_table_privilege(0, 'nopriv');
select has_column_privilege('nosuch', 'a', 'nopriv');
select has_column_privilege('priv_names', 'nosuch', 'nopriv');
select has_any_column_privilege('12345', 'select');
select has_sequence_privilege('nosuch', 'nopriv');
create role priv_reader;
set role priv_reader;
select a, 1/0 from priv_names;
select a from priv_names;
reset role;
drop role priv_reader;
drop table priv_names;
