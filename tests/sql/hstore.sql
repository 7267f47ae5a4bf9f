-- hstore: text forms, operators, functions, subscripts, casts, indexes.
create extension hstore;
select 'a=>1, b => "x y", "c d"=>NULL, e=>"null", f=>nUll, aa=>""'::hstore;
select ''::hstore, '  '::hstore, 'a=>1,'::hstore, 'a=>1,a=>2'::hstore, 'a=>,b'::hstore, '"a"=>"b\"c\\d"'::hstore, 'a\=b=>c\,d'::hstore, 'é=>ü'::hstore;
select ',a=>1'::hstore;
-- Operators.
select h -> 'a', h -> 'n', h -> 'z', h -> array['a', 'z', null, 'n'], h -> '{}'::text[], h -> '{{a,b},{n,z}}'::text[] from (values ('a=>1, b=>2, n=>NULL'::hstore)) t(h);
select h ? 'a', h ? 'n', h ? 'z', h ?| array['z', null], h ?| array['z', 'n'], h ?& array['a', 'n'], h ?& array['a', 'z'], h ?& '{}'::text[], h ?| '{}'::text[] from (values ('a=>1, b=>2, n=>NULL'::hstore)) t(h);
select 'a=>1, b=>2'::hstore || 'b=>3, c=>4', ''::hstore || 'a=>1', 'a=>1'::hstore || '', 'a=>1'::hstore || null;
select h - 'a'::text, h - array['a', 'n', null], h - 'a=>1, b=>3, n=>NULL'::hstore, h - 'z'::text from (values ('a=>1, b=>2, n=>NULL'::hstore)) t(h);
select h @> 'a=>1', h @> 'a=>2', h @> 'n=>NULL', h @> 'a=>NULL', h @> '', 'b=>2' <@ h, h <@ 'a=>1' from (values ('a=>1, b=>2, n=>NULL'::hstore)) t(h);
select %% h, %# h, %% ''::hstore, %# ''::hstore from (values ('a=>1, n=>NULL'::hstore)) t(h);
select 'a=>1'::hstore = 'a=>1', 'a=>1, b=>2'::hstore = 'b=>2, a=>1', 'a=>1'::hstore <> 'a=>2', 'a=>NULL'::hstore = 'a=>""', 'a=>1'::hstore #<# 'a=>2', 'a=>1'::hstore #>=# '', hstore_cmp('a=>1', 'b=>1');
-- Functions.
select fetchval(h, 'a'), exist(h, 'n'), isexists(h, 'z'), defined(h, 'n'), isdefined(h, 'a'), delete(h, 'a'), delete(h, array['a']), delete(h, 'a=>1'::hstore),
  slice(h, array['a', 'z', 'n', null]), slice_array(h, array['n', 'a']), akeys(h), avals(h), hstore_to_array(h), hstore_to_matrix(h), hstore_version_diag(h) from (values ('a=>1, bb=>2, n=>NULL'::hstore)) t(h);
select skeys('bb=>1, a=>NULL'), svals('bb=>1, a=>NULL');
select key, value from each('bb=>1, a=>NULL, c=>""') order by 1;
select (each('a=>1')).key, each('b=>2');
select hstore('a', 'b'), hstore('a', null), hstore(null, 'b'), tconvert('x', 'y'), hstore(array['a', '1', 'b', null]), hstore('{{a,1},{b,2}}'::text[]), hstore('{}'::text[]),
  hstore(array['a', 'b'], array['1', null]), hstore(array['a', 'b'], null), hstore(null::text[], array['1']), array['a', '1']::hstore;
\set VERBOSITY terse
select hstore(array['a', '1', 'b']);
select hstore(array[null, '1']);
select hstore('{{a,1,2}}'::text[]);
select hstore('{{{a,1}}}'::text[]);
select hstore(array['a'], array['b', 'c']);
select hstore(array[null]::text[], array['b']);
select hstore('{{a}}'::text[], array['b']);
select hstore('[0:0]={a}'::text[], array['b']);
\set VERBOSITY default
select hstore_to_json(h), hstore_to_json_loose(h), hstore_to_jsonb(h), hstore_to_jsonb_loose(h), h::json, h::jsonb
  from (values ('"a key"=>1, b=>t, c=>NULL, d=>12345, e=>012345, f=>1.234, g=>2.345e+4, h=>"2016-01-01", i=>"-", j=>"\"q\"", k=>" 1", l=>f, m=>-0'::hstore), ('')) t(h);
