-- Many groups that several threads have collected, or split before they collect: every kind of key and of state.
create table gm (id int, near int, far bigint, two smallint, word text, long text, n numeric, d date);
insert into gm
select i, nullif(i % 30011, 17), (i % 25013)::bigint * 987654321987 - 4000000000000, i % 7,
  case when i % 26017 <> 5 then 'w' || i % 26017 end, 'a key that does not fit a word ' || i % 24001,
  case i % 3 when 0 then (i % 100)::numeric when 1 then (i % 100) / 8.0 else 1e30 + i % 5 end, date '2000-01-01' + i % 999
from generate_series(1, 90000) i;
set min_parallel_table_scan_size = 0;
set parallel_setup_cost = 0;
select count(*), sum(k), sum(c), sum(s), max(c) from (select near as k, count(*) as c, sum(id) as s from gm group by near) x;
select count(*), count(k), sum(c), sum(s), min(m), max(m) from (select far as k, count(*) as c, sum(id) as s, max(id) as m from gm group by far) x;
select count(*), count(k), sum(c), sum(s) from (select word as k, count(n) as c, sum(n) as s from gm group by word) x;
select count(*), count(k), sum(c), min(lo), max(hi), sum(a) from (select long as k, count(*) as c, min(word) as lo, max(long) as hi, avg(id) as a from gm group by long) x;
select count(*), count(k), count(w), sum(c), min(lo), max(hi) from (select near as k, word as w, count(*) as c, min(d) as lo, max(d) as hi from gm group by near, word) x;
select count(*), sum(two), sum(c), bool_or(b) from (select near, two, count(*) as c, bool_and(id > 9) as b from gm group by near, two) x;
select count(*), sum(c), sum(v) from (select near as k, count(*) as c, var_samp(id)::numeric(30, 5) as v from gm group by near) x;
-- HAVING, also one that asks for more than the group.
select near, count(*), sum(id) from gm group by near having sum(id) > 179990 order by near;
select count(*), sum(s) from (select word, sum(id) as s from gm group by word having max(id) > 80000 and count(*) > 3) x;
select count(*) from (select near from gm group by near having sum(id) > (select avg(id) * 3 from gm)) x;
select near, count(*) from gm group by near having count(*) > 3 order by 2 desc, 1 limit 3;
select long, sum(1 / (count(*) - 100)) over (), count(*) from gm group by long having count(*) > 3 order by 1 limit 2;
select near from gm group by near having 1 / (sum(id) - 30018) > 0;
-- DISTINCT, and aggregates over DISTINCT values.
select count(*), count(word) from (select distinct word from gm) x;
select count(distinct long), count(distinct near), count(distinct far), count(distinct word) from gm;
select two, count(distinct long), count(distinct word) from gm group by two order by two;
select count(*), sum(c) from (select long, count(distinct word) as c from gm group by long) x;
-- Joins by keys that fit no word, and by two of them.
select count(*), sum(a.id) from gm a join (select distinct long from gm where id % 5 = 0) b on a.long = b.long;
select count(*), sum(a.id) from gm a join (select long, word from gm where id % 50 = 0) b on a.long = b.long and a.word = b.word;
select count(*), sum(a.id) from gm a where not exists (select from gm b where a.long = b.long and a.n = b.n and b.id > 50000);
select count(*), sum(a.id) from gm a left join gm b on a.word = b.long;
select count(*), sum(a.id), sum(b.n) from gm a full join gm b on a.word = b.word and a.d = b.d and a.id < b.id;
-- In little memory.
set work_mem = '64kB';
select count(*), sum(k), sum(c), sum(s), max(c) from (select near as k, count(*) as c, sum(id) as s from gm group by near) x;
select count(*), count(k), sum(c), min(lo), max(hi), sum(a) from (select long as k, count(*) as c, min(word) as lo, max(long) as hi, avg(id) as a from gm group by long) x;
select count(*), count(word) from (select distinct word from gm) x;
select count(*), sum(a.id) from gm a join (select long, word from gm where id % 50 = 0) b on a.long = b.long and a.word = b.word;
drop table gm;
