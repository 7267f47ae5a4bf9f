-- Ranges of ctid: in segments, in memory, and in a transaction's own changes.
create table t (id int primary key, a int, b text);
insert into t select i, i % 7, 'row ' || i from generate_series(1, 9000) i;
vacuum t;
delete from t where id % 10 = 3;
insert into t select i, i % 7, 'row ' || i from generate_series(9001, 10000) i;
select ctid as first from t where id = 1 \gset
select ctid as low from t where id = 2000 \gset
select ctid as high from t where id = 4000 \gset
select ctid as late from t where id = 9500 \gset

select count(*), min(id), max(id) from t where ctid >= :'low' and ctid < :'high';
select count(*), min(id), max(id) from t where ctid > :'low' and ctid <= :'high';
select count(*), min(id), max(id) from t where :'low' <= ctid and :'high' > ctid;
select count(*), min(id), max(id) from t where ctid >= :'low' and ctid < :'high' and a = 3;
select count(*), min(id), max(id) from t where ctid < :'high';
select count(*), min(id), max(id) from t where ctid >= :'high';
select count(*), min(id), max(id) from t where ctid >= :'high' and ctid < :'late';
select count(*) from t where ctid >= :'high' and ctid < :'late';
select count(*) from t where ctid >= :'high' and ctid < :'late' and ctid > :'low' and ctid <= :'late';
select count(*) from t where ctid >= '(0,0)' and ctid < '(4294967295,65535)';
select count(*) from t where ctid > '(4294967295,65535)';
select count(*) from t where ctid < '(0,0)';
select count(*) from t where ctid >= :'high' and ctid < :'low';
select count(*) from t where ctid >= :'low' and ctid < null;
select count(*) from t where ctid >= :'low' or ctid < :'first';
select count(*) from t where not ctid >= :'low';
select count(*) from t where ctid <> :'low' and ctid >= :'low';
select id, b from t where ctid >= :'low' and ctid < :'high' order by id limit 5;
select id, b from t where ctid >= :'low' and ctid < :'high' order by b desc limit 5;
select id from t where ctid >= :'low' and ctid < :'high' and id between 1990 and 2005 order by id;
select ctid = :'low', id from t where ctid >= :'low' and ctid < :'high' order by ctid limit 2;
select (t).b from t where ctid >= :'low' and ctid < :'high' order by id limit 2;
select id from t where ctid = :'low' and ctid > :'low';
select id from t where ctid = :'low' and ctid >= :'low';

-- All ranges together are the table.
select sum(n), sum(s) from (
    select count(*) as n, sum(id) as s from t where ctid < :'low'
    union all select count(*), sum(id) from t where ctid >= :'low' and ctid < :'high'
    union all select count(*), sum(id) from t where ctid >= :'high' and ctid < :'late'
    union all select count(*), sum(id) from t where ctid >= :'late') parts;
select count(*), sum(id) from t;

-- Parameters, and ends that come from elsewhere.
prepare ranged(tid, tid) as select count(*), sum(id) from t where ctid >= $1 and ctid < $2;
execute ranged(:'low', :'high');
execute ranged(:'high', :'late');
execute ranged(:'high', :'low');
execute ranged(null, :'low');
deallocate ranged;
select count(*) from t where ctid >= (select ctid from t where id = 2000) and ctid < (select ctid from t where id = 4000);
select e.id, (select count(*) from t where ctid >= e.ctid and ctid < :'high') from t e where e.id in (2000, 3998, 4000, 9999) order by 1;
select e.id, n from t e, lateral (select count(*) as n from t where ctid > e.ctid) x where e.id in (2000, 9999) order by 1;

-- Changes by ranges.
begin;
insert into t values (10001, 1, 'own');
savepoint s;
update t set b = b || '!' where ctid >= :'low' and ctid < :'high' and a = 2;
select count(*) from t where b like '%!';
-- PostgreSQL has moved them.
rollback to s;
with gone as (delete from t where ctid >= :'high' and ctid < :'late' returning id) select count(*), min(id), max(id) from gone;
select count(*), max(id) from t;
select count(*) from t where ctid >= :'late' and id between 9500 and 10000;
rollback;
select count(*) from t;
select id from t where ctid >= :'low' and ctid < :'high' order by id limit 2 for update;

-- Views, and a condition that another user has put first.
create view v as select *, ctid as place from t where a > 2;
select count(*), sum(id) from v where place >= :'low' and place < :'high';
create view barrier with (security_barrier) as select *, ctid as place from t where a > 2;
select count(*), sum(id) from barrier where place >= :'low' and place < :'high';

-- Partitions and heirs: the range is one of each table.
create table p (id int, a int) partition by range (id);
create table p1 partition of p for values from (0) to (1000);
create table p2 partition of p for values from (1000) to (2000);
insert into p select i, i % 3 from generate_series(0, 1999) i;
select ctid as low from p1 where id = 100 \gset
select count(*), sum(id) from p1 where ctid < :'low';
select count(*), sum(id) from p where ctid < '(0,101)' and a = 1;
select tableoid::regclass, count(*) from p where ctid < '(0,101)' group by 1 order by 1;

-- The same in a cursor, backwards, too.
begin;
declare c scroll cursor for select id from t where ctid >= :'low' order by id;
fetch 2 from c;
fetch backward 1 from c;
commit;

drop view v, barrier;
drop table t, p;
