-- Rows without a partner: NULLs of every kind of value, conditions that do and do not reject them, whole rows.

-- Values of every representation, some of them NULL on the side that may be missing.
create type oj_pair as (x int, y text);
create table oj(i int, n numeric, v interval, a int[], j jsonb, u uuid, b bytea, r int4range, c oj_pair, t text, d date, f float8, o boolean);
insert into oj values
  (1, 1.5, '1 day', '{1,NULL}', '{"k":1}', '00000000-0000-0000-0000-000000000001', '\x01', '[1,3)', row(1,'a'), 'a', '2024-01-01', 0.5, true),
  (2, null, null, null, null, null, null, null, null, null, null, null, null),
  (3, 0, '0', '{}', 'null', '00000000-0000-0000-0000-000000000003', '', 'empty', row(null,null), '', '1999-12-31', 'NaN', false);
select l.i, r.* from oj l left join oj r on l.i = r.i + 1 order by l.i;
select l.i, r.* from oj l left join oj r on l.i = r.i + 1 and l.i + r.i < 100 order by l.i;
select l.i, r.* from oj r right join oj l on l.i > r.i order by l.i, r.i;
select l.i, r.n, r.v, r.a, r.r from oj l full join oj r on l.i = r.i + 1 order by l.i, r.i;
select l.i, coalesce(r.n, 0), coalesce(r.v, '7 days'), coalesce(r.a, '{9}'), r.n is null, r.v is null, r.a is null, r.c is null
  from oj l left join oj r on r.i = l.i order by 1;
select r.n, r.v, r.a, r.u, count(*), sum(r.n), max(r.v), count(r.a) from oj l left join oj r on l.i = r.i + 1
  group by 1, 2, 3, 4 order by 1;

-- What is FALSE when one of its operands is NULL is TRUE when it is negated.
create table oa(i int); insert into oa values (1), (2);
create table ob(j int, name text, k int); insert into ob values (2, 'x', 5), (3, null, 6);
select i, j from oa left join ob on i = j where not (j > 0 and i < 0) order by 1;
select i, j from oa left join ob on i = j where not (i > 5 and j > 0) order by 1;
select i, j from oa left join ob on i = j where not (j = any('{}'::int[])) order by 1;
select i, j from oa left join ob on i = j where j <> all('{}'::int[]) order by 1;
select i, j from oa left join ob on i = j where not (name is not null) order by 1;
select i, j from oa left join ob on i = j where not (name = 'x' and name is not null) order by 1;
select i, j from oa left join ob on i = j where (name = 'x') is not true order by 1;
select i, j from oa left join ob on i = j where (name = 'x') is not false order by 1;
select i, j from oa left join ob on i = j where (j > 0) is unknown order by 1;
select i, j from oa left join ob on i = j where coalesce(j, 0) = 0 order by 1;
select i, j from oa left join ob on i = j where j = 2 or i = 1 order by 1;
select i, j from oa left join ob on i = j where case when i = 1 then true else j = 2 end order by 1;
select i, j from oa left join ob on i = j where not (j in (select k from ob)) order by 1;
select i, j from oa left join ob on i = j where j not in (select k from ob where false) order by 1;
select count(*) from oa full join ob on i = j where not (i is not null);
select count(*) from oa full join ob on i = j where not (i is not null and j is not null);
select i, j, j2 from oa left join (ob left join (select j as j2 from ob) s on j2 = j + 1) on i = j where not (j2 > 5 and i > 5) order by 1;
-- Those that do.
select i, j from oa left join ob on i = j where j > 0 order by 1;
select i, j from oa left join ob on i = j where not (j < 0) order by 1;
select i, j from oa left join ob on i = j where j is not null order by 1;
select i, j from oa full join ob on i = j where i + j > 0 order by 1;
select i, j from oa left join ob on i = j where (j > 0) is true order by 1;

-- The whole row of a subquery without a partner is NULL.
select oa.i, s, s is null, to_jsonb(s), (s).name from oa left join (select * from ob) s on oa.i = s.j order by 1;
select oa.i, count(s.*), count(s) from oa left join (select j, name from ob) s on oa.i = s.j group by oa.i order by 1;
select json_agg(s order by oa.i) from oa left join (select * from ob) s on oa.i = s.j;
create view obv as select j, name from ob;
select oa.i, v from oa left join obv v on oa.i = v.j order by 1;
select oa, s from oa full join (select * from ob) s on oa.i = s.j order by 1, 2;
select oa.i, s from oa left join (select j, k + 1 as l from ob) s on oa.i = s.j order by 1;
with c as (select * from ob) select oa.i, c from oa left join c on oa.i = c.j order by 1;
select x.i, (select x.s from oa limit 1) from (select oa.i, s from oa left join (select * from ob) s on oa.i = s.j) x order by 1;

-- = ALL, of one value and of several.
select 1 = all (select x from (values (1),(2)) v(x)), 1 = all (select x from (values (1),(1)) v(x)),
  1 = all (select x from (values (1),(null)) v(x)), 2 = all (select x from (values (1),(null)) v(x)),
  1 = all (select x from (values (1)) v(x) where false);
