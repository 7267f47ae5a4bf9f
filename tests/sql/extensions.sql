-- CREATE EXTENSION: what there is, what it makes, what depends on it.
select extname, extversion, extrelocatable, extnamespace::regnamespace from pg_extension order by 1;
create schema ext;
create schema ext2;
\set VERBOSITY terse
create extension nosuch;
\set VERBOSITY default
create extension citext version '9.9';
create extension citext schema nowhere;
create extension "uuid-ossp" schema ext;
create extension if not exists "uuid-ossp";
create extension "uuid-ossp";
select name, installed_version is not null as installed, comment from pg_available_extensions
  where name in ('citext', 'uuid-ossp', 'plpgsql') order by 1;
select name, installed, superuser, trusted, relocatable, schema, requires from pg_available_extension_versions v
  where name in ('citext', 'uuid-ossp', 'plpgsql') and version = (select default_version from pg_available_extensions e where e.name = v.name)
  order by 1;
select obj_description(oid, 'pg_extension') from pg_extension where extname = 'uuid-ossp';
-- uuid-ossp.
select ext.uuid_nil(), ext.uuid_ns_dns(), ext.uuid_ns_url(), ext.uuid_ns_oid(), ext.uuid_ns_x500();
select ext.uuid_generate_v3(ext.uuid_ns_url(), 'http://www.postgresql.org'), ext.uuid_generate_v5(ext.uuid_ns_dns(), 'www.widgets.com');
select ext.uuid_generate_v5(null, 'a');
select substr(u::text, 15, 1), ext.uuid_generate_v4() = ext.uuid_generate_v4() from (values (ext.uuid_generate_v1()), (ext.uuid_generate_v4())) v(u);
select abs(extract(epoch from now()) - (('x' || substr(u, 16, 3) || substr(u, 10, 4) || substr(u, 1, 8))::bit(60)::bigint / 1e7 - 12219292800)) < 60
  from (select ext.uuid_generate_v1mc()::text) v(u);
create table u (id uuid primary key default ext.uuid_generate_v4(), n int);
insert into u (n) values (1), (2) returning n, id is not null;
alter extension "uuid-ossp" set schema ext2;
select extnamespace::regnamespace from pg_extension where extname = 'uuid-ossp';
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'u'::regclass;
insert into u (n) values (3) returning n;
drop function ext2.uuid_nil();
drop extension "uuid-ossp";
drop extension "uuid-ossp" cascade;
insert into u (n) values (4);
select count(*) from pg_depend where refclassid = 'pg_extension'::regclass and deptype = 'e' and refobjid not in (select oid from pg_extension);
-- citext.
create extension citext;
select 'Ab'::citext = 'aB', 'Ab'::citext = 'aB'::text, 'a'::citext < 'B', 'Ä'::citext = 'ä', 'a'::citext <> 'A';
create table c (name citext primary key, n int);
insert into c values ('Ann', 1), ('bob', 2), ('Çelik', 3);
insert into c values ('ANN', 4);
insert into c values ('BOB', 5) on conflict (name) do update set n = excluded.n returning name, n;
select * from c order by name;
select * from c where name = 'ann';
select * from c where name = 'ÇELIK'::text;
select name from c where name like 'a%' order by 1;
select name from c where name > 'ANN' order by name desc;
select name from c where name ~ '^B' or name !~~ '%n%' order by 1;
select min(name), max(name), count(distinct lower(name)) from c;
select v::citext, count(*) from (values ('x'), ('X'), ('y')) t(v) group by 1 order by 1;
select distinct v from (values ('x'::citext), ('X'), ('y')) t(v) order by 1;
select a.n, b.n from c a join c b on a.name = upper(b.name)::citext order by 1;
select regexp_replace('Foo bar'::citext, 'FOO', 'x'), regexp_match('fooBar'::citext, 'OB'::citext), replace('aXbx'::citext, 'x'::citext, '-'),
  split_part('aXbxc'::citext, 'X'::citext, 2), strpos('abc'::citext, 'C'::citext), translate('abc'::citext, 'B'::citext, 'x'),
  regexp_split_to_array('aXb'::citext, 'x'::citext);
select regexp_matches('fooFOO'::citext, 'foo'::citext, 'g');
select 'a'::citext::text, 'b'::text::citext, true::citext, '1.2.3.4'::inet::citext, 'c '::char(3)::citext, 'x'::citext || 'Y', pg_typeof('a'::citext || 'b'::citext);
select array['a', 'B']::citext[] @> array['b']::citext[], 'b' = any (array['A', 'B']::citext[]), citext_hash('A') = citext_hash('a');
select coalesce(null::citext, 'a'), length('abc'::citext), lower('ABC'::citext), 'A'::citext in ('a', 'b'), nullif('a'::citext, 'A');
create index c_lower on c (name desc);
create view cv as select name from c where name = 'x'::citext;
select * from cv;
comment on extension citext is 'ours';
select obj_description(oid, 'pg_extension') from pg_extension where extname = 'citext';
drop type citext;
drop function citext_eq(citext, citext);
drop extension citext;
alter extension nosuch update;
alter extension plpgsql set schema ext;
drop extension nosuch;
drop extension if exists nosuch;
-- A schema takes its extensions with it.
drop extension citext cascade;
select * from c order by n;
create schema inner_schema;
create extension citext schema inner_schema;
drop schema inner_schema;
drop schema inner_schema cascade;
select extname from pg_extension order by 1;
begin;
create extension citext;
create temp table t (a citext);
insert into t values ('A');
select count(*) from t where a = 'a';
rollback;
select count(*) from pg_type where typname = 'citext';
-- Privileges: these are trusted.
create role ext_user;
set role ext_user;
create extension citext;
reset role;
drop role ext_user;
drop schema ext, ext2 cascade;
