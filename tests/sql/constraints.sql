-- Constraints, what breaks them, and what follows from that.
create table parent (id int primary key, code text not null unique, n int check (n > 0), constraint small check (n < 100 or code = 'big'));
insert into parent values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4);
insert into parent values (1, 'x', 1);
insert into parent values (5, 'a', 1);
insert into parent values (5, null, 1);
insert into parent values (5, 'x', 0);
insert into parent values (5, 'x', 100);
insert into parent values (5, 'big', 100), (6, 'e', null);
update parent set n = -1 where id = 1;
create table child (id serial primary key, parent int references parent on delete cascade on update cascade, other int default 2 references parent on delete set null, third int default 4 references parent (id) on delete set default);
insert into child (parent, other) values (1, 2), (3, 3);
insert into child (parent) values (99);
update parent set id = 30 where id = 3;
select * from child order by id;
delete from parent where id = 1;
select * from child order by id;
delete from parent where id = 30;
select * from child order by id;
create table strict (p text references parent (code));
insert into strict values ('b'), (null);
delete from parent where code = 'b';
update parent set code = 'bb' where code = 'b';
drop table parent;
truncate parent;
truncate parent, child, strict;
select count(*) from parent;
create table later (id int primary key, up int references later deferrable initially deferred);
begin;
insert into later values (2, 1);
insert into later values (1, null);
commit;
begin;
insert into later values (4, 3);
commit;
begin;
insert into later values (4, 3);
set constraints all immediate;
rollback;
select * from later order by id;
create table swap (id int, constraint swap_id unique (id) deferrable);
insert into swap values (1), (2);
update swap set id = 3 - id;
select * from swap order by id;
create table pair (a int, b int, c int, unique (a, b), unique nulls not distinct (c), primary key (a, b, c), foreign key (a, b) references pair (a, b));
insert into pair values (1, 1, 1), (1, 2, 2);
insert into pair values (1, 1, 3);
insert into pair values (1, null, 3);
create table lazy (a int);
insert into lazy values (1), (1), (-1), (null);
alter table lazy add constraint positive check (a > 0);
alter table lazy add constraint positive check (a > 0) not valid;
insert into lazy values (-2);
alter table lazy validate constraint positive;
alter table lazy add primary key (a);
create unique index on lazy (a);
alter table lazy alter a set not null;
delete from lazy where a is null or a < 0 or ctid = (select min(ctid) from lazy where a = 1);
alter table lazy validate constraint positive, alter a set not null, add unique (a);
insert into lazy values (1);
alter table lazy drop constraint positive;
insert into lazy values (-1);
select * from lazy order by a;
create table bad (a int primary key, b int primary key);
create table bad (a int references missing);
create table bad (a int references parent (n));
create table bad (a int check (b > 0));
create unique index partial on parent (n) where n < 3;
create unique index lower_code on parent (lower(code));
insert into parent values (1, 'A', 1), (2, 'B', 5);
insert into parent values (3, 'a', 7);
insert into parent values (3, 'z', 1);
\d parent
\d child
\d later
-- Marks on indexes.
alter table parent cluster on lower_code;
alter table parent cluster on partial;
alter table parent cluster on missing;
alter table parent replica identity using index parent_pkey;
alter table parent replica identity using index partial;
alter table parent replica identity using index lower_code;
select relname, indisclustered, indisreplident from pg_index join pg_class c on c.oid = indexrelid where indrelid = 'parent'::regclass order by 1;
select relreplident from pg_class where oid = 'parent'::regclass;
alter table parent set without cluster, replica identity full;
-- no table has OIDs, and no view files
alter table parent set without oids, set tablespace pg_default;
create view parents as select 1 as one;
alter table parents set without oids;
alter table parents set tablespace pg_default;
drop view parents;
select bool_or(indisclustered), bool_or(indisreplident) from pg_index where indrelid = 'parent'::regclass;
select relreplident from pg_class where oid = 'parent'::regclass;
-- a row that violates its own constraints and also conflicts with another row
create table own (id int primary key, a text not null, b int check (b > 0), g int generated always as (b * 2) stored check (g < 100));
insert into own values (1, 'x', 1);
insert into own values (1, null, 2) on conflict do nothing;
insert into own (id, b) values (1, 2) on conflict (id) do update set b = 3;
insert into own values (1, 'y', -1) on conflict (id) do update set b = 3;
insert into own values (1, 'y', 60) on conflict (id) do nothing;
insert into own values (1, 'y', 5) on conflict (id) do update set b = excluded.b + excluded.g returning *;
insert into own values (2, 'z', 6) on conflict (id) do update set b = 3 returning *;
drop table own;

-- Which partial index arbitrates, the value of a parameter tells.
create table partly (a int, b varchar, v int);
create unique index on partly (a) where b = 'z';
create unique index on partly (a) where v > 5 and b = 'y';
prepare by_value(varchar) as insert into partly values (1, 'z', 1) on conflict (a) where b = $1 do update set v = partly.v + 10 returning *;
execute by_value('z');
execute by_value('z');
execute by_value('y');
prepare by_column(int) as insert into partly values (2, 'y', 9) on conflict (a) where v > $1 and b = 'y' do nothing returning a;
execute by_column(5);
execute by_column(5);
execute by_column(4);
insert into partly values (1, 'z', 2) on conflict (a) where b = 'z' do update set v = 0 returning *;
insert into partly values (1, 'z', 2) on conflict (a) where b::text = 'z'::text do nothing returning *;
insert into partly values (1, 'z', 2) on conflict (a) where b::bpchar = 'z' do nothing returning *;
create unique index on partly (lower(b), v);
insert into partly values (7, 'Y', 9) on conflict (lower(b), v) do update set a = 8 returning *;
select * from partly order by a;
deallocate by_value;
deallocate by_column;
drop table partly;

-- Keys that say the same as one before are not made; a name of theirs stays.
create table repeated (id int primary key constraint named unique, b int unique, unique (b), unique (b) deferrable, unique (id, b), unique (b, id), constraint pair unique (id, b), unique (b) include (id), unique nulls not distinct (b));
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'repeated'::regclass and contype <> 'n' order by 1;
select indexrelid::regclass from pg_index where indrelid = 'repeated'::regclass order by 1::text;
alter table repeated add column c int unique constraint of_c unique, add unique (c);
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'repeated'::regclass and pg_get_constraintdef(oid) like '%(c)%' order by 1;

-- Checks that read the table's OID.
create table own_oid (a int, constraint own_oid_first check (tableoid = 'own_oid'::regclass or a > 5));
create table own_oid_child () inherits (own_oid);
insert into own_oid values (1);
insert into own_oid_child values (9);
insert into own_oid_child values (2);
alter table own_oid add constraint own_oid_second check (a < 5 or tableoid <> 'own_oid'::regclass);
select tableoid::regclass, a from own_oid order by 2;
-- A new table's constraints are valid whatever is said.
create table called_unchecked (a int, b int references repeated not valid, check (a > 0) not valid);
create table called_unchecked (a int, b int, foreign key (b) references repeated not valid, check (a > 0) not valid);
select conname, convalidated from pg_constraint where conrelid = 'called_unchecked'::regclass and contype <> 'n' order by 1;
drop table own_oid, own_oid_child, called_unchecked;