select (1, 2) = all (select x, y from (values (1,2),(2,2)) v(x,y)), (1, 2) = all (select x, y from (values (1,2),(1,2)) v(x,y)),
  (1, 2) = all (select x, y from (values (1,null::int)) v(x,y)), (1, 2) = all (select x, y from (values (3,null::int)) v(x,y));
select i, i = all (select j from ob where k = 5), i = all (select j from ob where j = i + 1) from oa order by 1;

-- A condition of a lateral subquery about a relation outside of it.
select i, s.k from oa, lateral (select k from ob where exists (select 1 from ob b2 where b2.j = oa.i and b2.k = ob.k)) s order by 1;
select i, s.k from oa, lateral (select k from ob where (oa.i, k) in (select j, k from ob)) s order by 1;
select oa.i, s.j from oa, lateral (select b2.j from ob full join ob b2 on true where oa.i < b2.j) s left join oj on true order by 1, 2;

drop view obv;
drop table oa, ob, oj;
drop type oj_pair;

-- In LATERAL, a condition of an outer join may be about tables beside it alone: those come first.
create table beside (id int primary key, a text);
insert into beside values (8, ' x'), (9, 'a'), (10, null);
select b.a, s.* from beside b, lateral (select v.* from (values (1), (2)) v left join (select distinct on (x % 3) true as c from generate_series(1, 3) f(x) order by x % 3, x) t on b.a > '') s order by 1, 2;
select b.a, s.* from beside b, lateral (select v.* from (values (1), (2)) v left join (select distinct on (x) true as c from generate_series(1, 3) f(x) order by x) t on b.a > '') s order by 1, 2;
select b.a, s.* from beside b, lateral (select t.c, v.column1 from (select true as c from generate_series(1, 3) f(x) order by x) t right join (values (3)) v on (case b.a when b.a then true end)) s order by 1, 2, 3;
select b.a, s.* from beside b, lateral (select t.x, v.y from generate_series(1, 3) t(x) full join generate_series(2, 4) v(y) on t.x = v.y and b.a > ' ') s order by 1, 2, 3;
select b.a, s.* from beside b, lateral (select v.column1, t.x from (values (1), (2)) v left join (generate_series(1, 2) t(x) left join generate_series(2, 3) u(y) on b.id = 9) on t.x = v.column1 and b.id > 8) s order by 1, 2, 3;
select b.a, c.id, s.* from beside b join beside c on b.id = c.id + 1, lateral (select t.x from (values (1)) v left join generate_series(1, 2) t(x) on c.a = 'a' and b.id = 10) s order by 2, 3;
drop table beside;

-- Conditions of inner joins within a lateral subquery that refer to relations outside it, below outer joins.
create table lat_a (id int primary key, x int);
create table lat_b (id int primary key, x int);
insert into lat_a values (1, 1), (2, 2), (3, null), (4, 1);
insert into lat_b select i, i % 3 from generate_series(1, 6) i;
select a.id, count(*) from lat_a a, lateral (select 1 from (lat_b b join lat_a c on c.x > a.x or b.x > 1) left join lat_b d on true) s group by 1 order by 1;
select a.id, count(*) from lat_a a, lateral (select 1 from (lat_b b join lat_a c on c.id = b.x + a.x) left join lat_b d on d.id = b.id) s group by 1 order by 1;
select a.id, s.* from lat_a a left join lateral (select b.id as b, c.id as c, d.id as d from (lat_b b join lat_a c on b.x = c.x + a.x) full join lat_a d on d.id = b.id) s on true order by 1, 2, 3, 4;
select a.id, count(*), count(s.d) from lat_a a left join lateral (select d.id as d from (lat_b b join lat_a c on b.id + c.id = a.id + 1 join lat_b e on e.x + c.x = a.x + b.x) left join lat_b d on d.x = e.x and d.id > a.id) s on true group by 1 order by 1;
select a.id, exists (select from (lat_b b join lat_a c on b.x + c.x = a.x or c.x is null) left join lat_b d on d.id = a.id where d.x > 0) from lat_a a order by 1;
select count(*) from lat_a a, lateral (select 1 from (lat_b b join lat_a c on c.x + b.x > a.x) join lat_b e on e.x > a.x + c.x where not exists (select from lat_b f where f.id = e.id + a.id and f.x = b.x)) s;
drop table lat_a, lat_b;

-- Rows on the nullable side of an outer join cannot be locked.
create table lock_a (a int primary key);
create table lock_b (a int primary key, b int);
insert into lock_a values (1), (2);
insert into lock_b values (1, 10);
select * from lock_a left join lock_b using (a) for update;
select * from lock_a left join lock_b using (a) for no key update of lock_b;
select * from lock_a left join lock_b using (a) order by 1 for update of lock_a;
select * from lock_a full join lock_b using (a) for share of lock_a;
select * from (select * from lock_b) s right join lock_a using (a) for key share;
select * from lock_a left join lock_b using (a) where b = 10 for update;
select * from lock_a where not exists (select from lock_b where lock_b.a = lock_a.a) for update;
drop table lock_a, lock_b;
