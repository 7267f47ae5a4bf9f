-- pg_trgm: trigrams, similarity, its operators and their thresholds, indexes by trigrams.
create table names (id int primary key, name text);
create index on names using gin (name gin_trgm_ops);
create extension pg_trgm;
select show_trgm(''), show_trgm('a'), show_trgm(' a  b '), show_trgm('Word two'), show_trgm('foo_bar-baz'), show_trgm('A1 b2'), show_trgm('---');
select show_trgm('éa b'), show_trgm('ΑΣ'), show_trgm('名前'), show_trgm('²½①'), show_trgm('٣');
select show_trgm(null), show_trgm(repeat('ab ', 100));
select similarity('word', 'two words'), similarity('', 'a'), similarity('a', ''), similarity('', ''), similarity('wow', 'WOWa '), similarity('---', '####---'), similarity('été', 'Éte');
select word_similarity('word', 'two words'), word_similarity('two words', 'word'), word_similarity('', 'a'), word_similarity('Kabankala', 'ab Kabankalan City of'), word_similarity('abc def', 'xabc defx abcdef def abc');
select strict_word_similarity('word', 'two words'), strict_word_similarity('two words', 'word'), strict_word_similarity('', 'a'), strict_word_similarity('Kabankala', 'ab Kabankalan City of'), strict_word_similarity('a', '');
select a, b, similarity(a, b), word_similarity(a, b), strict_word_similarity(a, b), a <-> b, a <<-> b, a <->> b, a <<<-> b, a <->>> b
  from (values ('alphabet'), ('alpha beta'), ('bet'), ('al fabeto'), ('Bethany alpha')) x(a), (values ('alpha'), ('the alphabets'), ('beta bet bet')) y(b) order by 1, 2;
-- Thresholds.
select show_limit(), 'word' % 'two words', 'word' <% 'two words', 'word' <<% 'two words', 'two words' %> 'word', 'two words' %>> 'word';
show pg_trgm.similarity_threshold;
select set_limit(0.5), show_limit(), current_setting('pg_trgm.similarity_threshold'), 'word' % 'two words';
begin;
set local pg_trgm.word_similarity_threshold = 0.9;
set local pg_trgm.strict_word_similarity_threshold = 0.9;
select 'word' <% 'two words', 'word' <<% 'two words', 'two words' %> 'word', 'two words' %>> 'word';
rollback;
select set_limit(2);
select set_limit(-0.1);
set pg_trgm.similarity_threshold = 1.5;
set pg_trgm.word_similarity_threshold = abc;
reset pg_trgm.similarity_threshold;
select name, setting, vartype, min_val, max_val, short_desc, context from pg_settings where name like 'pg\_trgm.%' order by 1;
select proname, provolatile, proparallel from pg_proc p join pg_depend d on d.objid = p.oid and d.refclassid = 'pg_extension'::regclass join pg_extension e on e.oid = d.refobjid
  where extname = 'pg_trgm' and proname not like 'g%' order by 1;
select oprname, oprcode, oprcom::regoper::text <> '0' as commutes, oprrest, oprjoin from pg_operator where oprcode::text ~ 'similarity' order by oprcode::text;
-- Indexes: the same answers by index as by a scan.
insert into names select g, case g % 7 when 0 then 'Anna Maria ' || g when 1 then 'annual-report_' || g when 2 then 'Hannover' when 3 then 'Łódź ' || g when 4 then '50% off' when 5 then null else '' end
  from generate_series(1, 700) g;
insert into names values (1001, 'back\slash'), (1002, 'Ann'), (1003, 'foo bar'), (1004, 'foobar'), (1005, 'FOO.BAR'), (1006, 'foo  bar baz'), (1007, 'ba'), (1008, '名前テスト');
create index names_trgm on names using gin (name gin_trgm_ops);
create function answers(condition text) returns table (by_index text, by_scan text) language plpgsql as $$
declare query text := 'select count(*) || '' '' || coalesce(min(id)::text, ''-'') || '' '' || coalesce(sum(id)::text, ''-'') from names where ' || condition;
begin
  set local enable_seqscan = off;
  set local enable_bitmapscan = on;
  execute query into by_index;
  set local enable_seqscan = on;
  set local enable_bitmapscan = off;
  execute query into by_scan;
  return next;
