-- Values of every type: input, output, casts, comparison, errors.
select 't'::bool, 'off'::bool, 'yes'::bool and not '0'::bool, true > false;
select 32767::int2, -2147483648::int4, 9223372036854775807::int8, '  12 '::int, 7 / 2, -7 / 2, -7 % 2, 2 ^ 10, 5 # 3, ~1, 1 << 5;
select 32767::int2 + 1::int2;
select 2147483647 + 1;
select 9223372036854775807 + 1;
select '9223372036854775808'::int8;
select 1 / 0;
select 0.1::float8 + 0.2::float8, 1e300 * 1e10, 'nan'::float8 = 'nan', '-0'::float8, 1.0::float4 / 3, 12345678.9::float4, 1e20::float8, 1e-7::float8;
select 'infinity'::float8 > 1e308, 1e308::float8 * 10;
select 0.1 + 0.2, 1.10 * 2.0, 10 / 3.0, round(2.5), round(-2.5), round(1.005, 2), trunc(9.99, 1), 1e3::numeric, 12345.678::numeric(7, 2), 2 ^ 0.5;
select 100000::numeric(4, 1);
select sqrt(2::numeric), exp(1.0), ln(10.0), mod(10.5, 3), ceil(-1.5), floor(-1.5), sign(-3), abs(-4.20), div(7, 2);
select 'abc' || 'def', 'a' || 1, length('naïve ☕'), octet_length('naïve ☕'), upper('straße'), initcap('hello world'), 'x' < 'Y', reverse('abc');
select substr('hello', 2, 3), substring('hello' from 'l+'), position('l' in 'hello'), strpos('hello', 'z'), trim(both 'x' from 'xxaxx'), lpad('5', 3, '0'), repeat('ab', 3), split_part('a,b,c', ',', 2), replace('aaa', 'a', 'b'), left('hello', -2), overlay('abcdef' placing 'XX' from 2 for 3);
select 'abc'::varchar(2), 'abc'::char(5) || '|', 'a  '::char(3) = 'a'::char(5), 'xyz'::"char", 'abc'::name, length('ab   '::char(5)), '12'::text::int;
select 'a_c' like 'a\_c', 'abc' like 'a%', 'ABC' ilike 'a_c', 'abc' ~ '^a.c$', 'ABC' ~* 'b', 'abc' !~ 'x', 'abc' similar to '(a|b)%';
select regexp_replace('foo bar baz', 'b(.)', '[\1]', 'g'), regexp_match('a1b22', '(\d+)'), regexp_split_to_array('a, b,c', ',\s*'), (select array_agg(m[1]) from regexp_matches('a1b22', '\d+', 'g') m);
select format('%s %I %L %%', 'a', 'B c', 'd''e'), concat('a', null, 1), concat_ws('-', 1, null, 2), chr(9749), ascii('☕'), to_hex(255), md5('x'), quote_literal('it''s'), quote_ident('Ab');
select '\xdeadBEEF'::bytea, 'a\\b\001'::bytea, length('\x00ff'::bytea), encode('\xff00', 'base64'), decode('ff', 'hex'), substr('\x010203'::bytea, 2), get_byte('\x0102', 1), '\x01'::bytea || '\x02', sha256('x');
select '2024-02-29'::date, date 'Jan 5 1999', '1999-01-08'::date + 10, '2024-03-01'::date - '2024-02-01'::date, 'epoch'::date;
select '04:05:06.789'::time, '4:05 PM'::time, '23:59:60'::time, time '10:00' + interval '15 hours';
select '2024-01-31 10:00'::timestamp + '1 month', timestamp '2024-01-01' - timestamp '2023-01-01', date_trunc('quarter', timestamp '2024-05-17 12:34'), extract(epoch from timestamp '2000-01-01'), date_part('dow', date '2024-02-29'), extract(week from date '2024-12-30');
select '2024-07-01 12:00 Europe/Vienna'::timestamptz, timestamptz '2024-01-01 00:00+05' at time zone 'America/New_York', timestamp '2024-07-01 12:00' at time zone 'Europe/Vienna', to_timestamp(1e9);
select '1 year 2 mons -3 days 04:05:06.5'::interval, interval '90 minutes', interval '1' day, 'P1Y2M3DT4H'::interval, justify_interval('35 days 25 hours'), interval '1 day' * 1.5, interval '1 mon' > interval '29 days', age('2024-03-01', '2023-01-15'), - interval '1 hour';
select to_char(timestamp '2024-02-29 13:05:09.123', 'YYYY-MM-DD HH12:MI:SS.MS AM Day DDD Mon'), to_char(1234567.891, 'FM9,999,999.00'), to_char(-5, '000'), to_date('29/02/2024', 'DD/MM/YYYY'), to_number('1,234.5', '9,999.9'), to_char(interval '3 days 4 hours', 'DD HH24');
select 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid, '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'::uuid < 'ffffffff-0000-0000-0000-000000000000';
select '{"b": 1, "a": [1, 2.50, {"x": null}], "b": 2}'::json, '{"b": 1, "a": [1, 2.50, {"x": null}], "b": 2}'::jsonb;
select j->'a'->1, j->>'b', j#>>'{a,2,x}', j->'a' @> '[1]', j ? 'b', j || '{"c": 3}', j - 'a', j #- '{a,0}', jsonb_typeof(j->'a'), jsonb_array_length(j->'a') from (select '{"b": "x", "a": [1, 2, {"x": "y"}]}'::jsonb) t(j);
select jsonb_set('{"a": 1}', '{b}', '[1]'), jsonb_build_object('k', 1, 'n', null), to_jsonb(row(1, 'a')), jsonb_pretty('{"a": [1]}'), jsonb_strip_nulls('{"a": null, "b": 1}'), array_to_json(array[1, 2]), row_to_json(row(1, 'x'));
select key, value from jsonb_each('{"a": 1, "b": "x"}') order by key;
select * from jsonb_array_elements_text('["a", 1, null]');
select jsonb_path_query_array('{"a": [1, 2, 3]}', '$.a[*] ? (@ > 1)');
select array[1, 2, 3], '{1,null,3}'::int[], array[[1, 2], [3, 4]], '{}'::text[], (array[1, 2, 3])[2], (array[1, 2, 3])[2:3], array[1, 2] || 3, array_append('{a}'::text[], 'b'), array[1, 2] @> array[2], array[1, 2] && array[3], 2 = any(array[1, 2]), 2 < all(array[3, 4]);
select array_length(array[[1, 2], [3, 4]], 1), cardinality('{1,2,3}'::int[]), array_position(array['a', 'b'], 'b'), array_remove(array[1, 2, 1], 1), array_to_string(array[1, null, 3], ',', '-'), string_to_array('a,b,,c', ','), unnest(array[1, 2]), array_dims('[2:3]={1,2}'::int[]), array[1, 2] < array[1, 3];
select '{1,2'::int[];
select array[1, 'x'];
select 4294967295::oid, 'pg_class'::regclass, 'pg_class'::regclass::oid, 'int'::regtype, 'now'::regproc, '+(int4,int4)'::regoperator, 'pg_catalog'::regnamespace, 'postgres'::regrole;
select pg_typeof(1), pg_typeof(1.0), pg_typeof('x'), pg_typeof(null), pg_typeof(array[1]), pg_typeof(now()), pg_typeof('x'::varchar(3)), pg_typeof(1::float4 + 1);
select coalesce(null, 1), nullif(1, 1), greatest(1, null, 3), least('b', 'a'), case when 1 > 2 then 'a' else 'b' end, case 3 when 1 then 'x' end, 1 is distinct from null, null is null, row(1, null) is null, (1, 2) < (1, 3), 2 between 1 and 3, 2 between symmetric 3 and 1;
select 1 + '2', '1' + '2';
select num_nulls(1, null), width_bucket(5, 0, 10, 4), gcd(12, 18), lcm(4, 6), factorial(20), random() < 1, pi(), degrees(pi()), atan2(1, 1), cbrt(8), log(100), log(2, 8);
select bool 'x';
select '2023-02-29'::date;
select '25:00'::time;
select 'x'::uuid;
select '{"a":}'::json;
select 'missing'::regclass;
select 'a' + 1;

