-- CREATE, ALTER and DROP OPERATOR CLASS and OPERATOR FAMILY.
create operator family numbers using btree;
create operator family numbers using btree;
create operator family numbers using hash;
create operator family numbers using heap;
create operator family numbers using no_such_method;
create operator family no_such_schema.numbers using btree;
comment on operator family numbers using btree is 'of numbers';
select opfname, amname, opfnamespace::regnamespace, obj_description(f.oid, 'pg_opfamily')
  from pg_opfamily f join pg_am a on a.oid = opfmethod where f.oid >= 16384 order by 1, 2;

-- Members of a family.
alter operator family numbers using btree add
  operator 1 < (int4, int4), operator 2 <= (int4, int4), operator 3 = (int4, int4), operator 4 >= (int4, int4), operator 5 > (int4, int4),
  function 1 btint4cmp(int4, int4);
alter operator family numbers using btree add operator 1 < (int4, int8), function 1 btint48cmp(int4, int8);
alter operator family numbers using btree add operator 1 < (int4, int8);
alter operator family numbers using btree add function 1 btint48cmp(int4, int8);
alter operator family numbers using btree add operator 6 < (int4, int2);
alter operator family numbers using btree add operator 0 < (int4, int2);
alter operator family numbers using btree add operator 1 <;
alter operator family numbers using btree add operator 1 < (int4, int2), operator 1 < (int4, int2);
alter operator family numbers using btree add function 1 btint42cmp(int4, int2), function 1 btint42cmp(int4, int2);
alter operator family numbers using btree add operator 1 + (int4, int2);
alter operator family numbers using btree add operator 1 - (none, int4);
alter operator family numbers using btree add operator 1 <-> (point, point) for order by float_ops;
alter operator family numbers using btree add operator 1 #<# (int4, int2);
alter operator family numbers using btree add function 1 no_such_function(int4);
alter operator family numbers using btree add function 1 () btint42cmp(int4, int2);
alter operator family numbers using btree add storage int4;
alter operator family numbers using hash add function 1 btint4cmp(int4, int4);
alter operator family numbers using hash add function 1 hashint8extended(int8, int8);
alter operator family numbers using hash add function 2 hashint4(int4);
alter operator family numbers using hash add operator 2 = (int4, int4);
alter operator family numbers using gist add operator 1 = (int4, int4);
alter operator family no_such_family using btree add operator 1 = (int4, int4);
alter operator family numbers using btree drop operator 7 (int4, int4);
alter operator family numbers using btree drop operator 1 (int4, int4, int4);
alter operator family numbers using btree drop operator 1 (int4, int4), operator 1 (int4, int4);
alter operator family numbers using btree drop operator 1 (int4, float8);
alter operator family numbers using btree drop function 1 (int4, int8), operator 1 (int4, int8);
select amoplefttype::regtype, amoprighttype::regtype, amopstrategy, amoppurpose, amopopr::regoperator, amname, amopsortfamily
  from pg_amop o join pg_opfamily f on f.oid = amopfamily join pg_am a on a.oid = amopmethod where opfname = 'numbers' order by 1, 2, 3;
select amproclefttype::regtype, amprocrighttype::regtype, amprocnum, amproc
  from pg_amproc o join pg_opfamily f on f.oid = amprocfamily where opfname = 'numbers' order by 1, 2, 3;

-- Classes.
create operator class int4_numbers for type int4 using btree family numbers as storage int4;
create operator class int4_numbers for type int4 using btree family numbers as storage int4;
create operator class int4_more for type int4 using btree family numbers as storage int8;
create operator class int4_more for type int4 using btree family no_such_family as storage int4;
create operator class int4_more for type int4 using btree as storage int4, storage int8;
create operator class int4_more default for type int4 using btree as operator 1 <;
create operator class int4_more for type int4 using btree as operator 1 #<#;
create operator class int4_more for type no_such_type using btree as operator 1 <;
create operator class int4_more for type int4 using no_such_method as operator 1 <;
create operator class no_such_schema.int4_more for type int4 using btree as operator 1 <;
create operator class int4_own for type int4 using btree as
  operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 btint4cmp(int4, int4);
create operator class int4_own_hash for type int4 using hash as operator 1 =, function 1 hashint4(int4), function 2 hashint4extended(int4, int8);
comment on operator class int4_own using btree is 'one''s own';
select opcname, amname, opcnamespace::regnamespace, opfname, opcintype::regtype, opcdefault, opckeytype, obj_description(c.oid, 'pg_opclass')
  from pg_opclass c join pg_am a on a.oid = opcmethod join pg_opfamily f on f.oid = opcfamily where c.oid >= 16384 order by 1, 2;
select pg_describe_object(classid, objid, 0), pg_describe_object(refclassid, refobjid, 0), deptype from pg_depend
  where classid in ('pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_amop'::regclass, 'pg_amproc'::regclass) and objid >= 16384 order by 1, 2;
select type, schema, name, identity from pg_opclass c, pg_identify_object('pg_opclass'::regclass, c.oid, 0) where c.oid >= 16384 order by name;
select object_names, object_args from pg_amop o join pg_opfamily f on f.oid = amopfamily, pg_identify_object_as_address('pg_amop'::regclass, o.oid, 0)
  where opfname = 'int4_own' order by 1;
select objid = (select oid from pg_opclass where opcname = 'int4_own') from pg_get_object_address('operator class', '{btree,int4_own}', '{}');
select pg_opclass_is_visible(c.oid), pg_opfamily_is_visible(opcfamily) from pg_opclass c where opcname = 'int4_own';

