-- Names of objects by their address, and addresses by names: pg_describe_object, pg_identify_object, pg_identify_object_as_address
-- and pg_get_object_address.
create role address_user;
create schema a_schema;
set search_path to a_schema, public;
create table a_schema.t (id serial primary key constraint positive check (id > 0), name text default 'x');
create table a_schema.parts (id int primary key) partition by range (id);
create view a_schema.v as select * from a_schema.t;
create materialized view a_schema.m as select * from a_schema.t;
create type a_schema.pair as (a int);
create type a_schema."Mood" as enum ('sad');
create domain a_schema.small as int constraint under_ten check (value < 10);
create aggregate a_schema.total(int) (sfunc = int4pl, stype = int4);
create function a_schema.twice(x int, y text default '') returns int language sql as 'select 2 * x';
create procedure a_schema.run(int) language sql as '';
create function a_schema.fires() returns trigger language plpgsql as 'begin return new; end';
create trigger tr before insert on a_schema.t for each row execute function a_schema.fires();
create policy own on a_schema.t;
create statistics a_schema.both on id, name from a_schema.t;
create collation a_schema.c from "C";
create operator a_schema.+++ (leftarg = int, rightarg = int, function = int4pl);
create cast (a_schema.pair as int) with inout;
alter default privileges for role address_user in schema a_schema grant all on tables to address_user;
alter default privileges for role address_user revoke execute on functions from public;
create function a_schema.watches() returns event_trigger language plpgsql as 'begin end';
create event trigger watch on ddl_command_end execute function a_schema.watches();
select lo_create(4711);

create temp table wanted (kind text, names text[], arguments text[] default '{}');
insert into wanted values
    ('table', '{a_schema,t}'), ('table', '{t}'), ('table', '{a_schema,parts}'), ('index', '{a_schema,t_pkey}'),
    ('index', '{a_schema,parts_pkey}'), ('sequence', '{t_id_seq}'), ('view', '{a_schema,v}'), ('materialized view', '{m}'),
    ('table column', '{a_schema,t,name}'), ('table column', '{t,id}'), ('default value', '{t,name}'), ('type', '{a_schema.pair}'),
    ('type', '{"\"Mood\""}'), ('type', '{int4[]}'), ('type', '{pg_catalog.text}'), ('rule', '{v,_RETURN}'), ('trigger', '{t,tr}'),
    ('policy', '{t,own}'), ('table constraint', '{t,positive}'), ('statistics object', '{both}'), ('collation', '{a_schema,c}'),
    ('collation', '{default}'), ('schema', '{a_schema}'), ('language', '{plpgsql}'), ('role', '{address_user}'),
    ('tablespace', '{pg_default}'), ('access method', '{btree}'), ('event trigger', '{watch}'), ('extension', '{plpgsql}'),
    ('large object', '{4711}'), ('conversion', '{koi8_r_to_mic}'), ('text search parser', '{default}'),
    ('text search dictionary', '{pg_catalog,simple}'), ('text search template', '{simple}'), ('text search configuration', '{english}'),
    ('operator class', '{btree,int4_ops}'), ('operator family', '{btree,pg_catalog,integer_ops}'), ('default acl', '{address_user,a_schema}', '{r}'),
    ('default acl', '{address_user}', '{f}'), ('domain constraint', '{small}', '{under_ten}'), ('cast', '{pair}', '{integer}'),
    ('cast', '{int8}', '{int4}'), ('function', '{twice}', '{int,text}'), ('function', '{pg_catalog,lower}', '{text}'),
    ('aggregate', '{a_schema,total}', '{int}'), ('procedure', '{run}', '{int}'), ('operator', '{+++}', '{int,int}'),
    ('operator', '{pg_catalog,+}', '{int,int}'), ('operator of access method', '{btree,integer_ops,1}', '{integer,bigint}'),
    ('function of access method', '{btree,integer_ops,2}', '{int4,int4}');
select w.kind, (pg_identify_object(a.classid, a.objid, a.objsubid)).*, p.object_names, p.object_args,
    pg_describe_object(a.classid, a.objid, a.objsubid) as description, a = b as found_again
from wanted w, pg_get_object_address(kind, names, arguments) a,
    pg_identify_object_as_address(a.classid, a.objid, a.objsubid) p, pg_get_object_address(p.type, p.object_names, p.object_args) b
