-- Sub-queries among the columns of a derived table, which move to where the columns are read.
create table owner (id int primary key, name text);
create table thing (id int primary key, owner int, size int);
insert into owner select n, 'owner ' || n from generate_series(1, 5) n;
insert into thing select n, n % 4 + 1, n * 10 from generate_series(1, 20) n;
-- Read once, twice, never, as a whole row.
select d.id, d.things from (select o.id, (select count(*) from thing t where t.owner = o.id) as things from owner o) d order by 1;
select d.id, d.things, d.things + 1 from (select o.id, (select count(*) from thing t where t.owner = o.id) as things from owner o) d order by 1;
select d.id from (select o.id, (select count(*) from thing t where t.owner = o.id) as things from owner o) d order by 1;
select d from (select o.id, (select count(*) from thing t where t.owner = o.id) as things from owner o) d order by d.id;
select d.id from (select o.id, (select count(*) from thing t where t.owner = o.id) as things from owner o) d where d.things = 0;
-- Joined: in several rows, in none, and beside the outer side of a join.
select d.things, t.id from (select o.id, (select max(size) from thing t where t.owner = o.id) as things from owner o) d
    join thing t on t.id between d.id * 3 and d.id * 3 + 1 order by 2;
select d.things, t.id from thing t left join (select o.id, (select coalesce(max(size), -1) from thing t where t.owner = o.id) as things from owner o) d
    on d.id = t.id where t.id > 3 and t.id < 8 order by 2;
select d.things, t.id from (select o.id, (select max(size) from thing t where t.owner = o.id) as things from owner o) d
    left join thing t on t.id = d.id + 18 order by 2, 1;
-- The column is read in a query inside, whose levels it crosses.
select o2.id, (select d.n from (select o.id, (select count(*) from thing t where t.owner = o.id and t.size > o2.id * 50) as n from owner o) d
    where d.id = o2.id) from owner o2 order by 1;
select d.id, (select s.x from (select 1 as one) one, lateral (select d.n as x) s) from
    (select o.id, (select count(*) from thing t where t.owner = o.id) as n from owner o) d order by 1;
-- It reads a WITH query, from here and from a query inside.
with w as materialized (select owner, sum(size) as size from thing group by owner)
select d.id, d.size from (select o.id, (select w.size from w where w.owner = o.id) as size from owner o) d order by 1;
with w as materialized (select owner, sum(size) as size from thing group by owner)
select d.id, (select max(x) from (select d.size as x union all select 300) u) from
    (select o.id, (select w.size from w where w.owner = o.id) as size from owner o) d order by 1;
with w as materialized (select owner, sum(size) as size from thing group by owner)
select o2.id, (select array_agg(v order by v) from
    (select (select e.size from (select 1) one) as v from
        (select o.id, (select w.size from w where w.owner = o.id) as size from owner o where o.id <= o2.id) e) f) from owner o2 order by 1;
-- Grouped, sorted, distinct, numbered and limited by it.
select d.n, count(*) from (select o.id, (select count(*) from thing t where t.owner = o.id) as n from owner o) d group by d.n order by 1;
select distinct d.n from (select o.id, (select count(*) from thing t where t.owner = o.id) as n from owner o) d order by 1;
select d.id, rank() over (order by d.n) from (select o.id, (select count(*) from thing t where t.owner = o.id) as n from owner o) d order by 2, 1;
select d.id from (select o.id, (select max(size) from thing t where t.owner = o.id) as n from owner o) d order by d.n desc nulls last limit 2;
-- A view of such columns; EXISTS, IN and ARRAY among them; rows that are changed by them.
create view counted as select o.id, exists (select from thing t where t.owner = o.id) as has, o.id in (select owner from thing where size > 170) as large,
    array(select t.id from thing t where t.owner = o.id order by 1) as ids from owner o;
select c.*, t.size from counted c join thing t on t.id = c.id order by 1;
select id from counted where not has;
update thing set size = c.id from counted c where c.id = thing.owner and c.large and thing.id < 5;
select id, size from thing where id < 5 order by 1;
select c.id, c.has from counted c where c.id = 2 for update;
-- A recursive query whose arm reads each column once.
with recursive tree as (
    select d.id, d.total from (select o.id, (select sum(size) from thing t where t.owner = o.id) as total from owner o) d where d.id = 1
    union all
    select d.id, d.total from (select o.id, (select sum(size) from thing t where t.owner = o.id) as total from owner o) d, tree
        where d.id = tree.id + 1 and tree.total > 0
) select * from tree order by 1;
