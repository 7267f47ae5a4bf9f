-- Views that are changed: WITH CHECK OPTION, views of views, defaults, who may.
create table base (a int primary key, b text default 'table', c int default 5, d int generated always as (c * 2) stored);
create view low as select a, b, c from base where a < 100 with local check option;
create view even as select a, b as text, c from low where a % 2 = 0;
create view even_checked as select * from low where a % 2 = 0 with cascaded check option;
create view even_local as select a, b, c from base where a % 2 = 0;
create view positive as select a as id, c, b || '!' as loud, b from even_local where a > 0 with local check option;
create view everything as select * from even with check option;
insert into low values (1, 'one'), (2, 'two');
insert into low values (100, 'no');
insert into low (a) values (4);
insert into even values (101, 'low is local'), (103, 'more');
insert into even values (3, 'three');
insert into even_checked values (5, 'five');
insert into even_checked values (102, 'high');
insert into even_checked values (6, 'six') returning *;
insert into positive (id, c) values (-3, 1);
insert into positive (id, c) values (7, 1) returning *;
insert into positive (id, loud) values (9, 'x');
insert into positive (id) values (10) returning *;
insert into everything values (11, 'x');
insert into everything values (104, 'x');
insert into everything values (12, 'x');
insert into everything select g, 'many' from generate_series(20, 90, 2) g;
insert into everything select g, 'many' from generate_series(200, 300, 2) g;
update low set a = a + 99 where a = 1;
update low set a = 1 where a = 1 returning *;
update even_checked set a = 7 where a = 6;
update positive set id = -id, loud = 'x';
update positive set id = -id where id = 10;
update positive p set b = p.loud where id = 10 returning p.*, loud;
update everything set text = 'all' where a > 80;
update even_local set a = 5 where a = 4;
delete from positive where loud like 'x!%' returning id;
delete from everything where a between 20 and 90;
select * from base order by a;
insert into even_checked values (2, 'taken');
insert into low values (null, 'null');
insert into low values (2, 'again') on conflict do nothing;
copy low to stdout;
copy (select * from low order by a) to stdout;

-- defaults: of the view, of the view in it, of the table
create view defaulted as select a, b, c from base;
create view over_defaulted as select * from defaulted;
alter view defaulted alter b set default 'inner';
alter view over_defaulted alter c set default 77;
insert into over_defaulted (a) values (50) returning *;
insert into over_defaulted values (51, default, default) returning *;
insert into defaulted (a) values (52) returning *;
update over_defaulted set b = default, c = default where a = 50 returning *;

-- what cannot be changed
create view grouped as select b, count(*) from base group by b;
create view over_grouped as select * from grouped;
create view constant as select 1 as one, a + 1 as more from base;
create view odd as select ctid as place, base as whole, a from base;
create view two as select x.a from base x, base y;
insert into over_grouped values ('x', 1);
update over_grouped set b = 'x';
delete from over_grouped;
insert into constant values (1, 2);
update constant set one = 2;
update odd set place = null;
update odd set whole = null;
delete from two;
update positive set loud = 'x' where id = 1;
create view refused as select distinct a from base with check option;
create view refused as select 1 as one from base with local check option;
create view refused as select a from base limit 1 with check option;
create view refused as select a from grouped, base with check option;
create view fine with (check_option = local) as select a from over_grouped, lateral (select 1) x (a2);
alter view grouped set (check_option = cascaded);
alter view low set (check_option = other);
alter view low set (check_option = cascaded);
alter view low reset (check_option);
insert into low values (150, 'fine now');
create or replace view low as select a, b, c from base where a < 100 with cascaded check option;
insert into even values (151, 'cascaded');
insert into even values (153, 'cascaded');

create view wide as select a, 'const' as k, b, a as again from base;
insert into wide values (160);
insert into wide values (161, 'x');
insert into wide (a, again) values (162, 163);
update wide set a = 1, again = 2;
alter view wide alter k set default 'x';
insert into wide (a) values (164);
alter view defaulted alter b drop default;
insert into defaulted values (170, default), (171, 'x'), (172, default) returning *;
select whole, (whole).b from odd order by a limit 1;
create view rows as select row(base, a) as r, (select base from base order by a limit 1) as one from base;
select * from rows order by 1 limit 1;

