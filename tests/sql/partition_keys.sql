-- Foreign keys of partitioned tables.
create table pk (a int primary key, b text unique);
insert into pk select n, 'b' || n from generate_series(1, 10) n;
create table fk (id int, a int references pk on update cascade on delete cascade, b text) partition by list (a);
create table fk1 partition of fk for values in (1, 2, 3);
create table fk2 (b text, junk int, a int, id int);
alter table fk2 drop column junk;
insert into fk2 values ('x', 4, 1);
alter table fk attach partition fk2 for values in (4, 5, 77);
create table fk3 partition of fk for values in (6, 7, 8) partition by range (id);
create table fk3a partition of fk3 for values from (0) to (100);
create table fkd partition of fk default;
create view keys as select conrelid::regclass, conname, (select p.conrelid::regclass from pg_constraint p where p.oid = c.conparentid) parent,
    conislocal, coninhcount, connoinherit, convalidated, confupdtype, confdeltype, pg_get_constraintdef(oid)
    from pg_constraint c where contype = 'f' and confrelid = 'pk'::regclass;
select * from keys order by 1, 2;
insert into fk values (1, 1), (2, 4), (3, 6), (4, 9), (5, null);
insert into fk values (6, 11);
insert into fk2 values ('y', 77, 6);
insert into fk3a values (200, 6);
copy fk (id, a) from stdin;
7	1
8	12
\.
select tableoid::regclass, * from fk order by id, a;
update fk set a = 5 where a = 4 and id = 2;
update fk set a = 7 where id = 1;
update fk set a = 78 where id = 1;
-- a cascade moves rows to other partitions
update pk set a = 77 where a = 7;
select tableoid::regclass, * from fk order by id, a;
delete from pk where a in (77, 5);
select tableoid::regclass, * from fk order by id, a;
update pk set a = 20 where a = 9;
select tableoid::regclass, * from fk order by id, a;
truncate pk;
alter table fk1 drop constraint fk_a_fkey;
alter table fk1 rename constraint fk_a_fkey to other;
alter table only fk add foreign key (b) references pk (b);
-- what was a partition keeps its key
alter table fk detach partition fk2;
insert into fk2 values ('z', 99, 1);
select * from keys order by 1, 2;
alter table fk attach partition fk2 for values in (4, 5, 77);
select * from keys order by 1, 2;
alter table fk drop constraint fk_a_fkey;
select * from keys order by 1, 2;
-- existing rows are looked at, of all partitions
insert into fk values (9, 5, 'none');
alter table fk add constraint of_b foreign key (b) references pk (b) on delete set null deferrable;
delete from fk where b = 'none';
alter table fk add constraint of_b foreign key (b) references pk (b) on delete set null deferrable;
select conrelid::regclass, convalidated from pg_constraint where conname = 'of_b' order by 1;
insert into fk values (10, 1, 'b1'), (11, 6, 'b1');
delete from pk where b = 'b1';
select tableoid::regclass, * from fk where id >= 10 order by id;
begin;
set constraints of_b deferred;
insert into fk values (12, 1, 'later');
insert into pk values (100, 'later');
commit;
begin;
set constraints of_b deferred;
insert into fk values (13, 1, 'never');
set constraints of_b immediate;
rollback;
-- ALTER CONSTRAINT
alter table fk alter constraint of_b deferrable initially deferred;
select conrelid::regclass, condeferrable, condeferred from pg_constraint where conname = 'of_b' order by 1;
alter table fk alter constraint of_b not deferrable;
select conrelid::regclass, condeferrable, condeferred from pg_constraint where conname = 'of_b' order by 1;
alter table pk alter constraint pk_pkey deferrable;
alter table pk alter constraint none deferrable;
create table refuses (b text references pk (b)) partition by list (b);
create table refuses1 partition of refuses for values in ('later');
insert into refuses values ('later');
delete from pk where a = 100;
delete from fk where id = 12;
delete from pk where a = 100;
drop table pk;
drop table pk cascade;
select conrelid::regclass, conname from pg_constraint where contype = 'f' and conrelid::regclass::text ~ '^(fk|refuses)' order by 1;
drop table fk, refuses;
