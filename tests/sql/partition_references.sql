-- Foreign keys that refer to partitioned tables.
create table pk (a int, b int, note text, primary key (b, a)) partition by list (a);
create table pk1 partition of pk for values in (1, 2) partition by range (b);
create table pk1a partition of pk1 for values from (0) to (10);
create table pk1b partition of pk1 for values from (10) to (20);
create table pk2 (note text, junk int, b int not null, a int not null);
alter table pk2 drop column junk;
alter table pk attach partition pk2 for values in (3, 4);
create table fk (id int, a int, b int, foreign key (a, b) references pk (a, b) on update cascade on delete cascade);
create table fn (id int, a int default 1, b int default 1, foreign key (a, b) references pk (a, b) on update set default on delete set null (b));
create table fp (id int, b bigint, a smallint, foreign key (b, a) references pk) partition by range (id);
create table fp1 partition of fp for values from (0) to (100);
create table fp2 (a smallint, b bigint, id int);
alter table fp attach partition fp2 for values from (100) to (200);
create table pk3 partition of pk for values in (5);
-- one key of each table's own, one part of it a partition
create view keys as select conrelid::regclass t, confrelid::regclass r, conparentid = 0 top, conislocal l, coninhcount n, convalidated v,
    pg_get_constraintdef(oid) def from pg_constraint c where contype = 'f';
select * from keys order by t::text, r::text;
insert into pk values (1, 1, 'x'), (1, 11, 'y'), (2, 2, 'z'), (3, 3, 'p'), (4, 4, 'q'), (5, 5, 'r');
insert into fk values (1, 1, 1), (2, 1, 11), (3, 3, 3), (4, 5, 5), (5, null, 7);
insert into fk values (6, 1, 2);
insert into fk values (6, 9, 1);
insert into fn values (1, 2, 2), (2, 4, 4), (3, 1, 1);
insert into fp values (1, 1, 1), (101, 3, 3), (2, 5, 5);
insert into fp values (3, 12345678901, 1);
copy fk (id, a, b) from stdin;
7	3	3
8	3	4
\.
\set VERBOSITY sqlstate
delete from pk where a = 1 and b = 1;
delete from pk1a where b = 1;
delete from fp;
delete from pk where a = 1 and b = 1;
select * from fk order by id;
select * from fn order by id;
-- a change within a partition, one that moves the row, and one into another level
update pk set b = 12 where b = 11;
update pk set a = 4 where a = 3 and b = 3;
update pk set a = 3, b = 33 where a = 1;
select * from fk order by id;
insert into pk values (1, 1, 'default');
update pk set a = 3, b = 2 where b = 2;
select * from fn order by id;
select tableoid::regclass, * from pk order by a, b;
-- keys of one statement may change places
create table sw (a int primary key) partition by list (a);
create table sw1 partition of sw for values in (1, 2);
create table sw2 partition of sw for values in (3, 4);
create table swf (a int references sw deferrable);
insert into sw values (1), (3);
insert into swf values (1), (3);
begin;
set constraints all deferred;
delete from sw;
insert into sw values (3), (1);
commit;
begin;
set constraints swf_a_fkey deferred;
delete from sw where a = 3;
commit;
begin;
set constraints all deferred;
insert into swf values (4);
update sw set a = 4 where a = 3;
set constraints all immediate;
rollback;
update sw set a = 4 where a = 3;
select * from sw order by a;
-- what may not go, and what goes with what
alter table sw detach partition sw2;
drop table sw2;
truncate sw;
truncate sw1;
alter table sw drop constraint sw_pkey;
delete from swf where a = 3;
alter table sw detach partition sw2;
select * from keys where t = 'swf'::regclass order by r::text;
insert into swf values (3);
alter table sw attach partition sw2 for values in (3, 4);
insert into swf values (3);
delete from sw2 where a = 3;
truncate sw cascade;
select count(*) from swf;
drop table sw2 cascade;
select * from keys where t = 'swf'::regclass order by r::text;
drop table sw, swf;
-- keys directly to a partition in between
create table mid (a int, b int, foreign key (b, a) references pk1);
create table leaf (a int, b int, foreign key (b, a) references pk1a on delete cascade);
insert into leaf values (1, 1);
update pk set a = 3 where a = 1 and b = 1;
drop table mid;
delete from fn;
select * from leaf;
update pk set a = 4, b = 44 where a = 1 and b = 1;
select * from leaf;
-- a table that refers to itself
create table tree (id int primary key, up int references tree on delete cascade) partition by range (id);
create table tree1 partition of tree for values from (0) to (10);
create table tree2 partition of tree for values from (10) to (20);
insert into tree values (1, null), (11, 1), (2, 11), (12, 2), (3, 3);
insert into tree values (4, 14);
select * from keys where t::text like 'tree%' order by t::text, r::text;
alter table tree detach partition tree2;
delete from tree where id = 1;
select tableoid::regclass, * from tree order by id;
alter table tree detach partition tree2;
select conrelid::regclass, relname, count(*) from pg_constraint, pg_class r where contype = 'f' and r.oid = confrelid and conrelid::regclass::text like 'tree%' group by 1, 2 order by 1, 2;
-- keys that partitions bring, and take with them
create table brought (id int, b int, a int, foreign key (b, a) references pk);
select count(*) from keys where t = 'brought'::regclass;
create table fq (id int, b int, a int, foreign key (b, a) references pk) partition by list (id);
alter table fq attach partition brought for values in (1);
select * from keys where t in ('brought'::regclass, 'fq'::regclass) order by t::text, r::text;
insert into fq values (1, 77, 1);
alter table fq detach partition brought;
select count(*) from keys where t = 'brought'::regclass;
insert into brought values (1, 77, 1);
-- altered, renamed, disabled
alter table fq alter constraint fq_b_a_fkey deferrable;
select condeferrable, count(*) from pg_constraint where conrelid = 'fq'::regclass group by 1;
alter table fk rename constraint fk_a_b_fkey to k;
select * from keys where t = 'fk'::regclass order by r::text;
alter table fk drop constraint k;
select count(*) from keys where t = 'fk'::regclass;
alter table fk add constraint k foreign key (a, b) references pk (a, b);
delete from fk where (a, b) not in (select a, b from pk) or a is null;
alter table fk add constraint k foreign key (a, b) references pk (a, b);
alter table pk2 disable trigger all;
delete from pk2;
alter table pk2 enable trigger all;
select a, b from fk where not exists (select from pk where (pk.a, pk.b) = (fk.a, fk.b)) order by a, b;
-- a default that is the key that goes
create table dp (a int primary key) partition by list (a);
create table dp1 partition of dp for values in (0, 1);
create table dc (a int default 0 references dp on delete set default on update set default);
insert into dp values (0), (1);
insert into dc values (1);
delete from dp where a = 1;
delete from dp where a = 0;
select * from dc;
alter table dc add constraint k foreign key (none) references dp;
alter table dc add constraint k foreign key (a) references dp (none);
alter table dc add constraint k foreign key (ctid) references dp;
drop table dc, dp;
-- dropped
drop table pk;
drop table pk cascade;
select count(*) from keys where r::text like 'pk%';
drop view keys;
drop table fk, fn, fp, fq, brought, leaf, tree, tree2;