-- subqueries in the condition, security barriers, partitions
create table allowed (a int);
insert into allowed values (1), (2), (3);
create view by_list with (security_barrier) as select a, b from base where a in (select a from allowed) with check option;
update by_list set a = 3 where a = 1 returning *;
update by_list set a = 8 where a = 3;
insert into by_list values (1, 'one');
insert into by_list values (13, 'x');
create function shout(text) returns boolean language plpgsql cost 0.0001 as $$ begin raise notice 'sees %', $1; return true; end $$;
update by_list set b = 'loud' where shout(b) and a = 3;
delete from by_list where shout(b) and a = 3;
select * from base order by a;
create table parts (a int, b int) partition by list (a);
create table parts_1 partition of parts for values in (1);
create table parts_2 partition of parts for values in (2);
create view some_parts as select * from parts where b < 10 with check option;
insert into some_parts values (1, 1), (2, 2);
insert into some_parts values (2, 12);
update some_parts set a = 3 - a returning *;
update some_parts set a = 3 - a, b = 20;
select tableoid::regclass, * from parts order by a;

-- a trigger may still change the row
create function change() returns trigger language plpgsql as $$ begin new.b := 50; return new; end $$;
create trigger t before insert on parts_1 for each row execute function change();
insert into some_parts values (1, 1);
insert into some_parts values (2, 1);

-- who may: each view's owner for what is in it
drop role if exists check_ann, check_bob;
create role check_ann;
create role check_bob;
grant usage, create on schema play to check_ann, check_bob;
create view ann_view as select a, b from base where a < 5;
alter view ann_view owner to check_ann;
create view bob_view as select a, b from ann_view where a > 1 with check option;
alter view bob_view owner to check_bob;
insert into bob_view values (3, 'x');
grant all on ann_view to check_bob;
insert into bob_view values (3, 'x');
grant insert, select on base to check_ann;
insert into bob_view values (3, 'x');
update bob_view set b = 'y';
insert into bob_view values (6, 'x');
drop view bob_view;
drop view ann_view;
revoke all on schema play from check_ann, check_bob;
revoke all on base from check_ann;
drop role check_ann, check_bob;

-- catalogs
select table_name, check_option, is_updatable, is_insertable_into, is_trigger_updatable
  from information_schema.views where table_schema = 'play' order by 1;
select table_name, column_name, is_updatable from information_schema.columns
  where table_schema = 'play' and table_name in ('positive', 'constant', 'over_grouped', 'odd') order by 1, 2;
select relname, pg_relation_is_updatable(oid, false), pg_column_is_updatable(oid, 1::smallint, false)
  from pg_class where relnamespace = 'play'::regnamespace and relkind in ('v', 'r', 'p') order by 1;
select relname, reloptions from pg_class where reloptions::text like '%check_option%' order by 1;

-- A view over one that triggers change: they get its rows, and what they have made of them is checked.
create table held(a int primary key, b text);
insert into held values (3, 'z'), (4, 'y');
create view held_shown as select a, b, a * 2 as c from held;
create function hold() returns trigger language plpgsql as $$ begin
  raise notice '% % %', tg_op, old, new;
  if tg_op = 'DELETE' then delete from held where a = old.a; return old; end if;
  if new.b = 'skip' then return null; end if;
  if tg_op = 'INSERT' then insert into held values (new.a, new.b); else update held set a = new.a, b = new.b where a = old.a; end if;
  new.c := -1; return new; end $$;
create trigger hold instead of insert or update or delete on held_shown for each row execute function hold();
create view held_plain as select c as cc, b, a from held_shown;
create view held_low as select a as aa, b from held_plain where a > 2 with local check option;
insert into held_plain values (1, 'p', 7) returning *;
update held_plain set b = 'q', cc = 5 where a = 7 returning *;
delete from held_plain where a = 7 returning *;
update held_low set b = b || 'w' returning *;
insert into held_low values (1, 'held_low');
insert into held_low values (1, 'skip');
insert into held_low values (9, 'hi') returning *;
update held_low set aa = 1 where aa = 3;
delete from held_low where aa = 9;
alter view held_low alter aa set default 77;
insert into held_low(b) values ('default') returning *;
create role check_ann;
grant usage on schema play to check_ann;
grant insert, select, update(b), delete on held_low to check_ann;
set role check_ann;
update held_low set b = 'ann' where aa = 4 returning b;
update held_low set aa = 5;
delete from held_low where aa = 77;
insert into held_low values (10, 'ann');
reset role;
select * from held order by a;
drop table held cascade;
drop function hold;
revoke all on schema play from check_ann;
drop role check_ann;
