-- Partitioned tables: bounds, routing, pruning, indexes.
create table lp (a char, b int) partition by list (a);
create table lp_default partition of lp default;
create table lp_ef partition of lp for values in ('e', 'f');
create table lp_ad partition of lp for values in ('a', 'd');
create table lp_bc partition of lp for values in ('b', 'c');
create table lp_g partition of lp for values in ('g');
create table lp_null partition of lp for values in (null);
create table lp_x partition of lp for values in ('a');
explain (costs off) select * from lp;
explain (costs off) select * from lp where a > 'a' and a < 'd';
explain (costs off) select * from lp where a > 'a' and a <= 'd';
explain (costs off) select * from lp where a = 'a';
explain (costs off) select * from lp where a is not null;
explain (costs off) select * from lp where a is null;
explain (costs off) select * from lp where a = 'a' or a = 'c';
insert into lp values ('a',1),('b',2),('e',3),(null,4),('z',5);
select tableoid::regclass, * from lp order by b;
update lp set a = 'b' where b = 1 returning tableoid::regclass, *;
select tableoid::regclass, * from lp order by b;
delete from lp where b = 5 returning *;
insert into lp_ad values ('x',1);
insert into lp_default values ('a',1);
insert into lp_default values ('q',1);
create table lp_q partition of lp for values in ('q');
\d+ lp
\d+ lp_ad
\d+ lp_default
create table r (id int not null, v numeric default 2.5, t text) partition by range (id);
create table r1 partition of r for values from (minvalue) to (10);
create table r2 partition of r for values from (10) to (20) partition by list (t);
create table r2a partition of r2 for values in ('a');
create table r3 partition of r for values from (15) to (25);
create table r3 partition of r for values from (25) to (20);
insert into r select g, g, 'a' from generate_series(1,19) g;
select tableoid::regclass, count(*), min(id), max(id) from r group by 1 order by 1;
insert into r values (12, 1, 'b');
insert into r values (50, 1, 'b');
copy r from stdin;
3	3	x
12	1	a
13	1	q
\.
alter table r add primary key (v);
alter table r2 add constraint x unique (t, id);
create index on r (v);
\d r
\d r1
\d r2a
\d+ r2
select * from pg_partition_tree('r');
select relname, relkind, relispartition from pg_class where relname like 'r_%v_idx' or relname = 'r_v_idx' order by 1;
create table h (a int, b text) partition by hash (a);
create table h0 partition of h for values with (modulus 4, remainder 0);
create table h1 partition of h for values with (modulus 4, remainder 1);
create table h2 partition of h for values with (modulus 4, remainder 2);
create table h3 partition of h for values with (modulus 8, remainder 3);
create table h4 partition of h for values with (modulus 8, remainder 3);
create table h4 partition of h for values with (modulus 12, remainder 7);
create table h4 partition of h for values with (modulus 8, remainder 7);
insert into h select g, g::text from generate_series(1,100) g;
select tableoid::regclass, count(*), sum(a) from h group by 1 order by 1;
explain (costs off) select * from h where a = 7;
select pg_get_partition_constraintdef('h1'::regclass) like 'satisfies_hash_partition(%oid, 4, 1, a)';
create table att (b text, a int);
insert into att values ('x', 1000);
alter table h detach partition h1;
\d h1
alter table h attach partition att for values with (modulus 4, remainder 1);
alter table h attach partition h1 for values with (modulus 4, remainder 1);
drop table h, lp, r;
drop table att, h1;
-- What a bound may be.
create table b (a int, b text) partition by range (a, b);
create table b1 partition of b for values from (1, minvalue) to (1, 'a');
create table b1 partition of b for values from (1, minvalue) to (1, minvalue);
create table b1 partition of b for values from (1, 'a', 2) to (1, 'b', 3);
create table b2 partition of b for values in (1);
create table b2 partition of b for values from (minvalue, 'a') to (1, 'b');
create table b2 partition of b for values from (null, 'a') to (1, 'b');
create table b2 partition of b for values from ('x', 'a') to (1, 'b');
create table b2 partition of b for values from (a, 'a') to (1, 'b');
create table b2 partition of b for values from (1, 'b') to (1 + 1, maxvalue);
create table b3 partition of b for values with (modulus 2, remainder 0);
create table bd partition of b default;
create table be partition of b default;
\d b1
\d b2
insert into b values (1, 'A'), (1, 'b'), (2, 'zzz'), (3, 'x'), (null, 'n'), (1, null);
select tableoid::regclass, * from b order by 2, 3, 1;
explain (costs off) select * from b where a = 1;
explain (costs off) select * from b where a = 1 and b = 'b';
explain (costs off) select * from b where a > 2;
select tableoid::regclass, * from b where a = 1 and b is null;
create table b4 partition of b for values from (3, 'a') to (4, 'a');
delete from b where a = 3;
create table b4 partition of b for values from (3, 'a') to (4, 'a');
select pg_get_partition_constraintdef('b1'::regclass);
select pg_get_partition_constraintdef('b4'::regclass);
drop table b;
create table h (a int) partition by hash (a);
create table h1 partition of h default;
create table h1 partition of h for values with (modulus 0, remainder 0);
create table h1 partition of h for values with (modulus 2, remainder 2);
create table h1 partition of h for values with (modulus 2, remainder -1);
drop table h;
create table k (a int, b int generated always as (a * 2) stored) partition by list (b);
create table k (a int, b int) partition by list (a, b);
create table k (a int, b int) partition by list (c);
create table k (a int, b int) partition by list (xmin);
create table k (a int, b int) partition by range ((1));
create table k (a int, b int) partition by list (a);
create table k1 (a int) inherits (k);
create table k1 partition of k (a not null, b default 3, check (b > 0)) for values in (1, 2, null);
create table k2 partition of k (c default 3) for values in (3);
create table k2 partition of k1 for values in (3);
\d+ k1
insert into k (a) values (1), (2);
insert into k values (1, -1);
insert into k1 (a) values (null);
insert into k1 (a, b) values (3, 3);
update k set a = 3;
create table k3 partition of k (b not null) for values in (3);
update k set a = 3 returning tableoid::regclass, *;
update k3 set a = 1;
select tableoid::regclass, * from k order by 2, 3;
alter table k1 add column c int;
alter table k drop column a;
alter table k alter column a type bigint;
alter table k1 drop column b;
alter table only k add column c int;
alter table k add column c text default 'c';
alter table k rename column a to aa;
select tableoid::regclass, * from k order by 2, 3;
\d k
alter table k add unique (b);
alter table k add unique (aa, b);
create index ki on k (lower(c)) where b > 1;
create unique index on k (c);
\d k1
drop index k1_lower_idx;
alter table k1 drop constraint k1_aa_b_key;
insert into k values (1, 3);
insert into k values (1, 3);
alter table k drop constraint k_aa_b_key;
drop index ki;
\d k1
truncate only k;
truncate k;
select count(*) from k;
-- Columns that have other numbers in a partition.
create table o (x int, id int, drop1 text, v text) partition by range (id);
alter table o drop column drop1;
create table o1 (v text, gone int, id int, x int);
alter table o1 drop column gone;
alter table o attach partition o1 for values from (1) to (100);
create table o2 partition of o for values from (100) to (200);
create unique index on o (id);
insert into o (id, x, v) select g, -g, 'v' || g from generate_series(1, 199) g;
select tableoid::regclass, o from o where id in (5, 105) order by 1;
explain (costs off) select * from o where id = 5;
select * from o where id = 5;
select * from o where id between 98 and 101 order by id;
update o set id = id + 100, v = v || '!' where id = 7;
delete from o where id = 107;
update o set id = id + 100, v = v || '!' where id = 7 returning tableoid::regclass, *;
select * from o2 where id = 107;
select count(*), sum(x) from o; select count(*) from o1;
prepare q (int) as select * from o where id = $1;
execute q(50); execute q(150); execute q(null);
select a.v, b.v from o a join o b on b.id = a.id + 100 where a.id < 4 order by 1;
merge into o using generate_series(1, 300, 100) g on o.id = g when matched then update set v = 'merged' when not matched then insert (id, v) values (g - 200, 'new');
merge into o using generate_series(1, 103, 51) g on o.id = g when matched then update set v = 'merged ' || g;
select tableoid::regclass, * from o where v like 'merged%' order by id;
copy o (id, v) from stdin;
-1	no
\.
begin; select id from o where id in (6, 106) order by id for update; rollback;
alter table o detach partition o3;
alter table o detach partition o1 ;
\d o1
select count(*) from o;
update o1 set id = 500 where id = 1;
alter table o attach partition o1 for values from (1) to (100);
update o1 set id = 1 where id = 500;
alter table o attach partition o1 for values from (50) to (150);
alter table o attach partition o1 for values from (1) to (100);
alter table o attach partition o1 for values from (1) to (100);
\d o1
alter table o1 no inherit o;
create table o3 (id int, x int, v text, w int);
alter table o attach partition o3 for values from (300) to (400);
alter table o3 drop column w, drop column v;
alter table o attach partition o3 for values from (300) to (400);
drop table o3;
-- Indexes that are there before.
create table i (a int, b int) partition by list (a);
create table i1 partition of i for values in (1);
create index i1_own on i1 (b);
create index i_b on i (b);
create index on only i (a);
select indexrelid::regclass, indisvalid from pg_index where indrelid in ('i'::regclass, 'i1'::regclass) order by indexrelid::regclass::text;
create index i1_a on i1 (a);
alter index i_a_idx attach partition i1_b_idx;
alter index i_a_idx attach partition i1_own;
alter index i_a_idx attach partition i1_a;
select indexrelid::regclass, indisvalid from pg_index where indrelid in ('i'::regclass, 'i1'::regclass) order by indexrelid::regclass::text;
select relid::regclass, parentrelid::regclass, isleaf, level from pg_partition_tree('i_b') order by level;
select pg_partition_root('i1_a'), pg_partition_root('i1');
drop index i1_a;
drop table i;
-- Sub-partitions.
create table s (a int, b date) partition by list (a);
create table s1 partition of s for values in (1) partition by range (b);
create table s11 partition of s1 for values from ('2020-01-01') to ('2021-01-01');
create table s1d partition of s1 default;
create table s2 partition of s for values in (2);
insert into s values (1, '2020-05-05'), (1, '2021-05-05'), (1, null), (2, null);
insert into s1 values (2, '2020-05-05');
select tableoid::regclass, * from s order by 2, 3;
explain (costs off) select * from s where b = '2020-05-05' and a = 1;
update s set b = b + 365 where a = 1;
select tableoid::regclass, * from s order by 2, 3;
update s1 set a = 2 where b is null;
update s set a = 2 where b is null;
select tableoid::regclass, * from s order by 2, 3;
delete from s1 where b > '2022-01-01' returning *;
select relid::regclass from pg_partition_ancestors('s11');
drop table s1;
select tableoid::regclass, * from s order by 2, 3;
drop table s, o, k;
-- ON CONFLICT, by the parts of the parent's index.
create table u (id int, v text, n int default 1, drop1 int) partition by range (id);
alter table u drop column drop1;
create table u1 (n int default 1, v text, id int);
alter table u attach partition u1 for values from (0) to (10);
create table u2 partition of u for values from (10) to (20);
insert into u values (1, 'a') on conflict (id) do nothing;
alter table u add primary key (id);
insert into u values (1, 'a'), (11, 'b') on conflict (id) do nothing;
insert into u values (1, 'c'), (12, 'd') on conflict do nothing returning tableoid::regclass, *;
insert into u values (1, 'e'), (11, 'f'), (13, 'g') on conflict (id) do update set v = u.v || excluded.v, n = u.n + 1
    returning tableoid::regclass, *;