end $$;
select c, by_index, by_index = by_scan as same from unnest(array[
  $$name like '%nna%'$$, $$name like 'Ann%'$$, $$name like '%port\_7%'$$, $$name ilike '%ANNA%'$$, $$name like 'Ann'$$, $$name like '%a_n%'$$, $$name like '50\%%'$$,
  $$name like 'back\\%'$$, $$name like '%a%'$$, $$name like ''$$, $$name ilike '%łódź%'$$, $$name like '%łódź%'$$, $$name not like '%nna%'$$, $$name like '%テスト%'$$, $$name like null$$,
  $$name ~ 'nna'$$, $$name ~ '^Ann'$$, $$name ~* 'ANNA|hanno'$$, $$name ~ 'foo.?bar'$$, $$name ~ 'fo+ +bar'$$, $$name ~ '[Aa]nn'$$, $$name ~ 'x*'$$, $$name ~ '(An)na \1'$$, $$name ~ '(?i)FOO\.BAR'$$, $$name ~ 'foo(?=bar)'$$,
  $$name ~ '^foo\s+bar$'$$, $$name ~ 'bar$'$$, $$name ~ '\mbar'$$, $$name ~ '(foo|bar){2}'$$, $$name ~ '***=O.B'$$, $$name ~ 'ports?|Hann'$$,
  $$name = 'Hannover'$$, $$name = ''$$, $$name = '50% off'$$, $$name % 'Hanover'$$, $$name % 'Anna'$$, $$name %> 'foo'$$, $$name %>> 'foo'$$, $$'bar' <% name$$, $$'foo bar' <<% name$$, $$name % ''$$, $$name % 'ba'$$,
  $$name like '%nna%' and name ~ 'Maria 1'$$]) with ordinality u(c, n), answers(c) order by n;
set pg_trgm.similarity_threshold = 0.8;
select c, by_index, by_index = by_scan as same from unnest(array[$$name % 'Hanover'$$, $$name % 'Anna Maria'$$, $$name % 'foo bar'$$]) with ordinality u(c, n), answers(c) order by n;
reset pg_trgm.similarity_threshold;
select * from answers($$name ~ '('$$);
set enable_seqscan = off;
explain (costs off) select * from names where name ilike '%anna%';
explain (costs off) select * from names where name ~ 'foo|bar';
explain (costs off) select * from names where name %> 'foo';
select pg_get_indexdef('names_trgm'::regclass);
create schema ext;
alter extension pg_trgm set schema ext;
select pg_get_indexdef('names_trgm'::regclass);
create index on names using gin (name gin_trgm_ops);
create index on names using gin (name public.gin_trgm_ops);
create index names_two on names using gin (name ext.gin_trgm_ops);
set search_path = public, ext;
select pg_get_indexdef('names_two'::regclass);
alter extension pg_trgm set schema public;
set search_path = '';
select pg_catalog.pg_get_indexdef('public.names_two'::regclass);
reset search_path;
drop index names_two;
-- A row that changes.
update names set name = 'Zacharias' where id = 1002;
select id from names where name like '%char%';
delete from names where id = 1002;
select id from names where name like '%char%';
drop index names_trgm;
-- gist_trgm_ops, varchar, an expression, several columns, parts of a table.
create index on names using gist (name gist_trgm_ops);
create table people (first varchar(40), last text, tags text[]);
insert into people select 'First' || g, 'Last' || g, array['t' || g % 10] from generate_series(1, 300) g;
create index people_first on people using gin (first gin_trgm_ops, tags);
create index people_lower on people using gist (lower(last) gist_trgm_ops);
create index people_some on people using gin (last public.gin_trgm_ops) where first like '%99%';
select * from people where first like '%st77%' and tags @> array['t7'];
select * from people where lower(last) like '%ast22%' order by 1;
select count(*) from people where last ilike '%AST1%' and first like '%99%';
select indexdef from pg_indexes where tablename in ('names', 'people') order by 1;
select opcname, amname from pg_opclass c join pg_am a on a.oid = opcmethod where opcname like '%trgm%' order by 1;
create index on people using gin (tags gin_trgm_ops);
create index on people using gin (first);
create index on people using gin (first gin_trgm_ops(siglen = 32));
create unique index on people using gin (first gin_trgm_ops);
create index on people (first gin_trgm_ops);
drop extension pg_trgm;
drop table names, people;
drop extension pg_trgm;
show pg_trgm.similarity_threshold;
