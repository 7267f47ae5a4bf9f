-- Scalar subqueries over aggregates, which the planner joins, beside the same where it must not.
create table o (id int primary key, k int, big bigint, t text, x numeric);
create table i (k int, big bigint, t text, y numeric, n int);
insert into o select g, case when g % 7 = 0 then null else g % 10 end, g % 10, 'k' || g % 10, g / 2.0 from generate_series(1, 40) g;
insert into i select case when g % 11 = 0 then null else g % 8 end, g % 8, 'k' || g % 8, case when g % 5 = 0 then null else g end, g % 3 from generate_series(1, 60) g;
select id from o where x < (select avg(y) from i where i.k = o.k) order by id;
select id from o where x > (select 0.5 * avg(y) from i where i.k = o.k) order by id;
select id from o where (select count(*) from i where i.k = o.k) = 0 order by id;
select id from o where (select count(y) from i where i.k = o.k) < 5 order by id;
select id from o where (select coalesce(sum(y), 0) from i where i.k = o.k) = 0 order by id;
select id from o where (select coalesce(sum(y), 0) + count(*) from i where i.k = o.k) < 200 order by id;
select id from o where (select max(y) from i where i.k = o.k) is null order by id;
select id from o where (select bool_and(y > 3) from i where i.k = o.k) is not true order by id;
-- keys of other types, two keys, a key on the other side, expressions as keys
select id from o where x < (select avg(y) from i where i.k = o.big) order by id;
select id from o where x < (select avg(y) from i where o.big = i.k and i.t = o.t) order by id;
select id from o where x < (select min(y) from i where i.t = o.t || '') order by id;
select id from o where x < (select min(y) from i where upper(i.t) = upper(o.t)) order by id;
select id from o where x < (select avg(y) from i where i.k = o.k and i.n = 1) order by id;
select id from o where x < (select avg(y) filter (where n > 0) from i where i.k = o.k) order by id;
select id from o where x < (select count(distinct n) from i where i.k = o.k) order by id;
-- what is not tied by equalities alone stays
select id from o where x < (select avg(y) from i where i.k < o.k) order by id;
select id from o where x < (select avg(y) from i where i.k = o.k and i.y > o.x) order by id;
select id from o where x < (select avg(y + o.x) from i where i.k = o.k) order by id;
select id from o where x < (select avg(y) from i where i.k = o.k having count(*) > 6) order by id;
select id from o where x < (select avg(y) from i where i.k = o.k group by i.k) order by id;
select id from o where x < (select y from i where i.k = o.k order by y limit 1) order by id;
-- groups that no outer row asks for raise no errors
select id from o where k = 3 and x < (select sum(100 / n) from i where i.k = o.k and i.n > 0) order by id;
create table z (k int, d int);
insert into z values (1, 1), (2, 0);
select id from o where k = 1 and x < (select sum(10 / d) from z where z.k = o.k) order by id;
select id from o where x < (select sum(10 / d) from z where z.k = o.k) order by id;
-- two of them, in one another, under OR, in a join, in a subquery of another kind
select id from o where x < (select avg(y) from i where i.k = o.k) and x > (select min(n) from i where i.big = o.big) order by id;
select id from o where x < (select avg(y) from i where i.k = o.k and y > (select avg(n) from i j where j.k = i.k)) order by id;
select id from o where x < (select avg(y) from i where i.k = o.k) or id > 38 order by id;
select a.id, b.id from o a join o b on a.id = b.id + 1 where a.x < (select avg(y) from i where i.k = b.k) order by 1, 2;
select a.id from o a left join o b on a.id = b.id + 20 where (select count(*) from i where i.k = b.k) = 0 order by 1;
select id from o where exists (select from i where i.k = o.k and i.y < (select avg(y) from i j where j.t = i.t)) order by id;
select id from o where k in (select k from i where y > (select avg(x) from o p where p.k = i.k)) order by id;
select count(*) from (select * from o where x < (select avg(y) from i where i.k = o.k)) s where id > 5;
with w as materialized (select * from o) select id from w where x < (select avg(y) from i where i.k = w.k) order by id;
-- changed rows
begin;
update o set x = -1 where x < (select avg(y) from i where i.k = o.k);
delete from o where x > (select count(*) from i where i.k = o.k);
select id, x from o order by id;
select id from o where x < (select avg(y) from i where i.k = o.k) order by id for update;
rollback;
-- ORs whose arms share conjuncts
select o.id, i.n, i.y from o, i where (o.k = i.k and i.n = 1 and o.id < 5) or (i.k = o.k and i.n = 2 and o.id > 36) order by 1, 2, 3;
select o.id, i.y from o, i where (o.k = i.k and i.n = 1) or (o.k = i.k) order by 1, 2 limit 20;
select o.id, i.y from o left join i on (o.k = i.k and i.n = 1 and o.id < 5) or (o.k = i.k and i.n = 2 and o.id > 36) order by 1, 2;
select o.id, p.id from o full join o p on (o.id = p.id and o.k = 1) or (o.id = p.id and p.k = 2) order by 1, 2;
select o.id, p.id from o, o p where (o.k = 1 and p.k = 2 and o.id < p.id) or (o.k = 2 and p.k = 1 and o.id < p.id) order by 1, 2 limit 20;
select id from o where exists (select from i where (i.k = o.k and i.n = 1) or (i.k = o.k and i.y is null)) order by id;
select id from o where not exists (select from i where (i.k = o.k and i.n = 1 and o.id < 20) or (i.k = o.k and i.y is null and o.id > 30)) order by id;
select id from o where (id < 3 and k < 5) or (k < 5 and id > 35) or (id < 3) order by id;
-- conditions that no row passes are decided before anything is computed
select id from o where x between null and id / 0;
select id from o where not (x not between null and id / 0);
select id from o where id / 0 = 1 and k = null::int;
select k from o where x / 0 > 1 group by k having null = k;
select k, count(*) from o group by k having k > 5 and count(*) > 1 order by k;
-- of the subquery of EXISTS only whether it has a row counts
select id from o where exists (select 1 from i where i.k = o.k and i.y is null limit 1) order by id;
select id from o where not exists (select i.n / 0 from i where i.k = o.k and i.y is null order by i.n / 0 limit all) order by id;
select id from o where exists (select 1 from i where i.k = o.k limit 0) order by id;
select id from o where exists (select 1 from i where i.k = o.k limit null) and id < 3 order by id;
select id from o where exists (select 1 from i where i.k = o.k limit -1) order by id;
select id from o where exists (select 1 from i where i.k = o.k limit o.id - o.id) order by id;
select id from o where exists (select 1 from i where i.k = o.k offset 1) and id < 3 order by id;
select id from o where exists (select count(*) from i where i.k = o.k) and id < 3 order by id;
select id from o where exists (select from i where i.k = o.k having count(*) > 100) order by id;
select count(*) from generate_series(1, 10000) g where exists (select from i where i.k = g group by ()) or g < 0;
select id from o where exists (select generate_series(1, 0) from i where i.k = o.k) order by id;
select id from o where exists (select distinct o.id from i where i.k = o.k and i.y is null group by i.n, o.id) order by id;
select id, exists (select o.id / 0 from i) from o where id < 3 order by id;
prepare first_of(int) as select id from o where exists (select 1 from i where i.k = o.k and i.y is null limit $1) order by id;
execute first_of(0);
execute first_of(1);
deallocate first_of;
drop table o, i, z;