insert into u values (1, 'h') on conflict (id) do update set v = 'no' where u.n = 1;
insert into u values (1, 'i') on conflict (id) do update set id = 15;
insert into u values (1, 'i') on conflict on constraint u_pkey do update set id = 5 returning *;
insert into u values (30, 'i') on conflict (id) do nothing;
insert into u1 (id) values (5) on conflict (id) do update set v = 'direct' returning *;
insert into u values (2, 'x'), (2, 'y') on conflict (id) do update set v = 'twice';
select tableoid::regclass, * from u order by id;
-- The row of an error is one of the table that was written to.
alter table u add check (n < 5);
insert into u values (3, 'q', 9);
insert into u1 values (9, 'q', 3);
drop table u;
-- What a key needs.
create table w (a int, b int) partition by range ((a, b));
create table w (a int, b int) partition by range (('x'::text));
create domain dom as int;
create table w (a dom, b int) partition by list (a);
drop domain dom;
drop domain dom cascade;
table w;
-- Keys of tables that have one, or whose rows have none.
create table x (a int, b int) partition by range (a);
create table x1 partition of x (b primary key) for values from (0) to (10);
drop table x1;
create table x1 partition of x for values from (0) to (10);
alter table x1 add primary key (a, b);
alter table x add primary key (a);
alter table x1 drop constraint x1_pkey;
alter table x1 alter a drop not null, alter b drop not null;
insert into x values (1, null);
alter table x add primary key (b, a);
alter table x1 add primary key (b);
delete from x;
alter table x add primary key (b, a);
create unique index xi on x (a) include (b);
insert into x values (1, 1);
insert into x values (1, 2);
alter index xi attach partition x1_pkey;
create table y (a int check (a > 0) no inherit) partition by list (a);
drop table x;
-- Only the partitions that a statement needs are locked.
create table lockp (a int, b text) partition by range (a);
create table lockp1 partition of lockp for values from (0) to (10);
create table lockp2 partition of lockp for values from (10) to (20);
create table lockp3 partition of lockp for values from (20) to (30) partition by list (b);
create table lockp3x partition of lockp3 for values in ('x');
create table lockp3y partition of lockp3 for values in ('y');
create view locked as select relation::regclass, mode from pg_locks
  where locktype = 'relation' and relation::regclass::text in ('lockp', 'lockp1', 'lockp2', 'lockp3x', 'lockp3y') order by 1, 2;
