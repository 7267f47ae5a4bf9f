-- Sorts in memory and in runs, by keys that begin alike, end where the others go on, or share nothing.
create table sort_runs (id int, k text collate "C");
insert into sort_runs select i, 'a common beginning' || case when i % 7 = 0 then '' when i % 5 = 0 then chr(1) else ' of ' || md5(i::text) end from generate_series(1, 30000) i;
set work_mem = '64kB';
select count(*), md5(string_agg(k, ',')) from (select k from sort_runs order by k) s;
select count(*), md5(string_agg(k, ',')) from (select k from sort_runs order by k desc) s;
insert into sort_runs select i, case i % 4 when 0 then null when 1 then '' when 2 then 'a common' else md5(i::text) end from generate_series(30001, 40000) i;
select count(*), md5(string_agg(coalesce(k, 'null'), ',')) from (select k from sort_runs order by k) s;
select count(*), md5(string_agg(coalesce(k, 'null'), ',')) from (select k from sort_runs order by k desc) s;
select id, k from sort_runs order by k, id offset 25000 limit 5;
set work_mem = '64MB';
select count(*), md5(string_agg(coalesce(k, 'null'), ',')) from (select k from sort_runs order by k) s;
select id, k from sort_runs order by k nulls first, id desc offset 2498 limit 5;
select k % 3, min(k), max(k), count(distinct k), md5(string_agg(k::text, ',' order by k)) from (select (id * 7919) % 10007 k from sort_runs) s group by 1 order by 1;
drop table sort_runs;
