-- NOT IN over a subquery: an anti join, in which NULLs of either side count.
create table ni_left (id int not null, a int, b text, n int not null);
create table ni_right (id int not null, a int, b text, n int not null);
insert into ni_left select i, case when i % 7 <> 0 then i % 40 end, case when i % 11 <> 0 then 'b' || i % 50 end, i % 60 from generate_series(1, 400) i;
insert into ni_right select i, case when i % 13 <> 0 then i % 20 end, case when i % 17 <> 0 then 'b' || i % 30 end, i % 25 from generate_series(1, 200) i;

-- Neither side has NULLs.
select count(*), sum(id) from ni_left where n not in (select n from ni_right);
select count(*), sum(id) from ni_left where n not in (select n from ni_right where id > 190);
select count(*), sum(id) from ni_left where (n, id) not in (select n, id from ni_right);
select count(*), sum(id) from ni_left where n not in (select n from ni_right where false);
select count(*), sum(id) from ni_left where n = 30 and n not in (select n from ni_right);
select count(*), sum(id) from ni_left where n = 3 and n not in (select n from ni_right);
-- The right side has some, has none, has no rows.
select count(*), sum(id) from ni_left where n not in (select a from ni_right);
select count(*), sum(id) from ni_left where n not in (select a from ni_right where a is not null);
select count(*), sum(id) from ni_left where n not in (select a from ni_right where a > 2);
select count(*), sum(id) from ni_left where n not in (select a from ni_right where a is null);
select count(*), sum(id) from ni_left where n not in (select a from ni_right where id < 0);
select count(*), sum(id) from ni_left where n = 30 and n not in (select a from ni_right);
select count(*), sum(id) from ni_left where n = 30 and n not in (select a from ni_right where a > 5);
-- The left side has some.
select count(*), count(a), sum(id) from ni_left where a not in (select n from ni_right);
select count(*), count(a), sum(id) from ni_left where a not in (select n from ni_right where id < 0);
select count(*), count(a), sum(id) from ni_left where a is not null and a not in (select n from ni_right);
select count(*), count(a), sum(id) from ni_left where a is null and a not in (select n from ni_right);
-- Both, by text, by expressions, by another type.
select count(*), count(b), sum(id) from ni_left where b not in (select b from ni_right);
select count(*), count(b), sum(id) from ni_left where b not in (select b from ni_right where b is not null);
select count(*), count(b), sum(id) from ni_left where b not in (select b from ni_right where id < 0);
select count(*), count(b), sum(id) from ni_left where upper(b) not in (select upper(b) || '' from ni_right where b like 'b1%');
select count(*), count(a), sum(id) from ni_left where a not in (select a::bigint from ni_right where a < 10);
select count(*), count(a), sum(id) from ni_left where a not in (select nullif(n, 3) from ni_right);
select count(*), count(a), sum(id) from ni_left where a not in (select coalesce(a, 3) from ni_right);
-- Several columns: a NULL decides only where the others are equal.
select count(*), sum(id) from ni_left where (n, a) not in (select n, a from ni_right);
select count(*), sum(id) from ni_left where (n, a) not in (select n, a from ni_right where a is not null);
-- Columns of outer joins may be NULL whatever their constraints say.
select count(*), sum(l.id) from ni_left l left join ni_right r on r.id = l.id and r.id < 50 where r.n not in (select n from ni_right where n < 10);
select count(*), sum(l.id) from ni_left l left join ni_right r on r.id = l.id and r.id < 50 where r.n not in (select n from ni_right where n < 0);
select count(*), sum(id) from ni_left where n not in (select r.n from ni_left l left join ni_right r on r.id = l.id);
select count(*), sum(id) from ni_left where n not in (select r.n from ni_left l join ni_right r on r.id = l.id where r.n < 20);
select count(*), sum(id) from ni_left where n not in (select r.n from ni_left l right join ni_right r on r.id = l.id);
-- Subqueries that group, unite, limit; constants; values that are not looked up.
select count(*), sum(id) from ni_left where n not in (select max(n) from ni_right group by a);
select count(*), sum(id) from ni_left where n not in (select max(a) from ni_right where id < 0);
select count(*), sum(id) from ni_left where n not in (select n from ni_right group by n having count(*) > 7);
select count(*), sum(id) from ni_left where n not in (select n from ni_right group by rollup (n));
select count(*), sum(id) from ni_left where n not in (select n from ni_right union all select null);
select count(*), sum(id) from ni_left where n not in (select n from ni_right union select 40);
select count(*), sum(id) from ni_left where n not in (select n from ni_right order by n limit 5);
select count(*), sum(id) from ni_left where n not in (select 5 from ni_right);
select count(*), sum(id) from ni_left where n not in (select null::int from ni_right);
select count(*), sum(id) from ni_left where 5 not in (select n from ni_right);
select count(*), sum(id) from ni_left where n <> all (select n from ni_right);
select count(*), sum(id) from ni_left where n < all (select n from ni_right);
select count(*), sum(id) from ni_left l where n not in (select n from ni_right r where r.a = l.a);
select count(*), sum(id) from ni_left where n not in (select n from ni_right) or id = 1;
select count(*), sum(id) from ni_left where (n in (select a from ni_right)) is null;
-- Between other joins.
select count(*), sum(l.id) from ni_left l join ni_right r on l.n = r.n where l.a not in (select a from ni_right where a > 10) and r.b not in (select b from ni_left where b > 'b2');
select count(*), sum(l.id) from ni_left l join ni_right r on l.n = r.n where l.a = r.a and l.a not in (select a from ni_left where a > 10);
select count(*) from (select * from ni_left where a not in (select a from ni_right where a < 9)) x left join ni_right r on r.a = x.a;
delete from ni_left where a not in (select a from ni_right);
delete from ni_left where a not in (select a from ni_right where a is not null);
select count(*), sum(id) from ni_left;
-- A parent's constraint is not its children's.
create table ni_parent (v int, constraint p check (true));
create table ni_child () inherits (ni_parent);
insert into ni_child values (1), (null);
insert into ni_parent values (2);
select * from ni_right r where r.n not in (select v from ni_parent) and id < 5;
select * from ni_right r where r.n not in (select v from only ni_parent) and id < 5 order by id;

