-- Hash joins whose right keys are mostly NULL, in every kind of join, with expressions as keys, in one process and in several.
create table probing (id int, k int);
create table building (id int, k int, list int[]);
insert into probing select i, case when i % 10 > 0 then i end from generate_series(1, 20000) i;
insert into building select i, case when i % 100 = 0 then i end, array[i, i + 1] from generate_series(1, 10000) i;
analyze probing;
analyze building;
set enable_nestloop = off;
set enable_mergejoin = off;
select count(*), sum(p.id), sum(b.id) from probing p join building b on p.k = b.k + 1;
select count(*), count(p.k), count(b.k), sum(b.id) from probing p left join building b on p.k = b.k + 1;
select count(*), count(p.k), count(b.k), sum(b.id) from probing p right join building b on p.k = b.k + 1;
select count(*), count(p.k), count(b.k), sum(b.id) from probing p full join building b on p.k = b.k + 1;
select count(*), sum(p.id) from probing p where exists (select from building b where b.k + 1 = p.k);
select count(*), sum(p.id) from probing p where not exists (select from building b where b.k + 1 = p.k);
select count(*), sum(p.id) from probing p where p.k not in (select b.k + 1 from building b);
select count(*), sum(p.id) from probing p where p.k not in (select b.k + 1 from building b where b.k is not null);
select count(*), sum(b.id) from building b where exists (select from probing p where p.k = b.k + 1);
select count(*), sum(b.id) from building b where not exists (select from probing p where p.k = b.k + 1);
-- elements that most arrays do not have, as drivers ask for the columns of keys
select count(*), sum(b.id), sum(n) from probing p, building b, generate_series(1, 32) n where p.k = b.list[n] and p.id = b.id + n - 1;
-- two keys, one of them NULL
select count(*), sum(b.id) from probing p join building b on p.id = b.id and p.k = b.k;
select count(*), sum(b.id) from probing p left join building b on p.id = b.id + 1 and p.k = b.k + 1;
set work_mem = '64kB';
select count(*), sum(p.id), sum(b.id) from probing p join building b on p.k = b.k + 1;
select count(*), count(p.k), count(b.k), sum(b.id) from probing p full join building b on p.k = b.k + 1;
select count(*), sum(p.id) from probing p where not exists (select from building b where b.k + 1 = p.k);
reset work_mem;
set max_parallel_workers_per_gather = 0;
select count(*), sum(p.id), sum(b.id) from probing p join building b on p.k = b.k + 1;
select count(*), count(p.k), count(b.k), sum(b.id) from probing p left join building b on p.k = b.k + 1;
drop table probing, building;
