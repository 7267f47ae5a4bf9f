-- Subqueries that refer to nothing around them, as bounds of indexes and as lists; min and max by an index.
create table sv_order (id bigint primary key, customer int, status text, created timestamp, amount numeric(10, 2));
insert into sv_order select g, g % 97, case when g % 50 = 0 then 'new' else 'done' end, timestamp '2024-01-01' + g * interval '1 hour',
  case when g % 11 <> 0 then g % 1000 / 10.0 end from generate_series(1, 20000) g;
create index on sv_order (customer, created);
create index on sv_order (created);
create index on sv_order (amount desc nulls last);
create index on sv_order (status text_pattern_ops);
create table sv_customer (id int primary key, city text, tags text[]);
insert into sv_customer select g, 'city' || g % 9, array['a' || g % 4, 'b' || g % 5] from generate_series(0, 99) g;
create index on sv_customer using gin (tags);
analyze sv_order, sv_customer;

select id from sv_order where id = (select max(id) from sv_order);
select id from sv_order where id = (select id from sv_order where id < 0);
select count(*) from sv_order where customer = any (array(select id from sv_customer where city = 'city3'));
select count(*) from sv_order where customer = any ((select array_agg(id) from sv_customer where city = 'city3')::int[]);
select count(*) from sv_order where customer = any (array(select id::bigint from sv_customer where city = 'city3'));
select count(*) from sv_order where customer = any (array(select id from sv_customer where city = 'nowhere'));
select count(*) from sv_order where customer = any ((select null::int[]));
select count(*) from sv_order where created > (select max(created) - interval '12 hours' from sv_order);
select count(*) from sv_order where created between (select min(created) from sv_order) and (select min(created) + interval '1 day' from sv_order);
select count(*) from sv_order where customer = (select 5) and created >= (select timestamp '2025-01-01');
select count(*) from sv_order where status like (select 'n%');
select count(*) from sv_customer where tags @> (select array['a1', 'b1']);
select count(*) from sv_customer where tags && array(select 'a' || g from generate_series(1, 2) g);
-- A subquery runs once, even if it is volatile.
select count(*) <= 1 from sv_order where id = (select 1 + (random() * 10000)::int);
-- More than one row; an error in the subquery.
select id from sv_order where id = (select id from sv_customer);
select id from sv_order where id = (select 1 / (id - id) from sv_customer where id = 1);
-- Depends on a row around it.
select c.id, (select count(*) from sv_order o where o.customer = (select c.id) and o.created < '2024-02-01') from sv_customer c where c.id < 3 order by 1;
select c.id, (select o.id from sv_order o where o.id = (select min(i.id) from sv_order i where i.customer = c.id)) from sv_customer c where c.id < 3 order by 1;
select count(*) from sv_order o where o.id = (select max(i.id) from sv_order i where i.customer = o.customer);
-- Within a join, an outer join, WITH, a union.
select count(*), sum(o.id) from sv_customer c join sv_order o on o.customer = c.id and o.created > (select timestamp '2026-01-01') where c.city = 'city1';
select count(*), count(o.id) from sv_customer c left join sv_order o on o.id = (select 7) and o.customer = c.id;
with w as (select max(id) as top from sv_order) select id from sv_order where id >= (select top - 2 from w) order by id;
select id from sv_order where id = (select 1) union all select id from sv_order where id = (select 2) order by 1;
-- Lists that are looked up.
select count(*) from sv_order where amount = any (array(select g / 10.0 from generate_series(1, 50) g));
select count(*) from sv_order where amount <> all (array(select g / 10.0 from generate_series(1, 50) g));
select count(*) from sv_order where amount <> all (array(select case when g <> 7 then g / 10.0 end from generate_series(1, 50) g));
select count(*) from sv_order where (customer + 0) = any (array(select g from generate_series(1, 50, 2) g));
select count(*) from sv_order where (customer = any (array(select g from generate_series(90, 200) g))) is not true;
select count(*) from sv_order where status || 'x' = any (array(select 'new' || chr(100 + g) from generate_series(1, 25) g));
select count(*) from sv_order where (customer + 0)::smallint = any (array(select g::bigint from generate_series(1, 50, 2) g));
prepare sv_list(int[]) as select count(*) from sv_order where customer + 0 = any ($1);
execute sv_list('{1,2,3,4,5,6,7,8,9,10,11,12}');
execute sv_list('{1,2,3,NULL,5,6,7,8,9,10,11,12,13}');
execute sv_list('{}');
execute sv_list(null);
select count(*) from (values ('{1,2,3,4,5,6,7,8,9,10}'::int[]), ('{11,12,13,14,15,16,17,18,19,20,21}')) v(list), sv_customer c where c.id = any (v.list);
-- Changes.
begin;
update sv_order set status = 'sent' where id = (select min(id) from sv_order where status = 'new') returning id, status;
update sv_order set status = 'sent' where id = (select id from sv_order where status = 'new' order by id limit 1 for update skip locked) returning id, status;
delete from sv_order where customer = any (array(select id from sv_customer where city = 'city3')) and id < 500;
select count(*) from sv_order;
rollback;

