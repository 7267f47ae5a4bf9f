-- Window functions.
create table sale (day int, shop text, amount int);
insert into sale values (1, 'a', 10), (1, 'b', 20), (2, 'a', 30), (2, 'b', 20), (3, 'a', null), (4, 'b', 5), (4, 'a', 30);
select day, shop, amount, row_number() over (order by day, shop) from sale order by day, shop;
select shop, amount, rank() over w, dense_rank() over w, percent_rank() over w, cume_dist() over w, ntile(3) over (order by amount, shop, day) from sale window w as (order by amount nulls first) order by amount nulls first, shop, day;
select shop, day, sum(amount) over (partition by shop order by day), count(*) over (partition by shop), avg(amount) over () from sale order by shop, day;
select shop, day, lag(amount) over w, lead(amount, 2, -1) over w, first_value(amount) over w, last_value(amount) over w, nth_value(amount, 2) over w from sale window w as (partition by shop order by day) order by shop, day;
select shop, day, sum(amount) over (partition by shop order by day rows between 1 preceding and 1 following) from sale order by shop, day;
select day, shop, sum(amount) over (order by day range between 1 preceding and current row) from sale order by day, shop;
select day, shop, sum(amount) over (order by day groups between 1 preceding and 1 following exclude current row) from sale order by day, shop;
select day, shop, array_agg(shop) over (order by day rows between unbounded preceding and unbounded following exclude ties) from sale order by day, shop;
select shop, count(*) filter (where amount > 15) over (partition by shop) from sale order by shop, day;
select shop, sum(sum(amount)) over (order by shop) from sale group by shop order by shop;
select * from (select shop, day, row_number() over (partition by shop order by amount desc nulls last, day) as r from sale) t where r = 1 order by shop;
select sum(amount) over (order by day desc) - amount as rest from sale order by day, shop;
select row_number() from sale;
select day from sale where row_number() over () = 1;
select sum(amount) over (rows between 1 following and 1 preceding) from sale;
select count(distinct shop) over () from sale;
select row_number() over missing from sale;
select string_agg(shop, '' order by shop) over () from sale limit 1;
select day, max(day) over (order by day rows between 2 preceding and 1 preceding) from sale where shop = 'a' order by day;

-- Offsets of frames are checked even when there is no row.
create table no_rows (a int);
select sum(a) over (order by a rows between -1 preceding and current row) from no_rows;
select sum(a) over (order by a rows between 1 preceding and null following) from no_rows;
select sum(a) over (order by a groups between 1 preceding and -1 following) from no_rows;
select sum(a) over (order by a rows between 1 preceding and 1 following) from no_rows;
drop table no_rows;
-- ntile takes its first argument that is not NULL.
SELECT id, ntile(a) OVER (ORDER BY id) FROM (VALUES (1, NULL), (2, NULL), (3, 2), (4, 7), (5, NULL), (6, 1)) v (id, a);
SELECT id, ntile(a) OVER (PARTITION BY id % 2 ORDER BY id) FROM (VALUES (1, NULL), (2, 3), (3, NULL), (4, 0), (6, 1)) v (id, a) ORDER BY 1;