-- Constants are computed when a query is planned, whether or not a row ever asks for them.
create table nothing (a int);
select 1 / 0 from nothing;
select 1 from nothing where a = 1 / 0;
select sqrt(-1) from nothing;
update nothing set a = 1 / 0;
insert into nothing select 1 / 0 from nothing;
select case when true then 1 else 1 / 0 end, coalesce(2, 1 / 0) from nothing;
select a / 0 from nothing;
select 1 where false and 1 / 0 = 1;
explain select 1 / 0;

-- Values of a row type that has got a column since they were stored.
create table grows (a int);
create table holds (id int, r grows, s grows[]);
insert into holds values (1, row(1), array[row(2)::grows]);
alter table grows add column b text;
insert into holds values (2, row(1, null), null), (3, row(1, 'x'), null);
select id, r, s, (r).b, to_json(r), r = row(1, null)::grows from holds order by id;
alter table grows add column c int default 5;
alter table grows add column c serial;

-- Types whose order is not that of their stored form, in segments.
create table stored (id int, j jsonb, i inet, b varbit, m money);
insert into stored select g, case g % 4 when 0 then '1' when 1 then '[]' when 2 then '{"a": null}' else '[1, 2]' end::jsonb,
    case g % 3 when 0 then '10.0.0.0/8' when 1 then '::1' else '9.1.0.0/16' end::inet, (g % 5)::bit(4)::varbit, (g % 7)::money
  from generate_series(1, 40) g;
checkpoint;
select count(*) from stored where j <= 'true';
select count(*) from stored where j > 'true';
select count(*) from stored where j = '1.0';
select count(*) from stored where i < '10.0.0.0/9';
select count(*) from stored where i >= '::';
select count(*) from stored where b > '1';
select count(*) from stored where b < '001';
select count(*) from stored where m > '4';
drop table stored;
select float4 '50331648', float4 '67108872', float8 '2e23', float8 '36028797018963968';

