-- INSERT, UPDATE, DELETE, TRUNCATE with their clauses.
create table item (id int primary key, name text unique, n int default 5, at date default '2024-01-01', twice int generated always as (n * 2) stored);
insert into item (id, name) values (1, 'a'), (2, 'b') returning *;
insert into item values (3, 'c', default, default) returning id, n, twice;
insert into item (name, id) select 'x' || i, i from generate_series(10, 12) i;
insert into item default values;
insert into item (id, name, n) values (1, 'z', 9);
insert into item (id, name, n) values (1, 'z', 9) on conflict do nothing;
insert into item (id, name, n) values (1, 'z', 9) on conflict (id) do update set n = excluded.n + item.n, name = item.name || '!' returning *;
insert into item (id, name) values (50, 'b') on conflict (name) do update set n = 0 where item.n < 0 returning *;
insert into item as i (id, name) values (50, 'b') on conflict on constraint item_name_key do update set name = 'bb' where i.id = 2 returning i.id, i.name;
insert into item (id, name) values (60, 'p'), (60, 'q') on conflict (id) do update set name = excluded.name;
insert into item (id, name) values (1, 'a') on conflict (n) do nothing;
insert into item (id, twice) values (70, 1);
insert into item (id, nothing) values (70, 1);
insert into item (id) values (70, 1);
insert into item (id, id) values (1, 1);
insert into item values ('x');
with u as (update item set n = n + 1 where id < 10 returning id, n, twice) select * from u order by id;
update item set (name, n) = (select 'row', 1) where id = 10 returning *;
with u as (update item set n = s.v from (values (11, 100), (12, 200)) s(id, v) where s.id = item.id returning item.id, item.n, s.v) select * from u order by id;
update item set n = default, at = at + 1 where id = 11 returning *;
update item set id = id + 1 where id = 11;
with u as (update item set id = id + 100 where id >= 10 returning id) select * from u order by id;
update item set name = 'a!' where id = 2;
update item set n = 'x' where id = 1;
update item set n = 1, n = 2;
with d as (delete from item using (values (110), (111)) g(id) where g.id = item.id returning item.*) select * from d order by id;
delete from item where id = 999 returning id;
delete from item i where i.id = 112;
select * from item order by id;
truncate item;
select count(*) from item;
create table numbers (a int);
insert into numbers select i % 3 from generate_series(1, 9) i;
delete from numbers where ctid in (select min(ctid) from numbers group by a);
update numbers n set a = n.a + 10 where a = 0 returning *;
select a, count(*) from numbers group by a order by a;
insert into numbers select a from numbers;
select count(*) from numbers;
merge into numbers n using (values (10), (77)) s(v) on n.a = s.v when matched then delete when not matched then insert values (s.v);
select distinct a from numbers order by a;
create table copied as select * from numbers where a > 5 with data;
select * from copied;
select a into another from numbers where false;
\d another
insert into numbers values (1) returning a as b, a + 1, 'x', tableoid::regclass;

-- Whole rows in ON CONFLICT.
create table clashes (id int primary key, a text);
insert into clashes values (1, 'x');
insert into clashes as c values (1, 'y') on conflict (id) do update set a = c::text || excluded::text where c is not null returning *;
insert into clashes as c values (1, 'z') on conflict (id) do update set a = (select row_to_json(excluded)::text || c.a) returning *;
drop table clashes;
-- An index for ON CONFLICT is looked for when all else of the statement is known.
create table arbitrated (a int primary key, b text);
create unique index on arbitrated (lower(b)) where a > 0;
alter table arbitrated add constraint arbitrated_later unique (b) deferrable;
insert into arbitrated select 1, 'x' on conflict (b, a) do update set zz = 1;
insert into arbitrated select 1, 'x' on conflict (b, a) do update set b = 'y' where nosuch;
insert into arbitrated select 1, 'x' on conflict (b, a) do update set b = 'y' returning nosuch;
insert into arbitrated values (1/0, 'x') on conflict (b, a) do nothing;
insert into arbitrated values (1, 'x') on conflict (b, a) do nothing;
insert into arbitrated values (1, 'x') on conflict (b) do nothing;
insert into arbitrated values (1, 'x') on conflict on constraint arbitrated_later do nothing;
insert into arbitrated values (1, 'x') on conflict (lower(b)) do nothing;
insert into arbitrated values (1, 'x') on conflict (lower(b)) where a > 0 do nothing;
insert into arbitrated values (2, 'X') on conflict (lower(b)) where a > 0 and b <> '' do update set b = excluded.b returning *;
insert into arbitrated values (1, 'z') on conflict on constraint arbitrated_pkey do update set b = excluded.b returning *;
prepare arbitrate(int, text) as insert into arbitrated values ($1, $2) on conflict (a) do update set b = excluded.b returning *;
execute arbitrate(1, 'p');
alter table arbitrated drop constraint arbitrated_pkey;
execute arbitrate(1, 'q');
create unique index on arbitrated (a);
execute arbitrate(1, 'q');

-- WHERE and RETURNING are analyzed before SET.
create table analyzed (a int, b bigint);
update analyzed set a = 'x' returning b || b;
update analyzed set a = 'x' where b = 'y';
prepare sets as update analyzed set a = $1 where b = $1;
select parameter_types from pg_prepared_statements where name = 'sets';
deallocate sets;
drop table analyzed;

-- A row's columns as the source of several.
create table pair (a int, b int);
insert into pair values (1, 2);
update pair set (b, a) = row(pair.*) returning *;
update pair set (b, a) = row(pair.*, 3);
update pair set (b, a) = row(default, pair.b) returning *;
drop table pair;