insert into lockp select i, case i % 2 when 0 then 'x' else 'y' end from generate_series(0, 29) i;
begin; select count(*) from lockp where a = 5; select * from locked; rollback;
begin; select count(*) from lockp where a > 15 and b = 'y'; select * from locked; rollback;
begin; update lockp set b = 'y' where a = 25 and b = 'y'; select * from locked; rollback;
begin; delete from lockp where a < 3; select * from locked; rollback;
begin; select count(*) from (select from lockp where a = 12 for update) q; select * from locked; rollback;
begin; update lockp set a = 22 where a = 4; select tableoid::regclass, * from lockp where a = 22 order by 1; rollback;
begin; merge into lockp using (values (25)) v(a) on lockp.a = v.a and lockp.a = 25 when matched then update set a = 15; select tableoid::regclass, a from lockp where a = 15 order by 1; rollback;
select tableoid::regclass, count(*) from lockp group by 1 order by 1;
drop view locked;
drop table lockp;

-- Bounds within a transaction that changes them again and again.
create table shelf (a int) partition by range (a);
begin;
create table shelf1 partition of shelf for values from (0) to (10);
create table shelf2 partition of shelf for values from (10) to (20);
savepoint s;
create table shelf3 partition of shelf for values from (15) to (25);
rollback to s;
alter table shelf detach partition shelf2;
create table shelf3 partition of shelf for values from (15) to (25);
insert into shelf values (15), (5);
savepoint s;
alter table shelf attach partition shelf2 for values from (10) to (20);
rollback to s;
drop table shelf3;
alter table shelf attach partition shelf2 for values from (10) to (20);
create table rest partition of shelf default;
insert into shelf values (15), (30);
savepoint s;
create table shelf4 partition of shelf for values from (30) to (40);
rollback to s;
create table other_rest partition of shelf default;
rollback to s;
alter table shelf detach partition rest;
create table shelf4 partition of shelf for values from (30) to (40);
insert into shelf values (30);
select tableoid::regclass, a from shelf order by a;
rollback;
create table shelf1 partition of shelf for values from (5) to (15);
insert into shelf values (5);
insert into shelf values (15);
select tableoid::regclass, a from shelf order by a;
drop table shelf;

