-- IN over a subquery that refers to the query around it: a semi join, or an anti join of columns without NULLs.
create table ci_left (id int not null, a int, p int, n int not null);
create table ci_right (id int not null, a int, p int, n int not null);
insert into ci_left select i, case when i % 7 <> 0 then i % 40 end, case when i % 5 <> 0 then i % 6 end, i % 30 from generate_series(1, 400) i;
insert into ci_right select i, case when i % 13 <> 0 then i % 20 end, case when i % 11 <> 0 then i % 5 end, i % 25 from generate_series(1, 200) i;

select count(*), sum(id) from ci_left l where a in (select a from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where a in (select a from ci_right r where r.p = l.p and r.n > l.n);
select count(*), sum(id) from ci_left l where a in (select r.a + l.p from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where a in (select l.p from ci_right r);
select count(*), sum(id) from ci_left l where 5 in (select a from ci_right r where r.p = l.p and r.n < 3);
select count(*), sum(id) from ci_left l where a > any (select a from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where (a, n) in (select a, n from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where a in (select r.a from ci_right r join ci_right s using (id) where s.p = l.p and r.n < 9);
select count(*), sum(id) from ci_left l where a in (select r.a from ci_right r left join ci_right s on s.id = r.n and s.p = l.p);
select count(*), sum(id) from ci_left l where a in (select r.a from ci_right r left join ci_right s on s.id = r.n where s.p = l.p);
select count(*), sum(id) from ci_left l where a in (select a from (select a, p, id from ci_right where n < 20) r where r.p = l.p);
select count(*), sum(id) from ci_left l where a in (select a from ci_right r where r.p = l.p and r.id in (select id from ci_left m where m.n = l.n));
select count(*), sum(id) from ci_left l where a in (select max(a) from ci_right r where r.p = l.p group by n);
select count(*), sum(id) from ci_left l where a in (select a from ci_right r where r.p = l.p order by id limit 3);
select count(*), sum(id) from ci_left l where a in (select distinct a from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where a in (select a from ci_right r where r.p = l.p union select l.n);
select count(*), sum(id) from ci_left l where a in (select a from ci_right r where r.p = l.p) or id = 1;
select count(*), sum(id) from ci_left l where (a in (select a from ci_right r where r.p = l.p)) is null;
-- NOT IN.
select count(*), sum(id) from ci_left l where n not in (select n from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where n not in (select n from ci_right r where r.p = l.p and r.id > l.id);
select count(*), sum(id) from ci_left l where n not in (select n + 0 from ci_right r where r.id > l.id);
select count(*), sum(id) from ci_left l where n not in (select a from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where a not in (select n from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where a not in (select a from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where (n, id) not in (select n, id from ci_right r where r.p = l.p);
select count(*), sum(id) from ci_left l where n <> all (select n from ci_right r where r.p = l.p);
-- Between joins, below outer ones, in changes.
select count(*), sum(l.id) from ci_left l join ci_right r on r.id = l.id where l.a in (select a from ci_right s where s.p = l.p and s.n = r.n);
select count(*), sum(l.id), count(r.id) from ci_left l left join ci_right r on r.id = l.id and r.a in (select a from ci_right s where s.p = l.p);
select count(*), sum(l.id), count(r.id) from ci_left l left join ci_right r on r.id = l.id where r.a in (select a from ci_right s where s.p = l.p);
select count(*), sum(l.id), sum(x.n) from ci_left l, lateral (select n from ci_right r where r.id = l.id and r.a in (select a from ci_right s where s.p = l.p)) x;
update ci_left l set n = n + 100 where a in (select a from ci_right r where r.p = l.p and r.n = l.n);
select count(*), sum(n) from ci_left;
delete from ci_left l where a in (select a from ci_right r where r.p = l.p and r.n > l.n);
select count(*), sum(n) from ci_left;
drop table ci_left, ci_right;

-- An index gives the order of rows; a hash join whose table does not fit does not keep it.
set work_mem = '64kB';
create table ci_a (k int, j int);
create table ci_b (id int, x text);
insert into ci_a select i, i % 20000 from generate_series(1, 20000) i;
insert into ci_b select i, 'x' from generate_series(0, 19999) i;
create index on ci_a (k);
analyze ci_a, ci_b;
select a.k from ci_a a join ci_b b on b.id = a.j order by a.k limit 5;
select a.k from ci_a a left join ci_b b on b.id = a.j order by a.k fetch first 3 rows with ties;
select a.k, row_number() over (order by a.k) from ci_a a join ci_b b on b.id = a.j order by 1 offset 10000 limit 2;
drop table ci_a, ci_b;