-- What a record was made of is known through sub-queries, joins, CTEs and set operations.
create type pair as (p int4, q text);
select (b.c).f1 from (select c from (select row(1, 2) c) a) b;
select (b.c).* from (select a.c from (select row(1, 2) c) a join (select 1) x on true) b;
with w as (select row(1, 2) c) select (c).f2 from w;
with w as (select row(1, 2) c) select (d).f2 from (select c as d from w) y;
select (x).f1 from (select x from (select row(1, 2) union all select row(3, 4)) q(x)) z;
select (select (o.x).f2) from (select row(1, 2) x) o;
select (x).f3 from (select row(1, 2) x) z;
select (x).p from (select t from (select row(1, 'a')::pair) t) z(x);
select ((x).pair).q from (select t from (select row(1, 'a')::pair as pair) t) z(x);
-- Of what is no row nothing is known.
select (s.c).f1 from (select min(v.r) as c from (values (row(1, 2))) v(r)) s;
select (r).f1 from (values (row(1, 2))) v(r);
select (r).* from (values (row(1, 2))) v(r);
select (1).*;
drop type pair;

-- Time zones and their abbreviations.
select * from pg_timezone_names where name in ('UTC', 'Asia/Kolkata', 'Africa/Lagos') order by name;
select * from pg_timezone_abbrevs where abbrev in ('EST', 'JST', 'UTC', 'CEST') order by abbrev;
select count(*) > 300 from pg_timezone_names;

-- Domains are checked a batch at a time; the error is that of the first value that breaks a constraint.
create domain small_even as int check (value < 100) check (value % 2 = 0);
create domain small_even_set as small_even not null;
select count(v), sum(v) from (select i::small_even as v from generate_series(0, 98, 2) i) q;
select i::small_even from generate_series(0, 300, 50) i;
select i::small_even from generate_series(0, 98, 7) i;
select (nullif(i, 2))::small_even from generate_series(0, 4, 2) i;
select (nullif(i, 2))::small_even_set from generate_series(0, 4, 2) i;
create domain inverse as float8 check (1 / value > 0);
select i::inverse from generate_series(2, -2, -1) i;
select i::inverse from generate_series(2, 0, -1) i;
create domain listed as text check (value in ('YES', 'NO'));
select (case when i % 2 = 0 then 'YES' else 'NO' end)::listed from generate_series(1, 3) i;
select (array['YES', 'NO', 'MAYBE'])[i]::listed from generate_series(1, 3) i;
-- Elements a batch at a time.
select i, (array[10, null, 30])[i], ('[0:2]={1,2,3}'::int[])[i] from generate_series(-1, 4) i;
select a[i], a[null::int], (a[i:i])[1] from (values ('{1,2}'::int2[], 1), ('{}', 1), (null, 2), ('{{1,2},{3,4}}', 1), ('{7,8}', 2)) v(a, i);
drop domain small_even_set;
drop domain small_even;
drop domain inverse;
drop domain listed;

-- VALUE is the domain's value inside a CASE over another one, too.
create domain unlike_next as int check (case value + 1 when value then false else true end);
select 1::unlike_next, i::unlike_next from generate_series(1, 3) i;
drop domain unlike_next;

-- functions for two argument types each
select pg_size_pretty(sum(n)), pg_size_pretty(12.345), pg_size_pretty(-1e20) from (values (10::bigint << 20), (5)) v(n);
select bit_length(b'10101'), bit_length(b'1'::varbit), 5 + inet '10.0.0.255';
select jsonb_set('[1,2]', '{1,null}', '"x"');
select jsonb_set('[1,2]', '{9,null}', '1');
select jsonb_set('{"a":1}', '{a,null}', '1');
select '[1,2]'::jsonb #- '{0,null}';
select '[1,2]'::jsonb #- '{9,null}';
select jsonb_set('{}', '{null}', '1');
select jsonb_set('{}', '{null}', '1', false);
select jsonb_insert('{"a":[1]}', '{a,0,null}', '1');

-- Numbers with too many digits, whatever follows them.
select '99999999999x'::int;
select '2147483648x'::int;
select '99999x'::int2;
select '99999999999999999999x'::int8;
select '-99999999999-'::int;
select ''::money, '-'::money, '$'::money, '.'::money;
select 'x'::money;

-- Of equal values min and max return the last one, of character the first one.
select min(x), max(x) from (values (1.0), (1.00)) v(x);
select min(x), max(x) from (values (1.00), (1.0)) v(x);
select n, min(x) over (order by n), max(x) over (order by n) from (values (1, 1.00), (2, 1.0), (3, 2.0)) v(n, x);
select min(x), max(x) from (values (interval '1 mon'), (interval '30 days')) v(x);
select min(x), max(x) from (values ('0'::float8), ('-0')) v(x);
select min(x), max(x) from (values (array[1.0]), (array[1.00])) v(x);
select length(min(x || '.')), length(max(x || '.')) from (values ('a'::char(3)), ('a  ')) v(x);
