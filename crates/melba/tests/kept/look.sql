-- What all kept directories answer.
select count(*), sum(total), max(at) at time zone 'utc', count(details), sum((details->>'n')::int) from shop.orders;
select state, count(*), sum(total) from shop.orders group by state order by state;
select id, customer, state, total, tags from shop.orders where customer = 7 order by at desc limit 3;
select count(*) from shop.orders where total * 2 < 500 and state <> 'sent';
select name, since from shop.customers where name in ('customer 7', 'the last one') order by id;
select id, length(body), md5(body), length(picture), md5(picture) from shop.pages order by id limit 3;
select tableoid::regclass, count(*), sum(n) from shop.events group by 1 order by 1::text;
select * from shop.open_orders where name like 'customer 1_' order by name limit 3;
select shop.twice(21), obj_description('shop.orders'::regclass), has_table_privilege('reader', 'shop.orders', 'select'), nextval('shop.numbers') > 105;