-- More rows than fit, NULLs among them or not, and several threads.
create table ni_many (k int not null, w text, s text);
insert into ni_many select i, case when i % 500 <> 0 then 'word ' || i end, 'word ' || i * 3 from generate_series(1, 2000) i;
set work_mem = '64kB';
set hash_mem_multiplier = 1;
select count(*), sum(k), count(w) from ni_many where w not in (select s from ni_many);
select count(*), sum(k) from ni_many where s not in (select w from ni_many);
select count(*), sum(k) from ni_many where s not in (select w from ni_many where w is not null);
select count(*), sum(k) from ni_many where w not in (select s from ni_many where k < 0);
select count(*), sum(k) from ni_many where s not in (select 'word 3' || right(w, 0) from ni_many where w is not null);
reset work_mem;
reset hash_mem_multiplier;
set min_parallel_table_scan_size = 0;
select count(*), sum(k), count(w) from ni_many where w not in (select s from ni_many);
select count(*), sum(k), count(w) from ni_many where s not in (select w from ni_many);
select count(*), sum(k) from ni_many where k not in (select k * 2 from ni_many);
select count(*), sum(k) from ni_many where k not in (select b.k from ni_many b where b.w like '%7');
drop table ni_left, ni_right, ni_parent, ni_child, ni_many;

-- Several columns with NULLs, over many rows: the answer is unknown where the columns without NULLs are equal.
create table ni_wide (id int not null, v int, w int, x text);
insert into ni_wide select i, nullif(i % 10, 3), nullif(i % 4, 2), nullif('t' || i % 3, 't1') from generate_series(1, 20000) i;
select (v, w) in (select v, nullif(w, 1) from ni_wide where v < 3) as found, count(*), sum(id) from ni_wide group by 1 order by 1;
select (v, nullif(w, 1)) in (select v, w from ni_wide where w = 3) as found, count(*), sum(id) from ni_wide group by 1 order by 1;
select (v, w, x) in (select v + 5, w, x from ni_wide where id % 7 = 1) as found, count(*), sum(id) from ni_wide group by 1 order by 1;
select (id, w, x) in (select id, null::int, x from ni_wide where id % 7 = 1) as found, count(*), sum(id) from ni_wide group by 1 order by 1;
select (v, w, x) in (select null::int, null::int, null::text) as found, count(*) from ni_wide group by 1;
select (id, w) in (select null::int, w from ni_wide where w = 1) as found, count(*) from ni_wide group by 1 order by 1;
select count(*) from ni_wide where (v, w) not in (select v, nullif(w, 2) from ni_wide where v < 3);
-- Far more sets of NULLs than are looked up by hash.
create table ni_bits (a int, b int, c int, d int, e int);
insert into ni_bits select nullif(i & 1, 0), nullif(i >> 1 & 1, 0), nullif(i >> 2 & 1, 0), nullif(i >> 3 & 1, 0), i % 7 from generate_series(0, 200) i;
select (a, b, c, d, e) in (select a + i % 2, b, c + i % 2, d, e + i from ni_bits, generate_series(0, 2) i where e < 3) as found, count(*), sum(e) from ni_bits group by 1 order by 1;
drop table ni_wide, ni_bits;