-- Indexes of them.
create table counts (n int4, t text);
insert into counts select i * 7 % 50, 't' || i from generate_series(1, 50) i;
create unique index counts_own on counts (n int4_own);
create index counts_hash on counts using hash (n int4_own_hash);
create index counts_wrong on counts (t int4_own);
create index counts_wrong on counts (n no_such_ops);
create index counts_wrong on counts using hash (n int4_own);
insert into counts values (7, 'again');
select * from counts where n = 7;
select n from counts where n between 10 and 13 order by n;
select pg_get_indexdef('counts_own'::regclass), pg_get_indexdef('counts_hash'::regclass);
create table counts_parted (n int4) partition by range (n int4_own);
create table counts_parted_low partition of counts_parted for values from (minvalue) to (10);
create table counts_parted_high partition of counts_parted for values from (10) to (maxvalue);
insert into counts_parted select n from counts;
select tableoid::regclass, count(*), min(n), max(n) from counts_parted group by 1 order by 1;
select pg_get_partkeydef('counts_parted'::regclass);

-- A class of the order of a type of one's own.
create type level as enum ('low', 'middle', 'high');
create function level_eq(level, level) returns bool language internal immutable strict as 'enum_eq';
create function level_lt(level, level) returns bool language internal immutable strict as 'enum_lt';
create function level_le(level, level) returns bool language internal immutable strict as 'enum_le';
create function level_gt(level, level) returns bool language internal immutable strict as 'enum_gt';
create function level_ge(level, level) returns bool language internal immutable strict as 'enum_ge';
create function level_cmp(level, level) returns int4 language internal immutable strict as 'enum_cmp';
create operator = (leftarg = level, rightarg = level, function = level_eq, commutator = =, merges, hashes, restrict = eqsel, join = eqjoinsel);
create operator < (leftarg = level, rightarg = level, function = level_lt, commutator = >, negator = >=, restrict = scalarltsel);
create operator > (leftarg = level, rightarg = level, function = level_gt, commutator = <, negator = <=);
create operator <= (leftarg = level, rightarg = level, function = level_le, commutator = >=, negator = >);
create operator >= (leftarg = level, rightarg = level, function = level_ge, commutator = <=, negator = <);
create operator class level_ops default for type level using btree as
  operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 level_cmp(level, level);
create operator class level_more default for type level using btree as operator 1 <;
create table levels (l level unique, n int);
insert into levels values ('high', 1), ('low', 2), ('middle', 3);
insert into levels values ('low', 4);
select * from levels order by l;
select * from levels order by l using >;
select max(l), count(distinct l) from levels;
select n from levels where l > 'low' order by l desc;
select a.n, b.n from levels a join levels b on a.l = b.l order by a.l;
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'levels'::regclass;

-- Names, schemas and owners.
create schema other;
alter operator class int4_own using btree rename to int4_mine;
alter operator class int4_numbers using btree rename to int4_mine;
alter operator class int4_own using btree rename to x;
alter operator family numbers using btree rename to figures;
alter operator family figures using btree set schema other;
alter operator class int4_mine using btree set schema other;
alter operator class int4_mine using btree set schema other;
select pg_get_indexdef('counts_own'::regclass), pg_get_partkeydef('counts_parted'::regclass);
alter operator family other.figures using btree rename to int4_own;
create operator family other.figures using btree;
alter operator family int4_own using btree set schema other;
create role class_owner;
alter operator class other.int4_mine using btree owner to class_owner;
grant all on schema other, play to class_owner;
alter operator class other.int4_mine using btree owner to class_owner;
alter operator family other.figures using btree owner to class_owner;
select opcname, opcowner::regrole from pg_opclass where opcowner = 'class_owner'::regrole union all
  select opfname, opfowner::regrole from pg_opfamily where opfowner = 'class_owner'::regrole order by 1;
set role class_owner;
create operator family other.mine using btree;
create operator class other.mine for type int4 using btree as operator 1 <;
alter operator family other.figures using btree add operator 1 < (int4, int4);
alter operator class int4_own_hash using hash rename to x;
alter operator class other.int4_mine using btree rename to int4_owned;
drop operator family int4_own using btree;
reset role;
reassign owned by class_owner to current_user;
select count(*) from pg_opclass where opcowner = 'class_owner'::regrole;
drop owned by class_owner;
drop role class_owner;

-- DROP.
drop operator class int4_ops using btree;
drop operator family integer_ops using btree;
drop operator class no_such_ops using btree;
drop operator class if exists no_such_ops using btree;
drop operator class if exists no_such_schema.no_such_ops using btree;
drop operator family if exists no_such_ops using btree;
drop operator class int4_own_hash using btree;
drop operator class int4_own_hash using no_such_method;
drop function level_cmp(level, level);
drop operator < (level, level);
drop table levels;
drop operator < (level, level) cascade;
select count(*) from pg_opclass where opcname = 'level_ops';
select count(*) from pg_amop o join pg_opfamily f on f.oid = amopfamily where opfname = 'level_ops';
drop operator family level_ops using btree;
drop table counts_parted;
drop operator class other.int4_owned using btree cascade;
drop operator class int4_own_hash using hash cascade;
drop operator family other.figures using btree cascade;
drop operator family int4_own_hash using hash;
drop operator family numbers using hash;
drop schema other cascade;
select opcname from pg_opclass where oid >= 16384 order by 1;
select opfname from pg_opfamily where oid >= 16384 order by 1;
drop type level cascade;
