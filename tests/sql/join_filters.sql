-- Joins whose built rows filter the scans of the other side: integers of every width, NULLs, negative keys, far apart keys.
create table facts (id int primary key, k2 smallint, k4 int, k8 bigint, t text, n numeric(10, 2));
insert into facts
select i, (i % 500) - 250, nullif(i % 1000, 7), (i % 100)::bigint * 5000000000 - 9, 'fact ' || i, i / 4.0
from generate_series(1, 20000) i;
create table dims (k int, k8 bigint, name text);
insert into dims select i, i::bigint * 5000000000 - 9, 'dim ' || i from generate_series(-3, 12) i;
insert into dims values (null, null, 'none'), (5, 16, 'again');
analyze facts;
analyze dims;
checkpoint;
insert into facts values (20001, 5, 5, 16, 'young', 0.25), (20002, null, null, null, 'null', null);
delete from facts where id % 17 = 0;
update facts set t = 'changed' where id % 1001 = 5;
select count(*), sum(id), sum(n), min(t), max(t) from facts join dims on k4 = k;
select count(*), sum(id), sum(n), min(t), max(t) from facts join dims on k2 = k;
select count(*), sum(id), sum(n) from facts join dims on facts.k8 = dims.k8;
select count(*), sum(id) from facts join dims on k2 = k and facts.k8 = dims.k8;
select count(*), sum(id), min(t) from facts where k4 in (select k from dims where k > 2);
select count(*), sum(id), min(t) from facts where not exists (select from dims where k = k4);
select count(*), count(k), sum(id) from facts left join dims on k4 = k;
select count(*), count(k), sum(id) from facts right join dims on k4 = k and id < 1000;
select count(*), count(k), sum(id) from facts full join dims on k4 = k;
select count(*) from facts join dims on k4 = k where name = 'nobody';
select name, count(*), sum(n) from facts join dims on k4 = k where t like 'fact 1%' group by name order by name;
-- Keys that are too far apart for a filter.
create table far (k bigint);
insert into far values (-9223372036854775808), (9223372036854775807), (16), (null);
select count(*), sum(id) from facts join far on facts.k8 = far.k;
-- Through aggregates, DISTINCT, sub-queries, UNION ALL, other joins.
select name, total from dims join (select k4, sum(n) as total from facts group by k4) s on s.k4 = k where k < 3 order by 1, 2;
select name, s.k2 from dims join (select distinct k2 from facts) s on s.k2 = k order by 1, 2;
select name, count(*) from dims join (select k4 as a from facts where id < 5000 union all select k2 from facts) s on s.a = k group by 1 order by 1;
select d.name, count(*), sum(b.n) from facts a join facts b on a.k4 = b.k2 join dims d on d.k = a.k4 where a.id < 3000 group by 1 order by 1;
select d.name, count(*) from facts a left join facts b on b.id = a.k4 join dims d on d.k = a.k4 group by 1 order by 1;
select d.name, count(b.id) from facts a left join facts b on b.id = a.k4 join dims d on d.k = b.k4 group by 1 order by 1;
-- The small side is asked for rows with and without a partner: it is built.
select * from dims where exists (select from facts where k4 = k) order by k, name;
select * from dims where not exists (select from facts where k4 = k) order by k, name;
select * from dims d where exists (select from facts f where f.k4 = d.k and f.id > 19000 + d.k) order by k, name;
select * from dims d where not exists (select from facts f where f.k4 = d.k and f.id > 19990 + d.k) order by k, name;
select count(*) from dims d where k in (select k2 from facts) and k not in (select k4 from facts where k4 > 3);
-- Errors of conditions on the scanned table come whatever the join needs; the rows before them do.
select count(*) from facts join dims on k4 = k where 1 / (id - 2) < 5;
-- In a sub-plan that runs again.
select k, (select count(*) from facts f join far on f.k8 = far.k where f.k4 = d.k) from dims d order by k, name;
select k, (select count(*) from facts f join dims e on f.k4 = e.k + d.k - d.k where e.k > d.k) from dims d order by k, name;
drop table facts, dims, far;
-- Two calls of users' functions: a row at a time, and some columns are not read.
create table pairs (id int, v text);
insert into pairs values (1, 'a'), (2, 'b'), (3, 'c');
create function number_of(pairs) returns int language plpgsql as 'begin return $1.id; end';
select b.v from pairs a, pairs b where number_of(a) > number_of(b) order by 1;
select a.v, b.v from pairs a join pairs b on a.id = b.id and number_of(a) + 1 > number_of(b) order by 1;
select a.id, b.v from pairs a left join pairs b on a.id = b.id and number_of(a) < number_of(b) + a.id - 1 order by 1;
drop table pairs cascade;
