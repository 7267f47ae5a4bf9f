-- Definitions of foreign data. A wrapper without a handler keeps them, and reads nothing.
create foreign data wrapper w options (a '1', b 'two words');
create foreign data wrapper w;
create server s1 type 'kind' version '1' foreign data wrapper w options (host 'h');
create server s1 foreign data wrapper w;
create server if not exists s1 foreign data wrapper w;
create server s2 foreign data wrapper nosuch;
create foreign table t1 (a int, b text default 'x' not null, check (a > 0)) server s1 options (x '1', y '2');
select * from t1;
explain select * from t1;
select 1 from t1 where false;
alter foreign table t1 options (set x '3', drop y, add z '4', q '5');
select ftoptions from pg_foreign_table;
alter foreign table t1 options (set nosuch '3');
alter foreign table t1 options (drop nosuch);
alter foreign table t1 options (x '3');
create foreign table t2 (a int) server s1 options (x '1', x '2');
create foreign table t3 (a int) server nosuch;
create foreign table if not exists t1 (a int) server s1;
create user mapping for postgres server s1;
create user mapping for postgres server s1;
create user mapping if not exists for postgres server s1;
alter user mapping for postgres server s1 options (a 'b');
alter user mapping for public server s1 options (a 'b');
drop user mapping for public server s1;
drop user mapping if exists for public server s1;
drop user mapping if exists for nosuch server s1;
drop user mapping if exists for postgres server nosuch;
create user mapping for public server s1 options (c 'd');
select srvname, usename, umoptions from pg_user_mappings order by 2;
comment on server s1 is 'of a server';
comment on foreign data wrapper w is 'of a wrapper';
comment on foreign table t1 is 'of a table';
comment on table t1 is 'of a table';
comment on server nosuch is 'x';
\dew+
\des+
\deu+
\det+
\d t1
\d
drop foreign data wrapper w;
drop server s1;
drop server nosuch;
drop foreign data wrapper if exists nosuch;
drop server if exists nosuch;
alter server s1 version '2' options (set host 'i', add port '5');
alter server s1 rename to s9;
alter server s9 owner to postgres;
alter server nosuch owner to postgres;
alter server nosuch version '3';
alter foreign data wrapper w options (drop a, set b 'c');
alter foreign data wrapper nosuch options (a 'b');
alter foreign data wrapper w rename to w2;
alter foreign data wrapper w2 rename to w;
import foreign schema x from server s9 into public;
import foreign schema x from server nosuch into public;
select fdwname, fdwoptions from pg_foreign_data_wrapper where fdwname = 'w';
select srvname, srvtype, srvversion, srvoptions from pg_foreign_server;
select foreign_server_name, foreign_data_wrapper_name, foreign_server_version from information_schema.foreign_servers;
select foreign_table_name, foreign_server_name from information_schema.foreign_tables;
select option_name, option_value from information_schema.foreign_table_options order by 1;
select option_name, option_value from information_schema.foreign_server_options order by 1;
select authorization_identifier, foreign_server_name from information_schema.user_mappings order by 1;
select table_name, table_type from information_schema.tables where table_name = 't1';
select relkind, relam, relhasindex, reltoastrelid, relreplident from pg_class where relname = 't1';
select pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype
from pg_depend where refclassid in ('pg_foreign_server'::regclass, 'pg_foreign_data_wrapper'::regclass) order by 1, 2;
select i.type, object_names, object_args, identity from (values ('pg_foreign_data_wrapper'::regclass, (select oid from pg_foreign_data_wrapper where fdwname = 'w')),
    ('pg_foreign_server', (select oid from pg_foreign_server)), ('pg_class', 't1'::regclass::oid)) o (class, id),
    pg_identify_object(class, id, 0) i, pg_identify_object_as_address(class, id, 0) a order by 1;
