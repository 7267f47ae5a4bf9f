-- WITH, recursive too, and statements that change data inside it.
with t as (select 1 as a), u as (select a + 1 as b from t) select * from t, u;
with t(x, y) as (values (1, 'a'), (2, 'b')) select y from t where x = 2;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select sum(i), count(*) from n;
with recursive fib(a, b) as (values (0, 1) union all select b, a + b from fib where b < 50) select array_agg(a) from fib;
create table part (id int primary key, parent int, name text);
insert into part values (1, null, 'car'), (2, 1, 'engine'), (3, 1, 'wheel'), (4, 2, 'piston'), (5, 2, 'valve'), (6, 5, 'spring');
with recursive tree as (select id, name, 1 as depth, array[id] as path from part where parent is null union all select p.id, p.name, depth + 1, path || p.id from part p join tree t on p.parent = t.id) select depth, name, path from tree order by path;
with recursive up as (select id, parent from part where id = 6 union select p.id, p.parent from part p, up where p.id = up.parent) select count(*) from up;
with recursive g(a, b) as (values (1, 2), (2, 3), (3, 1)), reach(n) as (select 1 union select b from g, reach where a = n) select n from reach order by n;
with recursive t(n) as (select 1 union all select n + 1 from t) select n from t limit 3;
with recursive t(n) as (select n + 1 from t) select * from t;
with t as (select 1) select * from t, u;
with t as materialized (select i from generate_series(1, 3) i), u as not materialized (select i * 2 as j from t) select * from u;
create table log (what text, id int);
with gone as (delete from part where parent = 5 returning *) insert into log select 'deleted ' || name, id from gone returning *;
with added as (insert into part values (7, 1, 'door'), (8, 7, 'handle') returning id, name) select name from added order by id;
with moved as (update part set parent = 1 where id = 8 returning id, parent) select p.parent as before, m.parent as after from part p join moved m using (id);
select id, parent, name from part order by id;
with t as (select * from part) update part set name = upper(part.name) from t where t.id = part.id and t.parent = 1 returning part.id, part.name;
with recursive d as (select id from part where id = 2 union all select p.id from part p join d on p.parent = d.id), gone as (delete from part where id in (select id from d) returning id) select id from gone order by id;
select * from log;
with a as (select 1 as x) (with a as (select 2 as x) select x from a) union all select x from a;
select (with t as (select 5 as v) select v + 1 from t);

-- Rounds that give only rows that were there, several set operations, WITH within a recursive query.
with recursive o(x) as (select 1 union (with i1 as (select 2 union (with i2 as (select 3) select * from i2))
  select * from o union select * from i1)) select * from o order by 1;
with recursive t(n) as (values (1) union select 10 - n from t) select * from t order by 1;
with recursive r(x) as (select 1 union all select 2 union all select x + 1 from r where x < 4) select * from r order by 1;
with recursive r(x) as ((select 1 union select 1) union select x + 1 from r where x < 4) select * from r order by 1;
with recursive r(x) as (select 1 union (select x + 1 from r where x < 4 union select 10)) select * from r order by 1;
with recursive r(x) as (select 1 union all (select x + 1 from r where x < 4 except select 3)) select * from r order by 1;
with recursive t(j) as (with recursive s(i) as (values (1) union all select i + 1 from s where i < 10)
  select i from s union all select j + 1 from t where j < 10) select count(*), sum(j) from t;
with recursive a(x) as (select 1 union all (with recursive b(y) as (select x from a union all select y + 1 from b where y < 3)
  select y + 1 from b where y < 4)) select * from a order by 1;
with recursive x(n) as (with x1 as (select 1 as n) select 0 union select * from x1) select * from x order by 1;
with recursive x(n) as (with x1 as (select 1 from x) select 0 union select * from x1) select * from x;
with recursive o(x) as (with i as (select 2) select * from i union select * from o) select * from o;

-- Literals of VALUES have a type before the other operand is looked at.
select 'a' as a, 2 as b union values ('x', 1) order by 1;
select 1 as a, 2 as b union values ('x', 1);

-- Several changes of one row: what nobody reads runs after the query, the last first, and the first to run has its way.
create table twice (id int primary key, a text);
insert into twice values (1, 'a'), (2, 'b'), (3, 'c');
with x as (update twice set a = a || 'x' where id = 1), y as (update twice set a = a || 'y') select 1;
select * from twice order by id;
with x as (update twice set a = 'x' where id = 2), y as (delete from twice where id > 1) select 1;
select * from twice order by id;
with x as (update twice set a = 'x' returning a), y as (delete from twice) select a from x;
select * from twice order by id;

-- The recursive term's collation counts as its type does.
with recursive w(n, x) as (select 1, 'a'::text union select n + 1, (select 'b'::name)::text from w where n < 3) select * from w;
with recursive w(n, x) as (select 1, 'a'::text collate "C" union select n + 1, (select 'b'::name)::text from w where n < 3) select * from w order by n;

-- SEARCH and CYCLE
create table arcs (f int, t int, label text);
insert into arcs values (1, 2, 'arc 1 -> 2'), (1, 3, 'arc 1 -> 3'), (2, 3, 'arc 2 -> 3'), (1, 4, 'arc 1 -> 4'), (4, 5, 'arc 4 -> 5');
with recursive w(f, t, label) as (
    select * from arcs union all select a.* from arcs a, w where a.f = w.t) search depth first by f, t set seq
select * from w order by seq;
with recursive w(f, t, label) as (
    select * from arcs union select a.* from arcs a, w where a.f = w.t) search breadth first by f, t set seq
select * from w order by seq;
insert into arcs values (5, 1, 'arc 5 -> 1');
with recursive w(f, t, label) as (
    select * from arcs union all select a.* from arcs a, w where a.f = w.t) cycle f, t set is_cycle using path
select * from w order by path;
with recursive w(f, t, label) as (
    select * from arcs union all select a.* from arcs a join w on a.f = w.t)
    search depth first by f set seq cycle f, t set mark to 'Y' default 'N' using path
select f, t, seq, mark, path from w order by seq, path;
with recursive w(x) as (select 1 union all (with e as (select * from w) select x + 1 from e where x < 3)) search depth first by x set s select * from w;
with recursive w(x) as (select 1 union all select x + 1 from w where x < 3) search depth first by y set s select * from w;
with recursive w(x) as (select 1 union all select x + 1 from w where x < 3) search depth first by x, x set s select * from w;
with recursive w(x) as (select 1 union all select x + 1 from w where x < 3) cycle x set a using a select * from w;
with recursive w(x) as (select 1 union all select x + 1 from w where x < 3) search depth first by x set a cycle x set a using p select * from w;
with recursive w(x) as (select 1 union all select x + 1 from w where x < 3) cycle x set a to true default 5 using p select * from w;
with recursive w(x) as (select 1) cycle x set a using p select * from w;
create view searched as with recursive w(f, t) as (
    select f, t from arcs union all select a.f, a.t from arcs a, w where a.f = w.t) search breadth first by f set seq cycle f, t set c using p
select f, t, c from w;
select * from searched order by f, t, c;
drop view searched;
drop table arcs;
