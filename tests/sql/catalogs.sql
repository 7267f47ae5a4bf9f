-- Scans of system relations: found by one value, by a list, by the keys that a join has built; with conditions on columns that are
-- not asked for. Each beside the same question to a copy of the rows, in which nothing is looked up.
create schema catalogs;
set search_path = catalogs;
create table parent (id int primary key, a int, b text default 'x', unique (a, b));
create table child (id int primary key default 7, p int references parent, a int, b text, foreign key (a, b) references parent (a, b));
create table other (x int, y int, z int default 1 + 1);
create index other_y on other (y, x);
create view shown as select id, b from parent;
comment on column parent.b is 'a text';
create table relations as select oid, relname, relkind, relnamespace from pg_class where relnamespace = 'catalogs'::regnamespace;
create table columns as select attrelid, attname, attnum from pg_attribute where attrelid in (select oid from relations);

-- a list of OIDs
select relname, relkind from pg_class where oid in ('parent'::regclass, 'child'::regclass, 'parent'::regclass, 0, null) order by 1;
select relname, relkind from relations where oid in ('parent'::regclass, 'child'::regclass, 'parent'::regclass, 0, null) order by 1;
select count(*) from pg_class where oid = any ('{}'::oid[]);
select count(*) from pg_class where oid = any (null::oid[]);
select relname from pg_class where oid = any (array(select indexrelid from pg_index where indrelid = 'parent'::regclass)) order by 1;
select attname from pg_attribute where attrelid in ('parent'::regclass, 'other'::regclass) and attnum > 0 and attname <> 'b' order by attrelid::regclass::text, attnum;
select attname from columns where attrelid in ('parent'::regclass, 'other'::regclass) and attnum > 0 and attname <> 'b' order by attrelid::regclass::text, attnum;
select count(*) from pg_class where oid not in ('parent'::regclass) and relnamespace = 'catalogs'::regnamespace and relname in ('parent', 'child', 'nothing');

-- lists of names, and two lists
select relname from pg_class where relname = any ('{parent,other,parent,none}'::text[]) and relnamespace = 'catalogs'::regnamespace order by 1;
select relname from pg_class where relname in ('parent', 'other') and oid in ('other'::regclass, 'child'::regclass);
select relname from relations where relname in ('parent', 'other') and oid in ('other'::regclass, 'child'::regclass);

-- a list from another relation
select c.relname, a.attname from pg_class c, pg_attribute a where c.relnamespace = 'catalogs'::regnamespace and c.relkind = 'v' and a.attrelid = any (array[c.oid]) order by 1, 2;

-- keys of joins
select c.relname, a.attname, a.attnum from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relname like 'other%' and c.relnamespace = 'catalogs'::regnamespace and a.attnum > 0 order by 1, 3;
select c.relname, a.attname, a.attnum from relations c join columns a on a.attrelid = c.oid
  where c.relname like 'other%' and c.relnamespace = 'catalogs'::regnamespace and a.attnum > 0 order by 1, 3;
select c.relname, t.typname from pg_class c left join pg_type t on t.oid = c.reltype where c.relnamespace = 'catalogs'::regnamespace and c.relkind in ('r', 'i') order by 1;
select c.relname from pg_class c where c.relnamespace = 'catalogs'::regnamespace and exists (select 1 from pg_index i where i.indrelid = c.oid and not i.indisprimary) order by 1;
select c.relname from pg_class c where c.relnamespace = 'catalogs'::regnamespace and c.relkind = 'r' and not exists (select 1 from pg_constraint k where k.conrelid = c.oid) order by 1;
select c.relname, d.description from pg_class c full join pg_description d on d.objoid = c.oid where c.relname = 'parent' or d.description = 'a text' order by 1;

-- keys that are elements of arrays
select k.conname, p.n, a.attname, f.attname
  from pg_constraint k, generate_series(1, 32) p(n), pg_attribute a, pg_attribute f
  where k.contype = 'f' and k.conrelid = 'child'::regclass and a.attrelid = k.conrelid and a.attnum = k.conkey[p.n]
    and f.attrelid = k.confrelid and f.attnum = k.confkey[p.n] order by 1, 2;
