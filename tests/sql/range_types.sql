-- CREATE TYPE ... AS RANGE.
create type floatrange as range (subtype = float8, subtype_diff = float8mi);
create type textrange as range (subtype = text, collation = "C", subtype_opclass = text_pattern_ops, multirange_type_name = texts);
create type period as range (subtype = interval);
create type day as enum ('mo', 'tu', 'we', 'th', 'fr');
create type dayrange as range (subtype = day);
create domain positive as int check (value > 0);
create type positiverange as range (subtype = positive);
create type of_ranges as range (subtype = int4range);

select rngtypid::regtype, rngsubtype::regtype, rngmultitypid::regtype, rngcollation::regcollation, opcname, rngcanonical, rngsubdiff
from pg_range r join pg_opclass o on o.oid = rngsubopc where rngtypid >= 16384 order by rngtypid::regtype::text;
select typname, typtype, typcategory, typlen, typalign, typstorage, typarray::regtype, typinput, typoutput, typreceive, typsend
from pg_type where typname ~ 'float.*range|texts|textrange|period' and typnamespace = 'play'::regnamespace order by 1;
select oid::regprocedure, prorettype::regtype, provariadic::regtype, proisstrict, provolatile, proparallel, prolang, proowner::regrole
from pg_proc where pronamespace = 'play'::regnamespace order by oid::regprocedure::text;
select castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext, castmethod from pg_cast where oid >= 16384 order by castsource::regtype::text;
select objid::regprocedure, refobjid::regtype, deptype from pg_depend where classid = 'pg_proc'::regclass and refclassid = 'pg_type'::regclass
and refobjid in ('floatrange'::regtype, 'floatmultirange'::regtype) order by objid::regprocedure::text, refobjid::regtype::text, 3;
select objid::regtype, refobjid::regtype, deptype from pg_depend where classid = 'pg_type'::regclass and refclassid = 'pg_type'::regclass
and refobjid in ('floatrange'::regtype, 'floatmultirange'::regtype) order by objid::regtype::text;
select refobjid::regtype, deptype from pg_depend where classid = 'pg_cast'::regclass and refobjid in ('floatrange'::regtype, 'floatmultirange'::regtype) order by refobjid::regtype::text;

-- values
select floatrange(1, 2.5), floatrange(1, 2.5, '[]'), floatrange(null, 3), floatrange(1, 1), floatrange(2, 1);
select floatrange(1, 2, '[x');
select '[1,2.5)'::floatrange, '(,)'::floatrange, 'empty'::floatrange, '[a,b]'::floatrange;
select textrange('a', 'c') @> 'b'::text, '[a,"c d"]'::textrange, textrange('b', 'a');
select dayrange('mo', 'we', '[]') && dayrange('we', 'fr'), dayrange('mo', 'we') @> 'we'::day, upper(dayrange('mo', 'we')), lower_inc(dayrange('mo', 'we'));
select period('1 day', '1 month') @> '40 days'::interval, period('1 day', '1 month') @> interval '30 days';
select positiverange(1, 5), positiverange(0, 5);
select '[0,5)'::positiverange;
select of_ranges(int4range(1, 2), int4range(3, 4)), '["[1,2)","[3,4]"]'::of_ranges;
select floatrange(1, 5) * floatrange(3, 7), floatrange(1, 5) + floatrange(3, 7), floatrange(1, 5) - floatrange(3, 7), floatrange(1, 3) -|- floatrange(3, 7), floatrange(1, 3) << floatrange(3, 7);
select floatrange(1, 3) + floatrange(5, 7);
select floatrange(1, 3) = numrange(1, 3);
select floatrange(1, 3) @> 2;
select isempty(floatrange(1, 1)), range_merge(floatrange(1, 2), floatrange(5, 6)), lower(floatrange(1, 2)), upper_inf(floatrange(1, null));
select floatmultirange(), floatmultirange(floatrange(1, 2)), floatmultirange(floatrange(1, 2), floatrange(5, 6), floatrange(2, 3)), floatrange(1, 2)::floatmultirange;
select texts(textrange('a', 'b'), textrange('x', 'y')) @> 'xx'::text, '{[a,b),[b,c)}'::texts, multirange(textrange('a', 'b'));
select range_agg(r), range_intersect_agg(r) from (values (floatrange(1, 5)), (floatrange(2, 6))) v(r);
select unnest('{[1,2),[3,4)}'::floatmultirange);
select range_merge('{[1,2),[3,4)}'::floatmultirange), pg_typeof(range_merge('{[1,2),[3,4)}'::floatmultirange));
select array[floatrange(1, 2), floatrange(3, 4)], '{"[1,2)"}'::floatrange[], array['{[1,2)}'::floatmultirange];