select pg_describe_object(a.classid, a.objid, 0) from pg_get_object_address('server', '{s9}', '{}') a
union all select pg_describe_object(a.classid, a.objid, 0) from pg_get_object_address('foreign-data wrapper', '{w}', '{}') a
union all select pg_describe_object(a.classid, a.objid, 0) from pg_get_object_address('user mapping', '{postgres}', '{s9}') a
union all select pg_describe_object(a.classid, a.objid, 0) from pg_get_object_address('foreign table', '{public,t1}', '{}') a;

-- What a foreign table is not.
drop table t1;
drop view t1;
drop foreign table t3;
create index on t1 (a);
copy t1 to stdout;
merge into t1 using (select 1 as x) s on true when matched then delete;
vacuum t1;
cluster t1;
reindex table t1;
create foreign table t8 (a int primary key) server s9;
create foreign table t8 (a int unique) server s9;
create foreign table t8 (a int references x) server s9;
create foreign table t8 (a int, exclude (a with =)) server s9;
create materialized view mv as select * from t1;
create policy p on t1;
select * from t1 tablesample system (1);
create table heir () inherits (nosuch);

-- Changes.
alter table t1 add column c int;
alter foreign table t1 drop column c;
alter foreign table t1 alter b type varchar;
alter foreign table t1 alter b set default 'y';
alter foreign table t1 alter b drop not null;
alter foreign table t1 set (fillfactor = 10);
alter foreign table t1 enable row level security;
alter foreign table t1 add primary key (a);
alter foreign table t1 add unique (a);
alter foreign table t1 add foreign key (a) references pg_class (oid);
alter foreign table t1 add constraint small check (a < 1000);
alter foreign table t1 drop constraint small;
create schema elsewhere;
alter foreign table t1 set schema elsewhere;
alter foreign table elsewhere.t1 rename to t5;
alter foreign table elsewhere.t5 rename a to aa;
alter foreign table if exists nosuch add column c int;
alter foreign table elsewhere.t5 owner to postgres;
\d elsewhere.t5
create view v as select aa from elsewhere.t5;
drop foreign table elsewhere.t5;

-- Privileges.
create role fdw_user;
set role fdw_user;
create foreign data wrapper w5;
create server s5 foreign data wrapper w;
create user mapping for fdw_user server s9;
create user mapping for postgres server s9;
alter server s9 version '3';
drop server s9;
drop foreign data wrapper w;
alter foreign data wrapper w options (b 'c');
select * from elsewhere.t5;
reset role;
grant usage on foreign server s9 to fdw_user;
grant usage on foreign data wrapper w to fdw_user;
grant select on foreign server s9 to fdw_user;
grant usage on foreign server nosuch to fdw_user;
grant usage on foreign data wrapper nosuch to fdw_user;
grant create on schema elsewhere to fdw_user;
set role fdw_user;
create foreign table elsewhere.t9 (a int) server s9;
create user mapping for fdw_user server s9;
create server s5 foreign data wrapper w;
reset role;
select srvname, srvacl from pg_foreign_server order by 1;
select fdwacl from pg_foreign_data_wrapper where fdwname = 'w';
select has_server_privilege('fdw_user', 's9', 'usage'), has_foreign_data_wrapper_privilege('fdw_user', 'w', 'usage');
select has_server_privilege('fdw_user', 'nosuch', 'usage');
revoke usage on foreign server s9 from fdw_user;
select has_server_privilege('fdw_user', 's9', 'usage'), has_server_privilege('s9', 'usage');
alter foreign data wrapper w owner to fdw_user;
alter server s9 owner to fdw_user;
reassign owned by fdw_user to postgres;
drop owned by fdw_user;
drop role fdw_user;

-- A rollback, and what goes with a wrapper.
begin;
create server s7 foreign data wrapper w;
create foreign table t7 (a int) server s7;
drop server s9 cascade;
rollback;
select srvname from pg_foreign_server order by 1;
\set VERBOSITY terse
drop foreign data wrapper w cascade;
select count(*) from pg_foreign_server;
select count(*) from pg_foreign_table;
select count(*) from pg_user_mapping;
drop schema elsewhere cascade;
