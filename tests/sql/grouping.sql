-- GROUPING SETS over constants, repeated and nested expressions; what stands above the aggregation is NULL in sets without it.

create table g(i int, e date);
insert into g values (1, '2024-02-01'), (2, '2023-05-01'), (2, '2023-06-01');

-- Columns of a subquery that are constants.
select a, x from (select a, 'c'::text as x from (values (1),(2)) t(a)) s group by grouping sets ((a), (x)) order by 1, 2;
select a, x from (select a, 'c'::text as x from (values (1),(2)) t(a)) s group by grouping sets ((a), (x)) having x = 'c' order by 1, 2;
select a, b, a is null from (select 1 as a, b from (values (1),(2)) t(b)) s group by grouping sets ((a), (b)) order by 1, 2;
select a + 1, coalesce(a, -1), count(*) from (select 1 as a, b from (values (1),(2)) t(b)) s group by grouping sets ((a), (b)) order by 1, 2, 3;
select x, y from (select 1 as x, 2 as y) s group by grouping sets ((x, y), (x), (y), ()) order by 1, 2;
select 1 as one group by rollup (one) order by 1;
create temp table constants as select 'x' as a, 'x' as b, count(*) from g group by grouping sets ((a), (b), ());
select * from constants order by 1, 2;

-- The same expression twice.
select i as a1, i as a2 from g group by a1, rollup (a2) order by 1, 2;
select i + 1 as a, i + 1 as b, count(*) from g group by a, rollup (b) order by 1, 2;
select i, count(*) from g group by grouping sets ((i), (i), ()) order by 1, 2;

-- A grouping expression that contains another one. Without ORDER BY in the statement itself.
create temp table levels as select i + 1 as next, i, count(*) as n from g group by rollup (i + 1, i);
select * from levels order by 1, 2, 3;
create temp table years as select date_trunc('year', e)::date as y, e, count(*) as n from g group by rollup (date_trunc('year', e)::date, e);
select * from years order by 1, 2;
select i, i + 1, (i + 1) * 2, grouping(i), grouping(i + 1), count(*) from g group by cube (i, i + 1) order by 1, 2, 4, 5;
select i, case when i = 1 then 'one' else 'more' end, count(*) from g group by rollup (i, case when i = 1 then 'one' else 'more' end) order by 1, 2;
select i, row_number() over (order by i + 1, i), sum(count(*)) over (partition by i + 1) from g group by rollup (i + 1, i) order by 1, 2;

-- HAVING, subqueries, rows within sets.
select i, count(*) from g group by grouping sets ((i), ()) having i is null or i > 1 order by 1;
select i + 0, count(*) from g group by grouping sets ((i + 0), ()) having i + 0 = 2 order by 1;
select (select i) as s, count(*) from g group by grouping sets ((i), ()) order by 1;
select o.x, (select o.x from g group by rollup (o.x) order by 1 limit 1) from (values (1), (2)) o(x) order by 1;
select i, e, count(*) from g group by (i, (e, i)) order by 1, 2;
select i, e, count(*) from g group by rollup ((i, (e))) order by 1, 2;
select i + 1, (select max(x.i) from g x where x.i = g.i + 1) from g group by rollup (i + 1);

-- Direct arguments are about the group.
select i, rank(i) within group (order by i) from g group by rollup (i) order by 1;
select i, percentile_disc(0.5) within group (order by e), rank(2) within group (order by i) from g group by cube (i) order by 1;
-- direct arguments are evaluated once a group, without rows too
select percentile_disc(2) within group (order by i) from g where false;
select percentile_cont(array[0.1, 2]) within group (order by i) from g where false;
select rank(i / 0) within group (order by i) from g group by i;
select rank(1 / 0) within group (order by i) from g where false;
select rank(3, 'x') within group (order by i, e::text), dense_rank(2) within group (order by i desc) from g;
select i, percentile_disc(array[0, 0.5, 1]) within group (order by e desc) from g group by i order by 1;
select i, percentile_disc(case when i < 2 then 0 else 1 end) within group (order by e) filter (where e is not null) from g group by i order by 1;
select i % 2, rank((select i % 2 + count(*) from g x where x.i < g.i % 2)) within group (order by i), cume_dist(i % 2) within group (order by i) from g group by i % 2 order by 1;
select (select percentile_disc(o.p) within group (order by i) from g) from (values (0.1), (0.9), (null)) o(p);
select mode() within group (order by i % 2), percent_rank(null) within group (order by i nulls first) from g;

-- DISTINCT and ORDER BY in aggregates.
select string_agg(distinct 'abc', ',' order by 'abc');
select string_agg(distinct f, ',' order by f) from (values ('a'::varchar), ('b')) v(f);
select string_agg(distinct f, ',' order by f::text) from (values ('a'::varchar), ('b')) v(f);
select count(distinct 'literal');

drop table g, levels, years, constants;
-- HAVING alone makes one group, which no condition around it may empty
select s.c from (select null::int as c having true) s where s.c > s.c;
select s.c from (select 1 as c having true) s where s.c > 1;
select s.c from (select 1 as c having false) s where s.c = 1;

-- groups of what functions return: a set of rows for each row, which is grouped then
create table words (id int, words text);
insert into words values (1, 'a b  Ab c'), (2, 'x_Y, a'), (3, null);
select regexp_split_to_table(words, '\W+') as word, count(*) from words group by word order by 1;
select generate_series(1, id) g, count(*), sum(id) from words group by 1 having count(*) > 1 order by 1;
select generate_series(1, 2) g, count(*) from words group by rollup (1) order by 1;
select unnest(array[1, 2]) a, unnest(array[1, 2, 3]) b, count(*) from words group by 1, 2 order by 2;
select generate_series(1, 2) + id as s, id, count(*) from words group by 1, 2 order by 1, 2;
select * from (select generate_series(1, 3) g, count(*) from words group by 1) s where g > 1 order by 1;
select generate_series(1, 2) g, unnest(array['x', 'y']) u, max(id) from words group by 1 order by 1, 2;
select count(*) from (select generate_series(1, id) g from words where id < 0 group by 1) s;
drop table words;
-- Aggregates and window functions that GROUP BY names.
create table grouped (k int, a int);
select count(*) as c from grouped group by c;
select sum(k), 1 from grouped group by 2, 1;
select k, row_number() over () from grouped group by 1, 2;
select 1 + count(*) from grouped group by rollup (1);
select (select count(grouped.k)) as x from grouped group by x;
select (select sum(inside.k) from grouped inside) as x from grouped group by x;
drop table grouped;