-- Records.
create table rec (a int, b text default 'x', c numeric(6,2), d date);
insert into rec values (1, 'one', 1.5, '2020-01-02'), (2, null, null, null);
select hstore(rec) from rec order by a;
select hstore(row(1, 'x', null)), hstore(null::rec);
select hstore(v) from (select 1 as "One", true as t) v;
select (rec #= 'a=>5, c=>"7.777", zz=>1').* from rec order by a;
select populate_record(rec, 'b=>NULL, d=>"2021-03-04"') from rec order by a;
select populate_record(null::rec, 'a=>3, b=>z'), populate_record(null::rec, ''), populate_record(null::rec, null);
select (populate_record(null::rec, 'a=>x')).a;
\set VERBOSITY terse
select populate_record(1, 'a=>1');
select populate_record(null::record, 'a=>1');
select hstore(null::record);
\set VERBOSITY default
create domain positive as int check (value > 0);
create domain wanted as int not null;
create type with_domain as (p positive, w wanted);
select populate_record(null::with_domain, 'p=>1, w=>2');
select populate_record(null::with_domain, 'p=>0, w=>2');
select populate_record(null::with_domain, 'p=>1');
alter table rec add column e text, drop column b;
select hstore(rec), rec #= 'e=>new' from rec order by a;
-- Subscripts.
select h['a'], h['n'], h['z'], h[null], (h || 'z=>9')['z'] from (values ('a=>1, n=>NULL'::hstore)) t(h);
create table sub (id int, h hstore, hs hstore[]);
insert into sub values (1, 'a=>1', array['x=>1', 'y=>2']::hstore[]), (2, null, null);
update sub set h['b'] = 'two', h['c'] = null;
update sub set h['a'] = id;
insert into sub (id, h['q']) values (3, 'new');
update sub set hs[2]['z'] = 'deep' where id = 1;
select *, hs[1]['x'] from sub order by id;
select h['a']['b'] from sub;
select h['a':'b'] from sub;
select h[current_date] from sub;
select h[1] from sub;
update sub set h[null] = 'x' where id = 1;
create view subv as select h['a'] as a, h -> 'b' as b, h ? 'c' as c, h || 'd=>4'::hstore as d from sub;
select * from subv order by 1;
-- Order, groups, indexes.
select h, count(*) from (values ('a=>1,b=>2'::hstore), ('b=>2, a=>1'), (''), ('a=>NULL'), ('a=>""'), ('aa=>""')) t(h) group by h order by h;
select distinct h from (values ('a=>1'::hstore), ('a=>1'), (null)) t(h) order by 1 desc;
select hstore_hash('a=>1, bb=>NULL, c=>""'), hstore_hash(''), hstore_hash_extended('a=>1', 0), hstore_hash_extended('a=>1', 77);
create table ix (h hstore primary key, n int);
insert into ix select hstore('k' || i, (i % 7)::text), i from generate_series(1, 300) i;
insert into ix values ('k5=>5', 0);
select n from ix where h = 'k250=>5';
select n from ix where h = 'k250=>6';
create index ix_hash on ix using hash (h);
create index ix_value on ix ((h -> 'k7'));
select n from ix where h -> 'k7' = '0';
select count(*) from ix a join ix b using (h);
select count(*) from ix where h ?| array['k1', 'k2', 'k400'];
select min(n), max(n) from ix where h #># 'k298=>0';
-- GIN.
create table gx (id int, h hstore);
insert into gx values (1, 'a=>1, b=>2'), (2, 'a=>NULL'), (3, ''), (4, null), (5, 'b=>a, c=>""'), (6, 'a=>1'), (7, hstore('long', repeat('x', 200)));
create index gx_h on gx using gin (h);
\d gx
\d gx_h
select opcname, opcintype::regtype, opcdefault, opckeytype::regtype from pg_opclass where opcmethod = 2742 and opcname like '%hstore%';
select amopstrategy, amopopr::regoperator from pg_amop join pg_opfamily f on f.oid = amopfamily where amopmethod = 2742 and opfname like '%hstore%' order by 1;
set enable_seqscan = off;
select id from gx where h @> 'a=>1' order by id;
select id from gx where h @> 'a=>NULL' order by id;
select id from gx where h @> '' order by id;
select id from gx where h @> 'b=>1' order by id;
select id from gx where h @> hstore('long', repeat('x', 200)) order by id;
select id from gx where 'c=>""' <@ h order by id;
select id from gx where h ? 'a' order by id;
select id from gx where h ? '' order by id;
select id from gx where h ?| array['c', 'long', null] order by id;
select id from gx where h ?| '{}' order by id;
select id from gx where h ?& array['a', 'b'] order by id;
select id from gx where h ?& array['a', null] order by id;
select id from gx where h ?& '{}' order by id;
update gx set h = h || 'new=>1' where h ? 'b';
select id from gx where h ? 'new' order by id;
reset enable_seqscan;
drop table gx;
-- Casts.
select castsource::regtype, casttarget::regtype, castcontext from pg_cast where 'hstore'::regtype in (castsource, casttarget) order by 1, 2;
select 'a=>1'::hstore::text, 'a=>1'::text::hstore, 'a=>1'::varchar::hstore, pg_typeof('a=>1'::hstore || '');
prepare p(hstore) as select $1 -> 'a';
execute p('a=>42');
select encode(hstore_send('a=>1, bb=>NULL'), 'hex'), encode(hstore_send(''), 'hex');
copy sub (id, h) to stdout;
copy sub (id, h) from stdin;
4	"k"=>"tab\tin", "b"=>"back\\\\slash"
\.
select h from sub where id = 4;
-- Elsewhere, and gone.
create schema elsewhere;
alter extension hstore set schema elsewhere;
select * from subv order by 1;
select h['a'], h operator(elsewhere.->) 'b' from sub order by id;
\set VERBOSITY terse
drop extension hstore;
\set VERBOSITY default
set client_min_messages = warning;
drop extension hstore cascade;
reset client_min_messages;
select * from sub order by id;
drop schema elsewhere;
drop table sub, rec, ix;
drop type with_domain;
drop domain positive, wanted;
