-- What index scans give, by rows and by keys alone, in the transaction's own view and others'.

create table part (id int primary key, kind text, weight numeric, made timestamp, flag bool, code char(4), note text);
insert into part select i, 'kind' || i % 7, i / 3.0, timestamp '2024-01-01' + i * interval '1 hour', i % 3 = 0, i % 11,
    case when i % 5 > 0 then 'note ' || i end from generate_series(1, 500) i;
create index on part (kind, id desc);
create index on part (made);
create index on part (weight);
create index on part (code);
create index on part (note desc nulls last, flag);
create unique index on part (id, kind);
analyze part;

-- One row by a unique key.
select kind from part where id = 17;
select id from part where id = 17;
select id + 1, id from part where id = 17;
select count(*) from part where id = 17;
select kind from part where id = 501;
select kind from part where id = null;
select kind from part where id = 17 and flag;
select kind from part where id = 18 and flag;
select kind, flag from part where id = 18 and kind = 'kind4';
select kind, flag from part where id = 18 and kind = 'kind5';
select id, kind from part where 18 = id and kind = 'kind4';
select ctid is not null, tableoid::regclass, id from part where id = 20;
select part from part where id = 20;
select p.id, (select q.note from part q where q.id = p.id + 1) from part p where p.id between 3 and 6 order by 1;
select a.id, b.kind from part a join part b on b.id = a.id * 2 where a.id < 4 order by 1;
prepare by_id(int) as select kind, weight from part where id = $1;
execute by_id(30);
execute by_id(31);
execute by_id(null);

-- Keys alone.
select id from part where kind = 'kind3' order by id limit 4;
select id from part where kind = 'kind3' order by kind, id desc limit 4;
select kind, count(*), max(id) from part where kind >= 'kind5' group by 1 order by 1;
select kind from part where kind like 'kind6%' and id > 480 order by id;
select made from part where made between '2024-01-02 03:00' and '2024-01-02 06:00' order by made desc;
select count(made) from part where made < '2024-01-05';
select weight from part where weight between 10 and 11 order by weight;
select code, length(code) from part where code = '7 ' limit 2;
select note, flag from part where note > 'note 49' order by note desc, flag limit 5;
select count(*) from part where note is null;
select note is null, flag from part where note is null and flag order by note desc nulls last, flag limit 2;
select count(id) from part where id between 10 and 20 or id between 15 and 30;
select distinct kind from part where kind in ('kind1', 'kind4', 'none') order by kind;
select sum(id) from part where id in (1, 2, 3, 3, 900);

-- Changes, seen by their own transaction and undone.
begin;
update part set kind = 'other' where id = 40;
select kind, id from part where kind = 'other';
select id from part where kind = 'kind5' and id between 38 and 42;
delete from part where id = 41;
select id from part where id = 41;
select id from part where id between 39 and 43 order by id;
update part set id = 1041 where id = 42;
select id, kind from part where id = 42;
select id, kind from part where id = 1041;
insert into part (id, kind) values (42, 'again');
select id, kind from part where id = 42;
insert into part (id, kind) values (43, 'twice');
rollback;
select id, kind from part where id in (40, 41, 42, 43, 1041) order by id;

-- A row that comes, goes, and comes under the same key.
delete from part where id = 60;
select id from part where id = 60;
insert into part (id, kind) values (60, 'second');
select id, kind from part where id = 60;
update part set id = 61000 where id = 61;
update part set id = 61 where id = 60;
select id, kind from part where id in (60, 61, 61000) order by id;

-- Updates by key.
update part set note = 'changed' where id = 70;
update part set weight = weight + 1, note = note || '!' where id = 71 returning id, note, round(weight, 2);
update part set note = 'none' where id = 7000;
update part set note = 'flagged' where id = 72 and flag;
update part set note = 'flagged' where id = 73 and flag;
select id, note from part where id between 70 and 73 order by id;
delete from part where id = 74 returning id, kind;
delete from part where id = 75 and not flag;
select id from part where id between 74 and 75;
update part set kind = kind where id = 76;
select id from part where kind = 'kind6' and id between 70 and 80 order by id;
merge into part p using (values (80, 'merged'), (8000, 'new')) v(id, kind) on p.id = v.id
    when matched then update set kind = v.kind when not matched then insert (id, kind) values (v.id, v.kind);
select id, kind from part where id in (80, 8000) order by id;

-- A deferrable unique key may have duplicates until its check.
create table seat (place int unique deferrable initially deferred, who text);
insert into seat values (1, 'a'), (2, 'b');
begin;
update seat set place = 2 where who = 'a';
select place, who from seat where place = 2 order by who;
update seat set place = 1 where who = 'b';
commit;
select place, who from seat where place = 2;
update seat set place = 3 - place;
select place, who from seat where place = 2;

