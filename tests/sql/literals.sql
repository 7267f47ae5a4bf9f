-- Statements that differ only in their literals share plans; each form comes with several values.
create table item (id int primary key, name text, price numeric(6, 2), big bigint, seen timestamp, span interval, code varchar(3));
insert into item values (1, 'one', 1.50, 10, '2024-01-01', '1 day', 'a');
insert into item values (2, 'two', 2.50, 3000000000, '2024-02-01 10:00', '2 hours', 'b');
insert into item values (3, 'it''s', -3, -3000000000, '2024-03-01', '-3 days', 'c');
insert into item values (4, 'x', 'nan', 4, 'yesterday is wrong', '1', 'd');
insert into item values (4, 'x', 'nan', 4, 'infinity', '1', 'too long');
insert into item values (4, 'x', 12345.678, 4, 'infinity', '1', 'd');
insert into item values (4, 'x', 4.005, 4, 'infinity', '1', 'd'), (5, null, 1e3, 31, 'infinity', '1', 'e');
select name from item where id = 1;
select name from item where id = 2;
select name from item where id = '3';
select name from item where id = 'three';
select name from item where id = ' 1 ';
select name from item where id = 3000000000;
select name from item where id = 2147483647;
select name from item where id = 2147483648;
select name from item where id = -1;
select name from item where id = - 2;
select name from item where id = -2147483648;
select name from item where big = -3000000000;
select name from item where big = -3000000001;
select name from item where name = 'one';
select id from item where name = 'it''s';
select id from item where name = E'it\'s';
select id from item where name like 'o%';
select id from item where name like 't%';
select id from item where name like 'x\%' escape '\';
select id from item where name in ('one', 'two') order by id;
select id from item where name in ('x', 'it''s') order by id;
select id from item where id between 1 and 2 order by id;
select id from item where id between 2 and 4 order by id;
select id from item where price > 1.25 order by id;
select id from item where price > 2.55 order by id;
select id from item where seen < '2024-02-01' order by id;
select id from item where seen < '2024-03-02' order by id;
select id from item where seen < 'not a time' order by id;
select id from item where seen > timestamp '2024-01-15' - interval '1 day' order by id;
select id from item where seen > timestamp '2024-02-15' - interval '1 month' order by id;
select id, name from item order by 1 desc limit 2;
select id, name from item order by 2 desc limit 2;
select id, name from item order by 3;
select id + 1, count(*) from item group by id + 1 order by 1;
select id + 1, count(*) from item group by id + 2 order by 1;
select id % 2, count(*) from item group by 1 order by 2 desc, 1;
select distinct id % 2 from item order by id % 2;
select distinct id % 2 from item order by id % 3;
select interval '1' year, interval '1' day, interval '90' minute, interval '1 2' day to hour;
select interval '2' year, interval '3' day, interval '91' minute, interval '3 4' day to hour;
select varchar(2) 'abc', 'abc'::varchar(2), 'abc'::char(5), 1.234::numeric(5, 2), '1.239'::numeric(5, 2);
select varchar(1) 'xyz', 'xyz'::varchar(1), 'xyz'::char(4), 5.678::numeric(4, 1), '5.678'::numeric(4, 1);
select pg_typeof(1), pg_typeof(3000000000), pg_typeof(1.5), pg_typeof('a'), pg_typeof(-2147483648), pg_typeof(- 5);
select pg_typeof(2), pg_typeof(4000000000), pg_typeof(2.5), pg_typeof('b'), pg_typeof(-2147483647), pg_typeof(- 6);
select 5 - 3, 5 -3, 5-3, - 5, -5 + 3, - -5, +7;
select 9 - 1, 9 -1, 9-1, - 9, -9 + 1, - -9, +8;
select 1 union select 2 order by 1;
select 'a' union select 'b' order by 1;
select 'a' as x union all select null union all select 'c' order by 1 nulls first;
select 'p' || 'q', 'p' || 1, 1 || 'q';
select 'r' || 's', 'r' || 2, 2 || 's';
select case 1 when 1 then 'one' else 'other' end, coalesce(null, 'x'), nullif('a', 'b');
select case 2 when 1 then 'one' else 'other' end, coalesce(null, 'y'), nullif('c', 'c');
select 10 / 5;
select 10 / 0;
select 'a' 'b';
select 'a'
'b';
select 'c'
'd';
select $$1$$, $a$'2'$a$, 3;
select U&'d\0061t', B'101', X'1F', N'n', 4;
select U&'d!0061t' uescape '!', 4;
select /* 1 */ 1 -- 2
, 3;
select /* 1 */ 7 -- 2
, 8;
select array[1, 2], array['a', 'b'], '{1,2}'::int[], row(1, 'a');
select array[3, 4], array['c', 'd'], '{3,4}'::int[], row(2, 'b');
select extract(year from timestamp '2024-05-06'), date_part('month', timestamp '2024-05-06');
select extract(year from timestamp '2025-07-08'), date_part('day', timestamp '2025-07-08');
select * from generate_series(1, 3) g where g > 1;
select * from generate_series(2, 5) g where g > 3;
select * from (values (1, 'a'), (2, 'b')) v(n, s) where n = 2;
select * from (values (3, 'c'), (4, 'd')) v(n, s) where n = 3;
select count(*) filter (where id > 1), max(id + 1) from item having count(*) > 1;
select count(*) filter (where id > 2), max(id + 2) from item having count(*) > 9;
select id, sum(id) over (order by id rows 1 preceding) from item where id > 1;
select id, sum(id) over (order by id rows 2 preceding) from item where id > 0;
update item set price = price + 1, name = 'new' where id = 1 returning name, price;
update item set price = price + -2, name = 'newer' where id = 2 returning name, price;
update item set code = 'long' where id = 1;
update item set code = 'ok' where id = 1 returning code;
delete from item where id = 5 returning id;
delete from item where id = 4 returning id;
select id from item where id = 4;
create domain small as int check (value < 10);
create table d (v small, w text default 'w');
insert into d values (5);
insert into d values (50);
insert into d values ('6', 'seven') returning *;
select 'abc' = 'abc', 'abc' < 'abd';
select 'x' = 'y', 'b' < 'a';
select '1'::int + 1, '5'::smallint, cast('7' as bigint);
select '2'::int + 2, '70000'::smallint, cast('8' as bigint);
select '2'::int + 2, '6'::smallint, cast('8' as bigint);
select to_char(1234.5, '9999.99'), substr('hello', 2, 3), repeat('ab', 2);
select to_char(9876.5, '9999.9'), substr('world', 1, 4), repeat('c', 3);
select '{"a": 1}'::jsonb -> 'a', '{"a": 1}'::jsonb @> '{"a": 1}';
select '{"b": 2}'::jsonb -> 'c', '{"b": 2}'::jsonb @> '{"a": 1}';
begin;
insert into d values (1, 'in a block');
insert into d values (100, 'refused');
insert into d values (2, 'after the error');
rollback;
alter table d add x int default 3;
insert into d values (7, 'more', 8) returning *;
alter table d drop w;
insert into d values (7, 8) returning *;
insert into d values (7, 'eight') returning *;
select v from d where x = 3;
select v from d where x = 8;
drop table d;
select v from d where x = 8;
-- Long lists of rows that differ only in their literals.
create table many (id int primary key, big bigint default 7, name text, price numeric(6, 2), n serial, made date);
select 'insert into many (id, name, price) values ' || string_agg(format('(%s, %L, %s.25)', i, 'it''s ' || i, i), ',' order by i) || ' ;'
    from generate_series(1, 200) i \gexec
