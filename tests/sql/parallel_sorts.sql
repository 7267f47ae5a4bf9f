-- Sorts by several threads, and sorts that keep their first rows and tell the scan below which rows are behind them.
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 4;
create table calls (id int primary key, phone text collate "C", nick text collate "C", at date, cost numeric(8, 2), len bigint, tag uuid);
insert into calls
select i, '+49 ' || lpad((i * 48271::bigint % 2147483647 % 1000003)::text, 8, '0'), case when i % 9 = 0 then null else 'nick ' || i * 7919 % 50021 end,
    date '2020-01-01' + i / 50, nullif((i * 31 % 9973) / 4.0, 3), i * 7919::bigint % 100003 * 1000000007, md5(i::text)::uuid
from generate_series(1, 70000) i;
analyze calls;
checkpoint;
update calls set phone = '+50 ' || id where id % 10007 = 0;
update calls set len = null, nick = null where id % 997 = 3;
delete from calls where id % 41 = 0;
insert into calls values (80001, '+99', 'zz', '2030-01-01', 1, -1, null), (80002, null, null, null, null, null, null);
-- First rows.
select id, phone, nick from calls order by phone desc, id limit 7;
select id, phone from calls order by phone, id limit 7;
select id, phone from calls order by phone desc nulls last, id offset 3 limit 5;
select id, phone from calls order by phone nulls first, id limit 3;
select id, nick from calls order by nick, id limit 4;
select id, nick from calls order by nick desc, id limit 4;
select id, nick from calls order by nick desc nulls last, id desc limit 4;
select id, nick from calls order by nick desc, id offset 8000 limit 4;
select id, nick from calls order by nick nulls first, id desc offset 8000 limit 4;
select id, len from calls order by len, id limit 5;
select id, len from calls order by len desc nulls last, id limit 5;
select id, len from calls order by len nulls first, id offset 60 limit 20;
select id, at from calls order by at desc nulls last, id limit 5;
select id, at from calls order by at, id offset 49 limit 3;
select id, cost from calls order by cost desc nulls last, id limit 3;
select id, tag from calls order by tag limit 3;
select id, tag from calls where len > 50000000350000 order by tag desc nulls last limit 3;
select id, phone from calls where nick like 'nick 1%' order by phone, id limit 3;
select id from calls order by phone limit 0;
select id from (select id, phone from calls order by phone desc nulls last limit 100) s order by id limit 3;
select count(*), min(id), max(id) from (select id from calls order by len nulls last, id limit 4000) s;
select count(*), min(id), max(id) from (select id from calls order by len nulls last, id limit 5000) s;
select c.id, (select phone from calls d where d.id > c.id order by d.phone limit 1) from calls c order by c.id limit 3;
-- Rows that are left out have no say, but the values that are computed of all rows have.
select 10 / (id - 60000) from calls order by id limit 1;
select id from calls where 10 / (id - 60000) < 0 order by phone, id limit 1;
prepare first_rows (int, int) as select id, phone from calls order by phone desc nulls last, id limit $1 offset $2;
execute first_rows (2, 0);
execute first_rows (2, 3);
execute first_rows (0, 0);
select count(*) from (select id from calls order by phone limit null) s;
-- Rows of this transaction count at once.
begin;
insert into calls values (80003, '+98', 'zy', null, null, null, null);
delete from calls where id = 80001;
select id, phone from calls order by phone desc nulls last, id limit 2;
rollback;
-- All rows.
select count(*), md5(string_agg(id::text, ',')) from (select id from calls order by phone, id) s;
select count(*), md5(string_agg(id::text, ',')) from (select id from calls order by nick desc, at, id) s;
select count(*), md5(string_agg(id::text, ',')) from (select id from calls order by len, cost desc, id) s;
select id, rank() over (order by len desc nulls last) from calls order by 2, 1 limit 3;
-- In files.
set work_mem = '64kB';
select count(*), md5(string_agg(id::text, ',')) from (select id, phone from calls order by phone, id) s;
select count(*), md5(string_agg(phone, ',')) from (select phone, nick from calls order by phone desc nulls last, id) s;
select id, nick from calls order by nick, id offset 30000 limit 3;
select id, phone, repeat(phone, 20) = '' from calls order by phone desc nulls last, id offset 2000 limit 2;
reset work_mem;
-- Counts of rows.
select count(*) from calls;
select count(*) from calls c, (values (1), (2)) v;
begin;
delete from calls where id between 100 and 200;
insert into calls (id) values (90001);
select count(*) from calls;
savepoint s;
delete from calls;
select count(*) from calls;
rollback to s;
select count(*) from calls;
rollback;
select count(*) from calls;
-- Least and greatest values.
select min(id), max(id), min(phone), max(phone), min(nick), max(nick), min(at), max(at), min(len), max(len) from calls;
select min(id) from calls where id > 5;
select max(id), count(*) from calls;
select max(cost), min(tag::text) from calls;
select max(phone), max(phone) filter (where id < 9) from calls;
begin;
delete from calls where id > 80000 or id < 10;
select min(id), max(id), max(phone), min(at), max(at) from calls;
rollback;
create table extremes as select i as id, case when i > 70000 then repeat('z', i % 40) end as t, -i::bigint as b from generate_series(1, 140000) i;
select min(id), max(id), min(t), max(t), min(b), max(b) from extremes;
update extremes set id = -7, t = 'a', b = 8 where id = 100;
select min(id), max(id), min(t), max(t), min(b), max(b) from extremes;
alter table extremes add column late int default 5, add column null_always text;
select min(late), max(late), max(null_always), min(id) from extremes;
drop table extremes;
truncate calls;
select count(*), max(id), min(phone) from calls;
select max(id), min(phone) from calls;
drop table calls;