select nr.nspname, r.relname, nk.nspname, k.conname, fn.nspname, fr.relname, a.attname, f.attname, p.n, i.relname
  from pg_namespace nr, pg_class r, pg_namespace nk, pg_constraint k, pg_namespace fn, pg_class fr, pg_attribute a, pg_attribute f,
    generate_series(1, 32) p(n), pg_class i
  where nr.oid = r.relnamespace and r.oid = k.conrelid and nk.oid = k.connamespace and fr.oid = k.confrelid and fn.oid = fr.relnamespace
    and a.attrelid = r.oid and a.attnum = k.conkey[p.n] and f.attrelid = fr.oid and f.attnum = k.confkey[p.n] and i.oid = k.conindid
    and k.contype = 'f' and nr.nspname = 'catalogs' order by 4, 9;

-- functions that give rows, in the target list
select q.relname, q.attname, (q.keys).n from (
    select c.relname, a.attname, a.attnum, information_schema._pg_expandarray(i.indkey) as keys
    from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_index i on i.indrelid = c.oid
    where c.relnamespace = 'catalogs'::regnamespace and not i.indisprimary) q
  where q.attnum = (q.keys).x order by 1, 3;
select id, generate_series(1, id), unnest(array['a', null, 'c']), repeat('x', id) from (values (2), (0), (4), (null)) v(id);
select generate_series(1, 3) + g, g from generate_series(1, 2500) g order by 2 desc, 1 limit 4;
select count(*), sum(length(t)) from (select repeat('y', 20000) as t, generate_series(1, 300) from generate_series(1, 5)) q;
select 10 / (2 - g), generate_series(1, 2) from generate_series(0, 3) g;

-- expressions that many tables have alike, shown by the search path
select adrelid::regclass, adnum, pg_get_expr(adbin, adrelid) from pg_attrdef d join pg_class c on c.oid = d.adrelid where c.relnamespace = 'catalogs'::regnamespace order by 1, 2;
create function five() returns int language sql immutable return 5;
alter table other alter z set default five();
alter table child alter id set default five();
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid in ('other'::regclass, 'child'::regclass) order by 1;
set search_path = public;
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid in ('catalogs.other'::regclass, 'catalogs.child'::regclass) order by 1;
alter function catalogs.five() rename to four;
select pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) from pg_attrdef where adrelid in ('catalogs.other'::regclass, 'catalogs.child'::regclass) order by 1;
set client_min_messages = error;
drop schema catalogs cascade;

-- What a type modifier says, by the helpers of information_schema.
create domain short as varchar(7);
create table modified (a varchar(10), b short, c numeric(10, 2), d timestamp(3), e interval day to second(2), f bit varying(9), g text, h int, i interval year, primary key (h, a));
select attname, information_schema._pg_truetypid(a, t)::regtype, information_schema._pg_truetypmod(a, t), information_schema._pg_char_max_length(atttypid, atttypmod),
    information_schema._pg_char_octet_length(atttypid, atttypmod), information_schema._pg_numeric_precision(atttypid, atttypmod),
    information_schema._pg_numeric_precision_radix(atttypid, atttypmod), information_schema._pg_numeric_scale(atttypid, atttypmod),
    information_schema._pg_datetime_precision(atttypid, atttypmod), information_schema._pg_interval_type(atttypid, atttypmod),
    information_schema._pg_index_position('modified_pkey'::regclass, attnum)
  from pg_attribute a join pg_type t on t.oid = atttypid where attrelid = 'modified'::regclass and attnum > 0 order by attnum;
select information_schema._pg_char_max_length(1043, null), information_schema._pg_numeric_scale(23, -1), information_schema._pg_interval_type(1186, -1);
drop table modified;
drop domain short;
-- Superusers may change comments by the rows of their catalog.
create table described (a int);
comment on table described is 'a table';
comment on column described.a is 'a column';
update pg_description set description = description || '!' where objoid = 'described'::regclass returning objsubid, description;
insert into pg_description values ('described'::regclass, 'pg_proc'::regclass, 0, 'no function');
\set VERBOSITY terse
insert into pg_description values ('described'::regclass, 'pg_class'::regclass, 2, null);
insert into pg_description values ('described'::regclass, 'pg_class'::regclass, 1, 'again');
\set VERBOSITY default
select classoid::regclass, objsubid, description from pg_description where objoid = 'described'::regclass order by 1, 2;
delete from pg_description where objoid = 'described'::regclass and objsubid = 1;
begin;
delete from pg_description where objoid = 'described'::regclass;
rollback;
select col_description('described'::regclass, 1), obj_description('described'::regclass, 'pg_class'), obj_description('described'::regclass, 'pg_proc');
delete from pg_description where objoid = 'described'::regclass and classoid = 'pg_proc'::regclass;
drop table described;