select 'insert into many (id, name, price, made, big) values' || string_agg(format('( %s , null, -%s.5, ''2024-01-01'', default)', i, i), ', ' order by i)
    from generate_series(201, 300) i \gexec
select 'insert into many (id, name, price, made, big) values' || string_agg(format('( %s , null, -%s.5, ''2024-02-01'', default)', i, i), ', ' order by i)
    from generate_series(301, 450) i \gexec
select count(*), sum(id), sum(price), min(name), max(name), sum(big), sum(n), min(made), max(made), count(name) from many;
select * from many where id in (1, 2, 3, 199, 200, 201, 202, 203, 300, 450) order by id;
-- One row of another form, and errors that have a place in the text.
select 'insert into many (id, name) values ' || string_agg(format('(%s, ''%s'')', case i when 80 then '3000000000' else i::text end, i), ',' order by i)
    from generate_series(1001, 1100) i \gexec
select 'insert into many (id, name) values ' || string_agg(format('(%s, ''%s'')', case i when 1080 then '3000000000' else i::text end, i), ',' order by i)
    from generate_series(1001, 1100) i \gexec
select 'insert into many (id, made) values ' || string_agg(format('(%s, ''%s'')', i, case i when 1180 then 'x' else '2024-01-01' end), ',' order by i)
    from generate_series(1101, 1200) i \gexec