-- A function of the statement changes the row that the statement is about to change.
create table pair (a int, b int);
insert into pair values (1, 2), (2, 3);
create function raised(int) returns boolean language sql as 'update pair set b = b + 1 where a = $1 returning true';
create function seen(int) returns boolean language sql as 'select count(*) > 0 from pair where a = $1';
update pair set b = b + 10 where raised(a);
delete from pair where raised(a);
update pair set b = b + 10 where a = 1 and raised(2) returning *;
update pair set b = b + 10 where seen(a);
with d as (update pair set b = 100 where a = 1 returning *, raised(2)) update pair set b = 7 from d where pair.a = 2;
select * from pair order by a;
drop function raised, seen;
drop table pair;

-- ON CONFLICT by indexes of an order.
create table folded (a text, b int);
create unique index folded_bytes on folded (a collate "C");
create unique index folded_pattern on folded (a text_pattern_ops, b);
insert into folded values ('x', 1);
insert into folded values ('x', 2) on conflict (a collate "C") do update set b = excluded.b returning *;
insert into folded values ('x', 3) on conflict (a collate "POSIX") do nothing;
insert into folded values ('x', 2) on conflict (a text_pattern_ops, b) do nothing;
insert into folded values ('x', 2) on conflict (b int4_ops, a) do nothing;
insert into folded values ('x', 2) on conflict (a text_ops) do nothing;
insert into folded values ('x', 2) on conflict (a int4_ops) do nothing;
insert into folded values ('x', 2) on conflict (a nosuch_ops) do nothing;
insert into folded values ('x', 2) on conflict (a collate nosuch) do nothing;
create function fold(text) returns void begin atomic insert into folded values ($1, 5) on conflict (a collate "C") do nothing; end;
select fold('y'), fold('y');
select pg_get_functiondef('fold'::regproc);
select * from folded order by 1;
drop table folded cascade;

-- ON CONFLICT by partial indexes, whose predicates follow from the conditions.
create table parts (a int, b int, c text, d int);
create unique index parts_a on parts (a) where b > 5;
create unique index parts_c on parts (c) where a is not null;
create unique index parts_b on parts (b) where c in ('x', 'y', 'z');
create unique index parts_d on parts (d) where c <> 'n' and b >= 0;
insert into parts values (1, 10, 'x', 1);
insert into parts values (1, 20) on conflict (a) where b > 10 do update set b = excluded.b returning *;
insert into parts values (1, 20) on conflict (a) where b >= 6 do nothing;
insert into parts values (1, 20) on conflict (a) where b = 7 do nothing;
insert into parts values (1, 20) on conflict (a) where b in (7, 8) do nothing;
insert into parts values (1, 20) on conflict (a) where b in (5, 8) do nothing;
insert into parts values (1, 20) on conflict (a) where b > 5::bigint do nothing;
insert into parts values (1, 20) on conflict (a) where 8 < b do nothing;
insert into parts values (1, 20) on conflict (a) where b >= 5 do nothing;
insert into parts values (1, 20) on conflict (a) where b < 7 do nothing;
insert into parts values (1, 20) on conflict (a) where b > 5 or b = 6 do nothing;
insert into parts values (1, 20) on conflict (a) where b > 5 or c = 'x' do nothing;
insert into parts values (1, 20) on conflict (a) where b between 6 and 7 do nothing;
insert into parts values (1, 20) on conflict (a) where b <> 6 do nothing;
insert into parts values (2, 2, 'x') on conflict (c) where a = 1 do nothing;
insert into parts values (2, 2, 'x') on conflict (c) where a + 1 > b do nothing;
insert into parts values (2, 2, 'x') on conflict (c) where not (a is null) do nothing;
insert into parts values (2, 2, 'x') on conflict (c) where coalesce(a, 1) = 1 do nothing;
insert into parts values (2, 2, 'x') on conflict (c) where b = 2 do nothing;
insert into parts values (2, 20, 'x') on conflict (b) where c in ('x', 'y') do nothing;
insert into parts values (2, 20, 'x') on conflict (b) where c in ('x', 'w') do nothing;
insert into parts values (2, 20, 'x') on conflict (b) where c = 'x' or c = 'z' do nothing;
insert into parts values (2, 3, 'p', 1) on conflict (d) where c = 'm' and b > 0 do nothing;
insert into parts values (2, 3, 'p', 1) on conflict (d) where c > 'n' and b = 0 do nothing;
insert into parts values (2, 3, 'p', 1) on conflict (d) where c > 'm' and b = 0 do nothing;
insert into parts values (2, 3, 'p', 1) on conflict (d) where c not in ('n', 'm') and b = 0 do nothing;
select * from parts;
drop table parts;

-- Whether a row was inserted or updated.
create table upserted (id int primary key, v text);
insert into upserted values (1, 'a') returning xmax = 0 as inserted, cmin, cmax, xmin is not null as has_xmin, tableoid::regclass;
insert into upserted values (1, 'b'), (2, 'c') on conflict (id) do update set v = excluded.v returning id, xmax = 0 as inserted;
with u as (insert into upserted values (2, 'd'), (3, 'e') on conflict (id) do update set v = excluded.v returning *, xmax = 0 as inserted) select * from u;
update upserted set v = 'f' where id = 1 returning id, xmax, cmin;
delete from upserted where id = 1 returning id, xmax = 0 as alive, xmax::text = (txid_current() & 4294967295)::text as deleted_here;
insert into upserted values (2, 'g') on conflict (id) do update set v = 'h' where excluded.ctid is null;
drop table upserted;
