-- pg_stats and pg_statistic: what ANALYZE finds in tables that it reads as a whole. Melba shows it without ANALYZE, too.
create table k (id int primary key, v varchar(10), n numeric, d date, b boolean, c "char", nm name, bp bpchar(4), f float8, ts timestamp, j jsonb,
  js json, u uuid, e text[], i interval, g int generated always as (id % 7) stored);
insert into k (id, v, n, d, b, c, nm, bp, f, ts, j, js, u, e, i)
select i, case when i % 10 = 0 then null else 'v' || i % 5 end, (i % 50)::numeric, date '2020-01-01' + i % 400, i % 3 = 0, chr(97 + i % 4)::"char",
  'n' || i % 2, 'x' || i % 3, sqrt(i), timestamp '2020-01-01' + i * interval '1 hour', jsonb_build_object('a', i % 2), '{}',
  ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, array['t' || i % 3, 'u' || i % 2], i % 6 * interval '1 day'
from generate_series(1, 600) i;
analyze k;
select attname, inherited, null_frac, n_distinct, correlation from pg_stats where tablename = 'k' order by attname;
select attname, avg_width from pg_stats where tablename = 'k' and attname not in ('j', 'js') order by attname;
select attname, most_common_vals, most_common_freqs from pg_stats where tablename = 'k' order by attname;
select attname, histogram_bounds from pg_stats where tablename = 'k' order by attname;
select attname, most_common_elems, most_common_elem_freqs, elem_count_histogram from pg_stats where tablename = 'k' and attname = 'e';
select a.attname, stakind1, stakind2, stakind3, stakind4, stakind5, staop1::regoperator, staop2::regoperator, staop3::regoperator, staop4::regoperator,
  staop5::regoperator, stacoll1, stacoll2, stacoll3
from pg_statistic s join pg_attribute a on a.attrelid = s.starelid and a.attnum = s.staattnum where starelid = 'k'::regclass order by 1;
select staattnum, stanumbers1, stavalues1, stanumbers2, stavalues2 from pg_statistic where starelid = 'k'::regclass and staattnum in (2, 5) order by 1;
select count(*), count(distinct starelid) from pg_statistic where starelid in ('k'::regclass, 'pg_class'::regclass) and staattnum = 1 and stainherit = false
  and starelid > 16383;
select pg_typeof(most_common_vals), array_length(histogram_bounds, 1), most_common_vals::text::text[] from pg_stats where tablename = 'k' and attname = 'nm';

-- Values and rows that tell little.
create table few (a int, b text, c int, e int[]);
analyze few;
select count(*) from pg_stats where tablename = 'few';
insert into few values (1, null, 1, '{}');
analyze few;
select attname, null_frac, avg_width, n_distinct, most_common_vals, histogram_bounds, correlation from pg_stats where tablename = 'few' order by attname;
insert into few values (2, null, 1, '{1,2,2,null}');
analyze few;
select attname, null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, histogram_bounds, correlation, most_common_elems,
  most_common_elem_freqs from pg_stats where tablename = 'few' order by attname;
delete from few;
insert into few select 1, repeat('x', 1100), i, null from generate_series(1, 3) i;
analyze few;
select attname, null_frac, n_distinct, most_common_vals, most_common_freqs, histogram_bounds from pg_stats where tablename = 'few' and attname <> 'b'
  order by attname;

-- Changes are seen: updated and deleted rows, columns that come and go.
create table changed (a int, b int, c text);
insert into changed select i, i % 4, 'c' from generate_series(1, 100) i;
update changed set b = 9 where b = 3;
delete from changed where a > 80;
analyze changed;
select attname, n_distinct, most_common_vals, most_common_freqs from pg_stats where tablename = 'changed' order by attname;
alter table changed drop column b;
alter table changed alter column a set (n_distinct = -0.25), alter column c set statistics 0;
analyze changed;
select attname, n_distinct from pg_stats where tablename = 'changed' and attname = 'a';
alter table changed alter column a reset (n_distinct), alter column a set statistics 4;
analyze changed;
select attname, n_distinct, histogram_bounds from pg_stats where tablename = 'changed' and attname = 'a';
truncate changed;

-- A domain, an enum, a composite type and a range have statistics, too.
create domain small as int check (value < 100);
create type mood as enum ('sad', 'ok', 'happy');
create type pair as (a int, b text);
create table types (s small, m mood, p pair, r int4range, m2 int4multirange, bits varbit, cidr cidr, x xid, oids oid, t time);
insert into types select i % 5, (enum_range(null::mood))[1 + i % 3], row(i % 2, 'b')::pair, int4range(i, i + 3), '{}', i::bit(8)::varbit, '10.0.0.0/8', '1',
  1 + i % 2, time '00:00' + i * interval '1 minute' from generate_series(1, 60) i;
analyze types;
select attname, null_frac, n_distinct, most_common_vals, most_common_freqs from pg_stats where tablename = 'types' and attname <> 'x' order by attname;

-- Who may read it.
create role stat_reader;
grant select (a) on few to stat_reader;
grant select on types to stat_reader;
alter table types enable row level security;
set role stat_reader;
select tablename, attname from pg_stats where tablename in ('k', 'few', 'types', 'changed') order by 1, 2;
select * from pg_statistic;
reset role;
alter table types disable row level security;
set role stat_reader;
select tablename, count(*) from pg_stats where tablename in ('k', 'few', 'types', 'changed') and attname <> 'x' group by 1 order by 1;
reset role;
drop table k, few, changed, types;
drop type pair, mood;
drop domain small;
drop role stat_reader;