order by 1, w.names;
-- Names are qualified where the search path does not find them.
set search_path to public;
select pg_describe_object(classid, objid, objsubid) from pg_get_object_address('table column', '{a_schema,t,name}', '{}');
select pg_describe_object(classid, objid, objsubid) from pg_get_object_address('function', '{a_schema,twice}', '{int,text}');
select pg_describe_object(classid, objid, objsubid) from pg_get_object_address('trigger', '{a_schema,t,tr}', '{}');
select pg_describe_object(classid, objid, objsubid) from pg_get_object_address('type', '{"a_schema.\"Mood\""}', '{}');
select pg_describe_object(classid, objid, objsubid), (pg_identify_object(classid, objid, objsubid)).identity
    from pg_get_object_address('table', '{pg_temp,wanted}', '{}');
set search_path to a_schema, public;
-- What is not there.
select (pg_identify_object('pg_class'::regclass, 0, 0)).*, pg_describe_object('pg_class'::regclass, 0, 0);
select * from pg_identify_object_as_address('pg_proc'::regclass, 1, 0);
select * from pg_identify_object('pg_class'::regclass, 'pg_class'::regclass, 100);
select * from pg_identify_object('pg_largeobject'::regclass, 4712, 0);
select * from pg_identify_object('pg_class'::regclass, 'pg_class'::regclass, 3);
select pg_describe_object(0, 0, 0);
select pg_get_object_address('stone', '{}', '{}');
select pg_get_object_address('toast table', '{a}', '{}');
select pg_get_object_address('table', '{}', '{}');
select pg_get_object_address('table', '{NULL}', '{}');
select pg_get_object_address('large object', '{NULL}', '{}');
select pg_get_object_address('large object', '{4712}', '{}');
select pg_get_object_address('large object', '{x}', '{}');
select pg_get_object_address('table', '{absent}', '{}');
select pg_get_object_address('table', '{absent,t}', '{}');
select pg_get_object_address('table', '{absent,a_schema,t}', '{}');
select pg_get_object_address('table', '{v}', '{}');
select pg_get_object_address('index', '{t}', '{}');
select pg_get_object_address('foreign table', '{t}', '{}');
select pg_get_object_address('table column', '{t}', '{}');
select pg_get_object_address('table column', '{a_schema,t,absent}', '{}');
select pg_get_object_address('default value', '{v,id}', '{}');
select pg_get_object_address('trigger', '{t}', '{}');
select pg_get_object_address('trigger', '{t,absent}', '{}');
select pg_get_object_address('rule', '{t,absent}', '{}');
select pg_get_object_address('policy', '{t,absent}', '{}');
select pg_get_object_address('table constraint', '{t,absent}', '{}');
select pg_get_object_address('domain constraint', '{small}', '{absent}');
select pg_get_object_address('domain constraint', '{int4}', '{absent}');
select pg_get_object_address('type', '{absent}', '{}');
select pg_get_object_address('type', '{a,b}', '{}');
select pg_get_object_address('cast', '{int4}', '{}');
select pg_get_object_address('cast', '{int4}', '{pair}');
select pg_get_object_address('function', '{absent}', '{int}');
select pg_get_object_address('function', '{run}', '{int}');
select pg_get_object_address('procedure', '{twice}', '{int,text}');
select pg_get_object_address('aggregate', '{absent}', '{}');
select pg_get_object_address('function', '{a,b,c}', '{}');
select pg_get_object_address('operator', '{+}', '{int}');
select pg_get_object_address('operator', '{+++}', '{text,int}');
select pg_get_object_address('operator class', '{btree}', '{}');
select pg_get_object_address('operator class', '{absent,x}', '{}');
select pg_get_object_address('operator class', '{heap,x}', '{}');
select pg_get_object_address('operator family', '{btree,absent}', '{}');
select pg_get_object_address('operator of access method', '{btree,integer_ops,99}', '{int4,int8}');
select pg_get_object_address('conversion', '{absent}', '{}');
select pg_get_object_address('collation', '{absent}', '{}');
select pg_get_object_address('statistics object', '{absent}', '{}');
select pg_get_object_address('text search parser', '{absent}', '{}');
select pg_get_object_address('default acl', '{address_user}', '{r}');
select pg_get_object_address('default acl', '{address_user,public}', '{r}');
select pg_get_object_address('schema', '{absent}', '{}');
select pg_get_object_address('schema', '{a,b}', '{}');
select pg_get_object_address('role', '{absent}', '{}');
select pg_get_object_address('database', '{absent}', '{}');
select pg_get_object_address('publication', '{absent}', '{}');
select pg_get_object_address('server', '{absent}', '{}');
select pg_get_object_address('user mapping', '{absent}', '{x}');
select pg_get_object_address('user mapping', '{public}', '{x}');
select pg_get_object_address('transform', '{int}', '{sql}');
select pg_get_object_address('publication relation', '{t}', '{absent}');
select lo_unlink(4711);
drop event trigger watch;
drop owned by address_user;
drop schema a_schema cascade;
drop role address_user;
