-- Aggregates that several threads collect: each takes parts of the table, and gives what one thread would.
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 4;
create table sales (id int primary key, shop int, item text, price numeric(10, 2), day date, note varchar(20), weight float8, qty smallint);
insert into sales
select i, i % 37, 'item ' || i % 11, nullif((i * 7919 % 100000) / 100.0, 5), date '2026-01-01' + i % 90, case when i % 5 = 0 then null else 'n' || i % 3 end,
    i / 3.0, i % 1000
from generate_series(1, 60000) i;
create table shops (shop int primary key, city text);
insert into shops select i, 'city ' || i % 4 from generate_series(0, 40) i;
analyze sales;
analyze shops;
checkpoint;
-- Versions in memory, and rows that are gone.
update sales set price = price + 1 where id % 100 = 3;
delete from sales where id % 41 = 0;
insert into sales values (70001, 3, 'new', 1.5, '2027-01-01', 'late', 1, 1), (70002, null, null, null, null, null, null, null);
select count(*), count(price), sum(price), avg(price), min(price), max(price), sum(qty), avg(qty), min(item), max(day) from sales;
select count(*) from sales where price > 500 and note = 'n1';
select sum(id), avg(id), bool_and(id > 0), bool_or(id > 70000), bit_xor(id), bit_or(qty), variance(qty), stddev_pop(price) from sales;
select shop, count(*), sum(price), avg(price), min(note), max(item) from sales group by shop order by shop;
select shop, item, count(*), sum(qty) from sales where id < 9000 group by 1, 2 order by 1, 2 limit 50;
select note, day, count(*) from sales group by 1, 2 having count(*) > 200 order by 1, 2;
select id % 5000 as k, count(*), sum(price) from sales group by 1 order by 2 desc, 1 limit 20;
-- What depends on the order of rows, and what must be distinct, stays with one thread.
select sum(weight), avg(weight) from sales where id <= 3;
select count(distinct shop), count(distinct item) from sales;
select string_agg(item, ',' order by id) from sales where id < 6;
-- Joins below: the tables are built once.
select city, count(*), sum(price) from sales join shops using (shop) group by city order by city;
select city, count(*), sum(price) from sales left join shops s on s.shop = sales.shop and s.shop < 20 group by city order by city;
select count(*), sum(price) from sales where exists (select from shops where shops.shop = sales.shop and city = 'city 1');
select count(*), sum(price) from sales where not exists (select from shops where shops.shop = sales.shop and city = 'city 1');
select count(*), sum(price) from sales where shop not in (select shop from shops where city = 'city 2');
select a.city, b.city, count(*) from sales join shops a on a.shop = sales.shop join shops b on b.shop = sales.qty % 41 group by 1, 2 order by 1, 2;
select count(*) from sales join shops on false;
select city, total from shops join (select shop, sum(price) as total from sales group by shop) t using (shop) order by total, city limit 5;
-- The built side is large, and read by several threads.
create table notes (shop int, note text, id int primary key);
insert into notes select i % 37, 'note ' || i, i * 3 from generate_series(1, 3000) i;
insert into notes values (null, 'none', -1), (99, 'nowhere', -2);
analyze notes;
select count(*), sum(s.price), min(n.note) from notes n join sales s on s.id = n.id;
select count(*), sum(s.price) from notes n left join sales s on s.id = n.id and s.qty < 500;
select count(*), sum(s.price), count(n.id) from notes n right join sales s on s.id = n.id;
select count(*), sum(s.price), count(n.id) from notes n full join sales s on s.id = n.id;
select count(*), max(n.id) from notes n where exists (select from sales s where s.id = n.id and s.qty > 10);
select count(*), max(n.id) from notes n where not exists (select from sales s where s.id = n.id and s.qty > 10);
select count(*), max(s.id) from sales s where exists (select from notes n where s.id = n.id);
select count(*), max(s.id) from sales s where not exists (select from notes n where s.id = n.id);
select city, count(*), count(n.id), sum(s.qty) from shops left join sales s using (shop) left join notes n on n.id = s.id group by city order by city;
select count(*), sum(a.qty), count(b.id) from sales a full join sales b on a.id = b.id + 20000 left join notes n on n.id = a.id;
-- Tables that are split, and groups that go to disk.
set work_mem = '64kB';
select count(*), sum(a.price) from sales a join sales b on a.id = b.id;
select count(*), sum(n), max(n) from (select id, count(*) as n from sales group by id) g;
select count(*), sum(s.price), count(n.id) from notes n full join sales s on s.id = n.id;
reset work_mem;
-- Groups of few rows that do not fit the memory: the threads split the rows by their keys before they aggregate them.
create table many (name text, part char(20), n int);
insert into many select 'name ' || i, case when i % 3 > 0 then 'part ' || i % 1000 end, i % 977 from generate_series(1, 60000) i;
insert into many select 'name ' || i, 'part ' || i % 1000 || '  ', 1 from generate_series(1, 60000, 7) i;
insert into many values (null, null, null), (null, null, 3), ('a name that does not fit a word', 'nor this part of it', 5);
analyze many;
checkpoint;
set work_mem = '64kB';
select count(*), count(name), sum(rows), max(rows), sum(total), min(name), max(part)
from (select name, part, count(*) as rows, sum(n) as total from many group by name, part) g;
set work_mem = '1MB';
select count(*), count(name), sum(rows), max(rows), sum(total), min(name), max(part)
from (select name, part, count(*) as rows, sum(n) as total from many group by name, part) g;
select name, count(*), sum(n), min(part) from many group by name having count(*) > 2 or name is null or sum(n) = 977 order by name;
select name, part, sum(n) from many group by name, part order by name desc, part limit 4;
select name, 1 / (max(n) - 976) from many group by name order by name limit 1;
reset work_mem;
select part, count(distinct name) from many group by part order by 2 desc, 1 limit 5;
-- An error in any thread ends the statement, and the next one runs.
select sum(1 / (id - 30000)) from sales;
select count(*) from sales;
-- Own changes are seen by all threads.
begin;
insert into sales select i, 99, 'mine', 1, null, null, null, 1 from generate_series(80001, 85000) i;
delete from sales where id between 100 and 5000;
select shop, count(*), sum(price) from sales where shop in (99, 5) group by shop order by shop;
declare c cursor for select shop, count(*) from sales group by shop order by shop;
fetch 2 from c;
rollback;
-- Correlated, in the SELECT list, with parameters.
select city, (select count(*) from sales where sales.shop = shops.shop) from shops where shop < 6 order by shop;
prepare p(int) as select count(*), sum(price) from sales where qty < $1;
execute p(100);
execute p(null);
select * from (select count(*) from sales) a, (select max(price) from sales) b;
set max_parallel_workers = 0;
select count(*), sum(price) from sales;
reset max_parallel_workers;
set max_parallel_workers_per_gather = 0;
select count(*), sum(price) from sales;
