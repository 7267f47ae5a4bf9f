-- Conditions that move into subqueries, and those that must not.
create table sale (id int primary key, shop int, item text, amount numeric, day date);
insert into sale select g, g % 4, (array['x', 'y', 'z'])[1 + g % 3], g % 7, date '2026-01-01' + g % 5 from generate_series(1, 48) g;
insert into sale values (100, null, 'x', 1.0, null), (101, null, 'y', 1.00, null);
-- Windows: whole partitions, or the rows that are counted.
select * from (select id, shop, row_number() over (partition by shop order by id desc) as n from sale) q where n <= 2 and shop = 3 order by 1;
select * from (select id, shop, row_number() over (partition by shop order by id desc) as n from sale) q where id > 45 order by 1;
select * from (select id, shop, row_number() over (partition by shop order by id) as n, sum(amount) over (partition by shop, item) as total from sale) q
    where shop = 3 and item = 'x' order by 1;
select * from (select id, shop, rank() over (partition by shop order by day) as n, count(*) over (order by id) as running from sale) q
    where shop = 3 and n = 1 order by 1;
select * from (select shop, count(*) as sales, sum(count(*)) over (partition by shop) as total from sale group by shop, item) q
    where shop = 2 and sales > 3 order by 2;
select * from (select shop, count(*) as sales, sum(shop) over (partition by count(*)) as total from sale group by shop) q where sales = 12 order by 1;
-- DISTINCT and DISTINCT ON.
select * from (select distinct on (shop) shop, id, item from sale order by shop, id) q where shop >= 2 order by 1;
select * from (select distinct on (shop) shop, id, item from sale order by shop, id) q where item = 'x' order by 1;
select * from (select distinct shop, item from sale) q where item = 'x' order by 1;
-- Set operations.
select * from (select shop, item from sale union all select id, item from sale) q where shop = 2 order by 1, 2;
select * from (select shop, item from sale union select id, item from sale) q where shop = 2 order by 1, 2;
select * from (select shop from sale intersect select id from sale) q where shop > 1 order by 1;
select * from (select id from sale except select shop from sale) q where id < 6 order by 1;
select * from (select shop from sale union all (select id from sale except select 2)) q where shop = 2 limit 1;
select * from (select shop as a, 1.5 as b from sale union all select id, shop from sale) q where b = 3 and a < 12 order by 1;
select * from (select shop, count(*) as n from sale group by shop union all select null, count(*) from sale) q where n > 12 order by 1;
-- LIMIT and OFFSET.
select * from (select id, shop from sale order by id limit 5) q where shop = 1 order by 1;
select * from (select id, shop from sale union all select id, shop from sale order by 1 offset 90) q where shop = 3 order by 1;
-- A group without rows; columns of the query around.
select * from (select 1 as one, count(*) as n from sale) q where one = 2;
select * from (select 1 as one, count(*) as n from sale where false) q where n = 0;
select * from (select grouping(shop) as g, shop, count(*) from sale group by rollup (shop)) q where shop is null order by 1;
create view by_shop as select shop, item, count(*) as n, max(id) as last from sale group by shop, item;
create view twice as select shop, item, id from sale union all select shop, item, -id from sale;
select s.id, (select max(v.n) from by_shop v where v.shop = s.shop), (select count(*) from twice t where t.shop = s.shop and t.id < s.id) from sale s where s.id < 6 order by 1;
select s.id from sale s where exists (select from by_shop v where v.shop = s.shop and v.item = s.item and v.last = s.id) order by 1;
select s.id, l.* from sale s, lateral (select v.item, v.n from by_shop v where v.shop = s.shop order by 1 limit 1) l where s.id < 4 order by 1;
-- Sets, and functions that are volatile.
select * from (select shop, generate_series(1, 2) as n from sale where id < 9) q where shop = 1 order by 1, 2;
select * from (select shop, generate_series(1, 2) as n from sale where id < 9) q where n = 2 and shop < 2 order by 1;
create sequence number;
select count(*) from (select shop, nextval('number') as n from sale) q where shop = 1;
select last_value from number;
select count(*) from (select shop, nextval('number') as n, row_number() over (partition by shop) from sale) q where n > 0 and shop = 1;
-- Errors of rows that a condition leaves out.
select * from (select shop, 1 / (shop - 3) as x, row_number() over (partition by shop order by id) as n from sale) q where shop = 1 and n = 1;
