-- What is computed a column at a time, over enough rows that batches hold many: lists, dates beside timestamps, blanks at the end,
-- numerics of one scale and of many, choices.
create table c (i int, d date, t timestamp, b char(6), v text, n numeric(12,2), m numeric);
insert into c select g, date '2020-01-01' + g % 40, timestamp '2020-01-01' + g % 37 * interval '13 hours',
    (array['a', 'b ', 'c', 'dd', null])[1 + g % 5], (array['x', 'y ', 'y', null])[1 + g % 4], g * 1.25 - 300,
    case when g % 50 = 0 then 'NaN' when g % 41 = 0 then g * 1e20 when g % 7 = 0 then null else g / 8.0 end
    from generate_series(1, 5000) g;
insert into c values (0, null, null, null, null, null, null), (-1, 'infinity', '-infinity', '', '', 0, '-Infinity');
select count(*) from c where b in ('a', 'dd  ');
select count(*) from c where b not in ('a', 'dd');
select count(*) from c where b not in ('a', null);
select b in ('a', null), count(*) from c group by 1 order by 1;
select v not in ('y', null), count(*) from c group by 1 order by 1;
select count(*) from c where v in ('y', 'x');
select count(*) from c where i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, null);
select count(*) from c where i not in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
select count(*) from c where i = any ('{1,2,-1}') or i > all ('{4990,4991}');
select count(*) from c where i % 7 <> all ('{1,null}');
select count(*) filter (where i = any ('{}')), count(*) filter (where i <> all ('{}')) from c;
select count(*) from c where 10 / nullif(i, 0) in (1, 2, 3);
select count(*) filter (where d < t), count(*) filter (where d <= t), count(*) filter (where d = t), count(*) filter (where d <> t),
    count(*) filter (where t < d), count(*) filter (where t >= d), count(*) filter (where d > timestamp '2020-01-20 00:00:01') from c;
select count(*) filter (where b = 'b'), count(*) filter (where b <> 'b'), count(*) filter (where b < 'b'), count(*) filter (where b >= 'b '),
    count(*) filter (where b = '') from c;
select sum(n), avg(n), min(n), max(n), count(n), sum(n * n), sum(n * (1 - n / 2)), sum(n + 1), sum(1.005 - n) from c;
select sum(m), min(m), max(m), count(m), sum(case when m = 'NaN' or m = '-Infinity' then 0 else m end) from c;
select count(*) filter (where n > 5), count(*) filter (where n = 2.5), count(*) filter (where n < m), count(*) filter (where n >= 1e30) from c;
select n * 1e17, n * n * n * n * n * n, n - 1e18 from c where i in (0, 1, 300, 4999) order by i;
select case when i % 3 = 0 then n when i % 3 = 1 then 0 end as x, count(*) from c where i < 40 group by 1 order by 1;
select sum(case when b = 'a' then 1 else 0 end), sum(case when b = 'a' then n else 0 end), max(case when i > 10 then v else 'z' end) from c;
select i % 4 as g, sum(n), avg(n), min(m), count(m) from c where m is distinct from 'NaN' group by 1 order by 1;
create table c2 as select i, n, m, -n as k from c where i % 3 = 0;
select sum(c.n), sum(c2.k), count(*) from c join c2 using (n);
select sum(c.n), count(c2.m), count(*) from c left join c2 on c2.n = c.n and c2.m < c.n;
select n from c union select k from c2 order by 1 limit 5;
select distinct n from c where n between -3 and 3 order by 1;
update c set n = 1.5, m = 1.50 where i between 10 and 20;
select sum(n), max(m), sum(m) filter (where m <> 'NaN' and m > -1) from c;
create table c3 as select case when g % 11 <> 0 then g % 10 end::int2 as a, g % 7 - 3 as b, g::int8 as k from generate_series(1, 300) g;
select count(*), sum(x.k), sum(y.k) from c3 x join c3 y on x.a = y.b and x.b = y.a;
select count(*), count(y.k), sum(y.k) from c3 x left join c3 y on x.a = y.k and x.k = y.b;
select count(*) from c3 x where not exists (select from c3 y where y.a = x.b and y.b = x.k % 5);
select count(*), sum(y.k) from c3 x full join c3 y on x.a = y.a and x.b = -y.b;
drop table c, c2, c3;