-- tables
create table t (r floatrange primary key, d dayrange default dayrange('mo', 'tu'), m floatmultirange);
insert into t select floatrange(i, i + 1.5), dayrange('mo', 'we'), floatmultirange(floatrange(i, i + 1)) from generate_series(1, 5) i;
insert into t values ('[1,2.5)');
insert into t (r) values ('empty'), (null);
select * from t where r @> 2.2::float8 order by r;
select * from t order by r desc limit 2;
select d, count(*) from t group by d order by d;
select t.r, u.r from t join t u using (r) where t.r > '[4,5)' order by 1;
create index on t (d);
create view v as select floatrange(1, 5) * '[2,3)'::floatrange as r, '{[1,2)}'::floatmultirange as m, '[mo,we)'::dayrange as d;
select pg_get_viewdef('v');
create function f(floatrange) returns float8 language sql as 'select upper($1)';
select f('[1,2)'), f(r) from t order by 2 limit 1;
create type other as range (subtype = float8);
create function g(anyrange, anyelement) returns anymultirange language sql as 'select multirange($1)';
select g(other(1, 2), 1.5::float8), pg_typeof(g(floatrange(1, 2), 1.5::float8));
select g(other(1, 2), 1);

-- changes
alter type floatrange rename to fr;
select pg_get_viewdef('v');
select fr(1, 2);
select floatrange(1, 2), pg_typeof(floatrange(1, 2));
alter type floatmultirange rename to fm;
select floatmultirange(), pg_typeof(floatmultirange());
create schema play2;
alter type fr set schema play2;
select pg_get_viewdef('v');
select nspname, typname from pg_type t join pg_namespace n on n.oid = typnamespace where typname in ('fr', '_fr', 'fm', '_fm') order by 1, 2;
alter type fm set schema play2;
create role range_owner;
alter type fm owner to range_owner;
alter type play2.fr owner to range_owner;
select typname, typowner::regrole from pg_type where typname in ('fr', '_fr') order by 1;
revoke usage on type play2.fr from public;
set role range_owner;
reassign owned by range_owner to range_owner;
reset role;
reassign owned by range_owner to current_user;
drop owned by range_owner;
drop role range_owner;

-- drops
drop type play2.fm;
drop function floatrange(float8, float8);
drop type day;
drop type dayrange;
drop type positive;
drop domain positive cascade;
drop type play2.fr;
drop type play2.fr cascade;
select r from t;
select count(*) from pg_proc where proname ~ 'float.*range' and pronamespace = 'play'::regnamespace;
drop type day cascade;
drop function float8mi(float8, float8);
create function apart(text, text) returns float8 language sql immutable as 'select 1.0::float8';
create type apart_range as range (subtype = text, subtype_diff = apart);
select rngsubdiff from pg_range where rngtypid = 'apart_range'::regtype;
drop function apart;
drop function apart cascade;
drop schema play2;

-- mistakes
create type textrange as range (subtype = int);
create type x as range (subtype = int, multirange_type_name = texts);
create type texts as range (subtype = int);
create type xrange as range (subtype = int);
create type xmultirange as enum ();
drop type xrange;
create type xmultirange as enum ();
create type xrange as range (subtype = int);
create type y as range (subtype_opclass = int4_ops);
create type y as range (subtype = int, nonsense = 1);
create type y as range (subtype = int, subtype = text);
create type y as range (subtype = anyelement);
create type y as range (subtype = json);
create type y as range (subtype = int, subtype_opclass = text_ops);
create type y as range (subtype = int, subtype_opclass = none_such);
create type y as range (subtype = int, collation = "C");
create type y as range (subtype = text, collation = "none");
create type y as range (subtype = int, subtype_diff = none_such);
create type y as range (subtype = int, subtype_diff = int4pl);
create type y as range (subtype = text, subtype_diff = g);
create type y as range (subtype = int, canonical = int4range_canonical);
create type none_such.y as range (subtype = int);
create type y as range (subtype = none_such);
drop table t cascade;
drop function g, f;
