-- Orders of ICU: in expressions, columns, keys of indexes, groups, partitions; texts that are different and equal.
create schema icu_collations;
set search_path = icu_collations;
create collation phonebook (provider = icu, locale = 'de-u-co-phonebk');
create collation numbers (provider = icu, locale = 'und-u-kn');
create collation upper_first (provider = icu, locale = 'und-u-kf-upper');
create collation shifted (provider = icu, locale = 'und-u-ka-shifted');
create collation insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create collation bare (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
create collation copied from insensitive;
create collation bare from "C";
select collname, collprovider, collisdeterministic, collencoding, collcollate from pg_collation where collnamespace = 'icu_collations'::regnamespace order by 1;
select pg_collation_actual_version(oid) = collversion as same from pg_collation where collname = 'numbers';

-- Orders.
create table words (n int, de text collate "de-x-icu", sv text collate "sv-x-icu", c text collate "C");
insert into words select n, w, w, w from unnest(array['abc', 'ABC', 'äbc', 'bbc', 'Goldmann', 'Götz', 'ß', 'zz', 'a-21', 'a-123']) with ordinality u(w, n);
insert into words values (0, null, null, null);
select de from words order by de;
select sv from words order by sv desc nulls last;
select c from words order by c;
select de from words order by de collate phonebook;
select de from words order by c collate numbers;
select de from words order by c collate upper_first, n;
select de from words order by c collate shifted;
select min(de), max(de), min(sv), max(sv), min(c), max(c) from words;
select string_agg(de, ' ' order by de) from words;
select n, rank() over (order by sv) from words order by n;
select count(*) filter (where de < 'b'), count(*) filter (where sv < 'b'), count(*) filter (where c < 'b') from words;
select greatest(de, 'ä'), least(sv, 'zzz') from words order by n;
select n from words where (de, n) < ('äbc', 5) order by n;
select array_agg(de order by de) = array_agg(de order by c) from words;
select array['äbc', 'b'] collate "sv-x-icu" < array['bbc'], array['äbc', 'b'] collate "de-x-icu" < array['bbc'];
select de from words where de between 'a' and 'b' and de in ('abc', 'äbc', 'ABC') order by de;
select upper(de), lower(de), initcap(de) from words order by n;
select lower('HIJ' collate "tr-x-icu"), upper('hij' collate "tr-x-icu"), initcap('don''t stop' collate "en-x-icu");

-- Conflicts.
select n from words where de < sv;
select n from words where de = c;
select n from words order by de || sv;
select distinct de || sv from words;
select de from words union all select sv from words order by 1;
select array_agg(n order by de || sv) from words;
select lower(de || sv) from words;
create index on words ((de || sv));
create table made as select de || sv as x from words;

-- Keys of indexes, which are used for their own order alone.
create index words_de on words (de);
create index words_sv on words (sv desc nulls last, n);
create index words_other on words (de collate "sv-x-icu");
set enable_seqscan = off;
select de from words where de > 'abc' and de < 'c' order by de;
select sv from words where sv >= 'bbc' order by sv desc nulls last;
select de from words where de collate "sv-x-icu" > 'zz' order by de collate "sv-x-icu";
select de from words where de collate "C" > 'a' order by de collate "C";
select de from words where de = 'äbc';
select de from words where de like 'ab%';
select de from words where de is null;
alter table words alter de type text collate "sv-x-icu";
select de from words where de > 'bbc' order by de;
select pg_get_indexdef('words_de'::regclass), pg_get_indexdef('words_other'::regclass);
reset enable_seqscan;

-- Different and equal.
create table names (x text collate insensitive unique, y char(5) collate bare);
insert into names values ('abc', 'é'), ('def', 'E'), ('Ghi', 'f');
insert into names values ('ABC', 'x');
insert into names values ('ABC', 'x') on conflict (x) do update set y = excluded.y returning x, y;
select x from names where x = 'ABC';
select x from names where x in ('DEF', 'GHI', 'x') order by x;
select x from names where x <> 'ABC' order by x;
select y, count(*) from names group by y order by y;
select count(distinct y), count(distinct y collate "C") from names;
select distinct on (y) y from names order by y, x;
select a.x, b.x from names a join names b on a.y = b.y and a.x < b.x order by 1, 2;
select x from names union select 'DEF' order by 1;
select count(*) from (select x from names intersect select 'DEF') s;
select x from names except select 'DEF' order by 1;
select 'a' = 'A' collate insensitive, 'a' < 'A' collate insensitive, 'a' = 'á' collate insensitive, 'a' = 'Á' collate bare;
select array['a', 'B'] collate insensitive = array['A', 'b'], nullif('a', 'A' collate insensitive), 'a' is distinct from 'A' collate insensitive;
select case 'a' collate insensitive when 'A' then 1 end, 'ABC' collate insensitive ~ 'b';
select x ilike 'a' from names;
select hashtext('abc' collate insensitive) = hashtext('ABC' collate insensitive);
create index on names (x text_pattern_ops);
select relname = 'NAMES' collate insensitive from pg_class where relname = 'names';
select relname from pg_class where relname = 'NAMES' collate insensitive and relnamespace = 'icu_collations'::regnamespace;

select y, count(*) from names group by y having y = 'E' collate "C";
select y, count(*) from names group by y having ascii(y) = 233;
select * from (select distinct y from names) s where ascii(y) in (69, 233);

create table labels (l text[] collate insensitive);
insert into labels values ('{a,B}'), ('{A}'), ('{c}');
create index on labels using gin (l);
set enable_seqscan = off;
select l from labels where l @> '{a}' order by l collate "C";
select l from labels where l && '{b,C}' order by l collate "C";
select l from labels where l = '{a}';
reset enable_seqscan;

-- Foreign keys.
create table refers (x text collate insensitive references names (x) on update cascade on delete cascade);
insert into refers values ('ABC'), ('def');
insert into refers values ('none');
update names set x = 'AbC' where x = 'abc';
select * from refers order by x;
delete from names where x = 'DEF';
select * from refers order by x;

-- Partitions.
create table listed (x text collate insensitive) partition by list (x);
create table listed_a partition of listed for values in ('abc');
create table listed_b partition of listed for values in ('ABC');
create table listed_rest partition of listed default;
insert into listed values ('abc'), ('ABC'), ('b');
select tableoid::regclass, x from listed order by x, x collate "C";
select x from listed where x = 'Abc' order by x collate "C";
create table ranged (x text collate "sv-x-icu") partition by range (x);
create table ranged_1 partition of ranged for values from ('a') to ('ä');
create table ranged_2 partition of ranged for values from ('ä') to (maxvalue);
insert into ranged values ('b'), ('z'), ('äb'), ('ö');
select tableoid::regclass, x from ranged order by x;
select x from ranged where x < 'zz' order by x;
select x from ranged where x < 'b' collate "de-x-icu" order by 1;

-- Ranges and domains.
create type words_de as range (subtype = text, collation = "de-x-icu");
create type words_c as range (subtype = text, collation = "C");
select words_de('A', 'Z') @> 'b'::text, words_c('A', 'Z') @> 'b'::text;
create domain swedish as text collate "sv-x-icu" check (value < 'ö');
select x from unnest(array['äb', 'zz']::swedish[]) x order by x::swedish;
select 'öb'::swedish;
select c::swedish from words where n in (1, 3, 8) order by 1;
select * from unnest((select array_agg(de) from words)) x order by 1;

-- Definitions.
alter collation numbers refresh version;
alter collation numbers rename to bare;
alter collation numbers rename to digits;
comment on collation digits is 'numbers by their values';
create view shown as select de collate digits as d, ranged.x from words, ranged where sv < 'b' collate digits;
select pg_get_viewdef('shown'::regclass);
drop collation insensitive;
drop schema icu_collations cascade;
-- Foreign keys do not go by indexes with another equality.
create collation fk_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table fk_p (x text primary key);
create table fk_c (x text references fk_p on delete cascade);
create index on fk_c (x collate fk_ci);
insert into fk_p values ('abc'), ('ABC');
insert into fk_c values ('abc'), ('ABC');
delete from fk_p where x = 'abc';
select * from fk_c;
drop table fk_c, fk_p;
create table fk_p (x text collate fk_ci primary key);
create table fk_c (x text collate fk_ci references fk_p on delete cascade);
create index on fk_c (x collate "C");
insert into fk_p values ('abc');
insert into fk_c values ('abc'), ('ABC');
delete from fk_p;
select * from fk_c;
drop table fk_c, fk_p;
drop collation fk_ci;
-- Values of a row type go by the collations of its columns, by an index and without one.
create type fk_row as (a text collate "de-x-icu");
create table fk_rows (v fk_row);
insert into fk_rows values (row('a')), (row('B')), (row('c'));
select * from fk_rows where v < row('b')::fk_row order by v;
create index on fk_rows (v);
set enable_seqscan = off;
select * from fk_rows where v < row('b')::fk_row order by v;
select * from fk_rows order by v;
reset enable_seqscan;
drop table fk_rows;
drop type fk_row;
-- A search that takes long can be cancelled.
create collation long_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
set statement_timeout = '200ms';
select replace(repeat('a', 200000) collate long_ci, 'x', 'y') = '';
reset statement_timeout;
drop collation long_ci;