select 'insert into many (id, name) values ' || string_agg(format('(%s, ''%s'')', i % 150 + 2000, i), ',' order by i)
    from generate_series(1101, 1300) i \gexec
select 'insert into many (id, name) values ' || string_agg(format('(%s, ''%s'')', i % 150 + 2000, i), ',' order by i) || ' on conflict do nothing'
    from generate_series(1101, 1300) i \gexec
select 'insert into many (id, name) values ' || string_agg(format('(%s, (select ''%s''::text))', i, i), ',' order by i)
    from generate_series(3001, 3100) i \gexec
select count(*), sum(id), count(distinct name), sum(n) from many;
drop table many;
-- Operations over literals alone fail without rows.
create table e (a smallint primary key, n numeric(5, 2), v varchar(3), i int);
select * from e where a = 7::smallint;
select * from e where a = 70000::smallint;
select * from e where a = 8::smallint;
update e set n = 999.994 where a = 1;
update e set n = 999.995 where a = 1;
update e set v = 'abc ' where a = 1;
update e set v = 'abcd' where a = 1;
update e set i = 6 / 3 where a = 1;
update e set i = 6 / 0 where a = 1;
update e set i = 2 * (1 - 1) where a = 1;
update e set i = 2 * (2147483647 + 1) where a = 1;
insert into e values (1, 1, 'abc') on conflict (a) do update set v = 'cde';
insert into e values (2, 1, 'abc') on conflict (a) do update set v = 'cdef';
insert into e values (1, 1, 'abc') on conflict (a) do update set v = 'cdef';
insert into e values (1, 1, 'abc') on conflict (a) do update set v = 'fgh';
select case when a > 0::smallint then 1 / 1 else 1 / 1 end from e where a = 9;
select case when a > 0::smallint then 1 / 1 else 1 / 0 end from e where a = 9;
select case when 1 = 1 then 1 / 1 else 1 / 1 end from e where a = 9;
select case when 1 = 1 then 1 / 1 else 1 / 0 end from e where a = 9;
select case when 1 = 2 then 1 / 1 else 1 / 0 end from e where a = 9;
select * from e where a = 9 and i = length('abc') + 1;
select * from e where a = 9 and v = 'x'::varchar(2);
select * from e where a = 9 and i = ('1' || '2')::int;
select * from e where a = 9 and i = ('1' || 'x')::int;
select * from e order by a;
drop table e;
-- What is not needed is not computed.
select coalesce(1, 1 / 0), coalesce(1, 1 / 1);
select case when 1 = 1 then 1 else 1 / 0 end, nullif(2 / 1, 2);
select case 2 when 1 + 1 then 'two' when 1 / 0 then 'none' end;
select case 2 when 1 + 2 then 'two' when 1 / 0 then 'none' end;
select case 2 when 1 + 2 then 'two' when 1 / 1 then 'none' end;