-- Moduli that do not divide each other.
create table heap (a int) partition by hash (a);
create table heap1 partition of heap for values with (modulus 4, remainder 1);
create table heap2 partition of heap for values with (modulus 8, remainder 2);
create table heap3 partition of heap for values with (modulus 6, remainder 0);
create table heap3 partition of heap for values with (modulus 3, remainder 0);
create table heap3 partition of heap for values with (modulus 12, remainder 0);
create table heap3 partition of heap for values with (modulus 2, remainder 1);
create table heap3 partition of heap for values with (modulus 16, remainder 10);
create table heap3 partition of heap for values with (modulus 16, remainder 6);
drop table heap;

-- A label between two others moves the bounds of an enum.
create type rank_of as enum ('low', 'high');
create table ranks (r rank_of) partition by range (r);
create table ranks1 partition of ranks for values from ('low') to ('high');
insert into ranks values ('low');
alter type rank_of add value 'middle' before 'high';
insert into ranks values ('middle');
select tableoid::regclass, r from ranks order by r;
drop table ranks;
drop type rank_of;

-- DETACH CONCURRENTLY where it is not possible, FINALIZE of what is not pending.
create table shelf (a int) partition by range (a);
create table shelf1 partition of shelf for values from (1) to (10);
create table book (a int);
begin;
alter table shelf detach partition shelf1 concurrently;
rollback;
alter table shelf detach partition shelf1 finalize;
alter table shelf detach partition book finalize;
create table shelf0 partition of shelf default;
alter table shelf detach partition shelf1 concurrently;
alter table shelf detach partition shelf0 concurrently;
drop table shelf, book;

