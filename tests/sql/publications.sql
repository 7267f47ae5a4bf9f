-- Publications: statements about them, and their rows in the catalogs. Nobody subscribes here.
set client_min_messages = error;
create schema pubs;
set search_path = pubs;
create table t (a int primary key, b text);
create table u (a int);
create table parts (a int, b text) partition by list (a);
create table part1 partition of parts for values in (1);
create table part2 partition of parts for values in (2);
create view v as select 1 as one;
create materialized view mv as select 1 as one;
create sequence s;
create index i on t (b);
create unlogged table unlogged (a int);
create temporary table temporary (a int);

create publication p for table t, only u;
create publication p for table t;
create publication empty;
create publication of_parts for table parts with (publish = 'insert, update', publish_via_partition_root);
create publication of_schema for tables in schema pubs;
create publication all_of_them for all tables;
select pubname, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot from pg_publication order by 1;
select p.pubname, r.prrelid::regclass, r.prqual is null, r.prattrs from pg_publication_rel r join pg_publication p on p.oid = r.prpubid order by 1, 2;
select p.pubname, s.pnnspid::regnamespace from pg_publication_namespace s join pg_publication p on p.oid = s.pnpubid order by 1;
select pubname, schemaname, tablename, attnames from pg_publication_tables where pubname in ('p', 'of_schema', 'empty') order by 1, 3;
select relid::regclass from pg_get_publication_tables('p') order by 1;
select * from pg_get_publication_tables('absent');

-- Tables that inherit are members, too, unless ONLY.
create table parent (a int);
create table child () inherits (parent);
create table grandchild () inherits (child);
create publication of_parent for table parent;
create publication of_only for table only parent, only child;
select p.pubname, r.prrelid::regclass from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where pubname in ('of_parent', 'of_only') order by 1, 2;
select pubname, tablename from pg_publication_tables where pubname in ('of_parent', 'of_only') order by 1, 2;
alter publication of_parent drop table parent;
select count(*) from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where pubname = 'of_parent';
alter publication of_only add table child;
drop publication of_parent, of_only;

-- What cannot be published.
create publication bad for table v;
create publication bad for table mv;
create publication bad for table s;
create publication bad for table unlogged;
create publication bad for table temporary;
create publication bad for table pg_class;
create publication bad for table absent;
create publication bad for tables in schema absent;
create publication bad for tables in schema pg_catalog;
create publication bad with (nonsense = 1);
create publication bad with (publish = 'insert', publish = 'update');
create publication bad with (publish_via_partition_root = maybe);

alter publication p add table parts;
alter publication p add table t;
alter publication p drop table u;
alter publication p drop table u;
alter publication p add tables in schema pubs;
alter publication p add tables in schema pubs;
alter publication p drop tables in schema pubs;
alter publication p drop tables in schema pubs;
alter publication p set table u, part1;
select p.pubname, r.prrelid::regclass from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where pubname = 'p' order by 2;
alter publication p set (publish = 'delete');
select pubinsert, pubupdate, pubdelete, pubtruncate from pg_publication where pubname = 'p';
alter publication all_of_them add table t;
alter publication all_of_them add tables in schema pubs;
alter publication absent add table t;
alter publication p rename to q;
alter publication q rename to empty;
alter publication absent rename to p;
comment on publication q is 'said';
select obj_description(oid, 'pg_publication') from pg_publication where pubname = 'q';

-- Objects that are members, and their names.
select pg_describe_object(classid, objid, 0), refclassid::regclass, deptype from pg_depend
where classid in ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass) order by 1, 2;
select (pg_identify_object('pg_publication_rel'::regclass, r.oid, 0)).identity from pg_publication_rel r order by 1;
select (pg_identify_object_as_address('pg_publication'::regclass, oid, 0)).* from pg_publication where pubname = 'q';
select pg_describe_object((a).classid, (a).objid, 0) from (select pg_get_object_address('publication relation', '{pubs, u}', '{q}') a) x;
select pg_get_object_address('publication relation', '{pubs, t}', '{q}');
select pg_get_object_address('publication namespace', '{pubs}', '{q}');
drop table u;
select p.pubname, r.prrelid::regclass from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where pubname = 'q' order by 2;

-- Rights.
create role pub_owner;
create role pub_other;
grant all on schema pubs to pub_owner, pub_other;
set role pub_owner;
create publication mine for table t;
reset role;
do $$ begin execute format('grant create on database %I to pub_owner, pub_other', current_database()); end $$;
set role pub_owner;
create publication mine for table t;
create publication mine for all tables;
create publication mine for tables in schema pubs;
create table own (a int);
create publication mine for table own;
alter publication mine add tables in schema pubs;
alter publication q add table own;
set role pub_other;
alter publication mine drop table own;
drop publication mine;
reset role;
alter publication mine owner to pub_other;
alter publication all_of_them owner to pub_other;
select pubname, pubowner::regrole from pg_publication where pubname = 'mine';
select refobjid::regrole, deptype from pg_shdepend where classid = 'pg_publication'::regclass and refobjid = 'pub_other'::regrole;
drop role pub_other;
reassign owned by pub_other to pub_owner;
select pubname, pubowner::regrole from pg_publication where pubname = 'mine';

drop publication mine, q, empty;
drop publication q;
drop publication if exists q;
drop schema pubs cascade;
select pubname from pg_publication order by 1;
select count(*) from pg_publication_rel;
select count(*) from pg_publication_namespace;
drop publication of_parts, of_schema, all_of_them;
do $$ begin execute format('revoke create on database %I from pub_owner, pub_other', current_database()); end $$;
drop owned by pub_owner, pub_other;
drop role pub_owner, pub_other;
