-- Grouped columns that keys of tables determine.
create table nations (id int primary key, name text not null, region text);
create table customers (id int primary key, name text, nation int, balance numeric(10,2), code text not null unique, loose text unique);
create table bought (customer int, part int, line int not null, price numeric(10,2), discount numeric(4,2), primary key (customer, part, line));
insert into nations select i, 'nation ' || i, case when i % 4 > 0 then 'r' || i % 2 end from generate_series(1, 7) i;
insert into customers select i, 'c' || i % 5, case when i % 9 > 0 then i % 8 end, i % 6, 'k' || i, case when i % 3 > 0 then 'l' || i end
    from generate_series(1, 40) i;
insert into bought select i % 47, i % 13, i, i * 1.25, (i % 7) / 100.0 from generate_series(1, 600) i;

-- All columns follow the key; those of another table its key.
select c.id, c.name, c.balance, c.code, count(*), sum(b.price) from customers c join bought b on b.customer = c.id
    group by c.id, c.name, c.balance, c.code order by 1 limit 7;
select c.id, n.name, c.nation, n.region, count(*) from customers c, nations n, bought b where b.customer = c.id and c.nation = n.id
    group by n.name, c.id, c.nation, n.region order by 1 limit 9;
select n.name, b.customer, sum(price) from customers c, nations n, bought b where b.customer = c.id and c.nation = n.id and c.id < 5
    group by n.name, b.customer order by 2;
-- Without the key in GROUP BY.
select c.id, c.name, c.loose, max(price) from customers c join bought b on b.customer = c.id group by c.id order by c.id limit 3;
-- A unique column that is never NULL is a key, one that may be is none.
select code, name, count(*) from customers join bought on customer = id group by code, name order by code limit 4;
select loose, name, count(*) from customers group by loose, name order by loose nulls first, name limit 8;
-- Some columns of a key.
select customer, part, count(*), min(discount) from bought group by customer, part order by 1, 2 limit 4;
select customer, part, line, price, discount from bought group by 1, 2, 3, 4, 5 order by 1, 2, 3 limit 3;
-- Rows that outer joins extend.
select c.id, c.name, n.id, n.name, count(*) from customers c left join nations n on n.id = c.nation where c.id < 20
    group by c.id, c.name, n.id, n.name order by c.id;
select n.id, n.name, n.region, count(*), count(c.id) from customers c full join nations n on n.id = c.nation
    group by n.id, n.name, n.region order by 1;
select n.id, n.name, c.nation, count(*) from customers c full join nations n on n.id = c.nation group by n.id, n.name, c.nation order by 1, 3;
select c.nation, n.name, count(*) from nations n right join customers c on n.id = c.nation group by c.nation, n.name order by 1;
-- An equality that does not hold for all rows.
select c.nation, n.name, count(*) from customers c left join nations n on n.id = c.nation and n.region = 'r1' group by 1, 2 order by 1, 2;
select c.nation, n.name, count(*) from customers c, nations n where n.id = c.nation or n.id = 1 group by 1, 2 order by 1, 2;
select c.nation, n.name, count(*) from customers c, nations n where n.id = c.nation + 0 group by 1, 2 order by 1, 2;
-- Equal values that look different.
create table scales (n numeric primary key, note text);
create table uses (n numeric);
insert into scales values (1, 'one'), (2.50, 'two and a half');
insert into uses values (1.0), (1.00), (1), (2.5), (3);
select note, count(*) from scales s join uses u on s.n = u.n group by s.n, note order by 1;
select note, count(*) from scales s join uses u on s.n = u.n group by u.n, note order by 1;
select u.n = 1, note, count(*) from scales s right join uses u on s.n = u.n group by u.n, note order by 1, 2;
-- Grouping sets: each has columns of its own.
select c.id, c.name, n.name, count(*), grouping(c.id, c.name, n.name) from customers c join nations n on n.id = c.nation where c.id < 9
    group by grouping sets ((c.id, c.name, n.name), (c.name, n.name), (n.name), (c.id)) order by 5, 1, 2, 3;
select c.id, c.code, count(*) from customers c where id < 4 group by rollup (c.id, c.code) order by 1 nulls last, 2 nulls last;
-- DISTINCT arguments.
select n.name, count(distinct c.id), sum(distinct c.id) from customers c join nations n on n.id = c.nation group by n.name order by 1;
select n.id, n.name, count(distinct c.name) from customers c join nations n on n.id = c.nation group by n.id, n.name order by 1;
select c.id, c.name, string_agg(b.part::text, ',' order by b.part desc) from customers c join bought b on b.customer = c.id
    where c.id < 4 group by c.id, c.name order by c.id;
-- Computed groups stay as they are.
select c.id, upper(c.name), c.id % 3, count(*) from customers c group by c.id, upper(c.name), c.id % 3 order by 1 limit 4;
-- Children may repeat their parent's keys.
create table parents (id int primary key, name text);
create table children () inherits (parents);
insert into parents values (1, 'a');
insert into children values (1, 'b'), (2, 'c');
select id, name, count(*) from parents group by id, name order by 1, 2;
select id, name, count(*) from only parents group by id, name order by 1, 2;
-- Partitions do not.
create table parts (id int, name text, primary key (id)) partition by range (id);
create table parts_1 partition of parts for values from (0) to (10);
create table parts_2 partition of parts for values from (10) to (20);
insert into parts select i, 'p' || i from generate_series(1, 19) i;
select id, name, count(*) from parts group by id, name order by 1 limit 12;
-- A key that may be broken for a while.
create table late (id int primary key deferrable initially deferred, name text);
begin;
insert into late values (1, 'a'), (1, 'b');
select id, name, count(*) from late group by id, name order by 1, 2;
rollback;
-- The same table twice, and sub-queries.
select a.id, b.id, a.name, b.name from customers a, customers b where a.id = b.nation and b.id < 6 group by 1, 2, 3, 4 order by 2;
select id, name, (select count(*) from bought b where b.customer = c.id and length(c.name) > 1) from customers c where id < 4
    group by id, name order by id;
select q.id, q.name, count(*) from (select id, name from customers where id < 3) q join bought on customer = q.id group by 1, 2 order by 1;
select * from (select id, name, count(*) from nations group by id, name) n (id, name, n) join customers c on c.nation = n.id and n.name = 'nation 3'
    where c.id < 12 order by c.id;