-- min and max by an index.
select min(created), max(created) from sv_order;
select min(amount), max(amount) from sv_order;
select max(id) + 1, 'x' || min(id), count(*) from sv_order;
select max(id) + 1, 'x' || min(id) from sv_order;
select max(created) from sv_order where customer = 5;
select max(created), min(created) from sv_order where customer = 1000;
select min(amount) from sv_order where amount is null;
select max(amount) from sv_order where amount < 50 and customer <> 3;
select max(status) from sv_order;
select max(distinct id) from sv_order order by 1;
select max(id) from sv_order limit 0;
select max(id) from sv_order having max(id) > 10;
select max(id) filter (where customer = 3) from sv_order;
select max(id), max(id) from sv_order where id < (select 10);
select (select max(id) from sv_order i where i.customer = c.id) from sv_customer c where id < 3 order by id;
select * from (select max(id) as top from sv_order) s where top > 5;
create table sv_copy as select min(id) as low, max(id) as high from sv_order;
select * from sv_copy;
insert into sv_copy select max(id), min(id) from sv_order where id > 19990;
select * from sv_copy order by low;
begin;
delete from sv_order where id > 15000 or id < 30;
select min(id), max(id), max(created) from sv_order;
delete from sv_order;
select min(id), max(id) from sv_order;
rollback;
-- DISTINCT in the order of an index.
select distinct customer from sv_order order by customer limit 3;
select distinct customer from sv_order order by customer desc limit 3 offset 2;
select distinct customer, created from sv_order order by customer, created limit 3;
select distinct customer, created from sv_order order by customer desc, created desc limit 3;
select distinct amount from sv_order order by amount desc nulls last limit 3;
select distinct amount from sv_order where amount < 1 or amount is null order by amount desc limit 3;
select distinct customer from sv_order where customer > 50 order by customer limit 3;
select distinct customer + 1 as c from sv_order order by c limit 3;
select distinct on (customer) customer, created from sv_order order by customer, created desc limit 3;
select distinct customer from sv_order order by customer fetch first 2 rows with ties;

create table sv_real (x float8);
insert into sv_real select g from generate_series(1, 2000) g;
insert into sv_real values ('nan'), ('-infinity'), (null);
create index on sv_real (x);
analyze sv_real;
select min(x), max(x) from sv_real;
create view sv_last as select max(id) as last from sv_order where status = 'new';
select * from sv_last;
create function sv_top(c int) returns timestamp language sql as 'select max(created) from sv_order where customer = c';
select sv_top(4), sv_top(-1);
drop function sv_top;
drop view sv_last;
drop table sv_order, sv_customer, sv_copy, sv_real;