-- DETACH CONCURRENTLY: the partition keeps its bound as a constraint, unless it has that already.
create table shelf (a int, b text) partition by range (a, b);
create table shelf1 partition of shelf for values from (1, 'a') to (10, 'm');
create table shelf2 partition of shelf for values from (10, 'm') to (20, 'm') partition by list (b);
create table shelf2b partition of shelf2 for values in ('b');
create table shelf3 (a int not null, b text, check (b is not null and a = 30 and b >= 'a' and b < 'c'));
alter table shelf attach partition shelf3 for values from (30, 'a') to (30, 'c');
create unique index on shelf (a, b);
create table reader (a int, b text, foreign key (a, b) references shelf (a, b));
insert into shelf values (1, 'a'), (12, 'b'), (30, 'b');
insert into reader values (30, 'b');
alter table shelf detach partition shelf1 concurrently;
alter table shelf detach partition shelf2 concurrently;
\set VERBOSITY sqlstate
alter table shelf detach partition shelf3 concurrently;
\set VERBOSITY default
delete from reader;
alter table shelf detach partition shelf3 concurrently;
select tableoid::regclass, a from shelf;
\d shelf1
\d shelf2
\d shelf2b
\d shelf3
insert into shelf1 values (0, 'a');
insert into reader values (1, 'a');
drop table shelf, shelf1, shelf2, shelf3, reader;
create table shelf (a int) partition by hash (a);
create table shelf0 partition of shelf for values with (modulus 2, remainder 0);
alter table shelf detach partition shelf0 concurrently;
\d shelf0
drop table shelf, shelf0;

-- A column that the partition's definition lists belongs to the parent all the same.
create table shelf (a int, b text) partition by list (a);
create table shelf1 partition of shelf (b unique) for values in (1);
alter table shelf drop b;
\d shelf1
drop table shelf;