-- Cursors and locks on a single row.
begin;
declare c cursor for select id, kind from part where id = 90 for update;
fetch c;
fetch c;
commit;
select id from part where id = 91 for share;
drop table part, seat;

-- Statistics of an index's column: only expressions have their own.
create table counted (a int, b int);
create index counted_index on counted (a, (a + b)) include (b);
alter index counted_index alter column 1 set statistics 100;
alter index counted_index alter column 2 set statistics 100;
alter index counted_index alter column 2 set statistics 20000;
alter index counted_index alter column 2 set statistics -2;
alter index counted_index alter column 3 set statistics 100;
alter index counted_index alter column 4 set statistics 100;
alter table counted alter column 1 set statistics 100;
select attnum, nullif(attstattarget, -1) from pg_attribute where attrelid = 'counted_index'::regclass order by attnum;

-- Ranges of one index joined by OR
create table ranges (id int primary key, k int, label text);
insert into ranges select i, (i * 37) % 500, 'label ' || i % 50 from generate_series(1, 1000) i;
insert into ranges select 1000 + i, null, null from generate_series(1, 10) i;
create index ranges_k on ranges (k);
create index ranges_label on ranges (label, k desc);
set enable_seqscan = off;
select count(k), sum(k) from ranges where k between 5 and 10 or k between 50 and 55 or k between 500 and 505;
select count(k), sum(k) from ranges where k between 5 and 20 or k between 10 and 12 or k between 20 and 30 or k = 30 or k in (31, 29);
select count(*) from ranges where k < 10 or k > 490 or k is null;
select count(*) from ranges where k <= 10 or k < 100 or k between 90 and null;
select k from ranges where k between 7 and 5 or k = 3 or k between 498 and 600 order by k;
select k from ranges where k < 3 or k > 497 order by k desc limit 4;
select count(*), min(id) from ranges where k between 5 and 10 or k between 9 and 12 and label = 'label 7';
select count(*), min(id) from ranges where (k between 5 and 10 or k between 50 and 55) and id % 2 = 0;
select label, k from ranges where label = 'label 1' and k < 100 or label = 'label 2' and k between 90 and 200 or label = 'label 1' and k between 50 and 150 order by 1, 2;
select id from ranges where k = 5 or id = 7 order by id;
prepare in_ranges(int, int) as select count(k), sum(k) from ranges where k between $1 and $1 + 5 or k between $2 and $2 + 5;
execute in_ranges(3, 400);
execute in_ranges(3, 4);
execute in_ranges(null, 4);
begin;
update ranges set k = 7 where id = 1;
insert into ranges values (2000, 8, 'own');
delete from ranges where k = 9;
select count(k), sum(k) from ranges where k between 5 and 8 or k between 7 and 10;
select id, k from ranges where k between 5 and 6 or k between 400 and 401 order by id for update;
rollback;
reset enable_seqscan;
drop table ranges;

-- What a hash index cannot have.
create table hashed (a int, b varbit, c text);
create unique index on hashed using hash (a);
create index on hashed using hash (a) include (c);
create index on hashed using hash (a, c);
create index on hashed using hash (b);
create index on hashed using hash (a desc);
create index on hashed using hash (a nulls first);
create index on hashed using hash (lower(c));
drop table hashed;

-- A column twice.
create table doubled (id int, a int);
insert into doubled values (7, 42), (8, 43);
create index on doubled (id, id);
select * from doubled where id = 7;
select * from doubled x join doubled y using (id) where id = 8;
drop table doubled;

-- What writes values as text may depend on the session, or on labels that change.
create type mood as enum ('sad', 'ok');
create domain own_mood as mood;
create table kept (m mood, o own_mood, w text[], r int4range, t timestamp, z timestamptz, n int, p part);
create index on kept (lower(m::text));
create index on kept ((o::text));
create index on kept ((w::text));
create index on kept ((r::text));
create index on kept ((p::text));
create index on kept ((m || 'a'));
create index on kept ((w || 'a'::text));
create index on kept ((n || 'a'));
create index on kept ((n::text));
create index on kept (n) where m::text = 'ok';
create index on kept ((('ok' || n)::mood));
create index on kept ((row(t, n) < row(z, 1)));
create index on kept ((row(t, n) < row(t, 1)));
create table never (m mood, g text generated always as (m::text) stored);
select indexdef from pg_indexes where tablename = 'kept' order by 1;
drop table kept;
drop domain own_mood;
drop type mood;
-- DROP INDEX locks the table; options are checked before the name.
create table locked (x int);
create index locked_x on locked (x);
create index locked_x on locked (x) with (nosuch = 1);
create index if not exists locked_x on locked (x) with (fillfactor = 1);
create index locked_y on locked (x) include (nosuch);
begin;
drop index locked_x;
select relation::regclass, mode from pg_locks where locktype = 'relation' and relation = 'locked'::regclass;
rollback;
drop table locked;
