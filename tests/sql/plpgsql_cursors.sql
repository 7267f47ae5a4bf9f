-- PL/pgSQL: cursors, transactions in procedures, utility statements
-- cursors: bound and unbound, arguments, directions
create table scanned (id int primary key, v text);
insert into scanned select i, 'v' || i from generate_series(1, 10) i;
create function walks() returns text language plpgsql as $$
declare
  c scroll cursor (low int, high int) for select * from scanned where id between low and high order by id;
  r record; t text := ''; n int;
begin
  open c(2, high := 6);
  fetch c into r; t := t || r.id;
  fetch next from c into r; t := t || ',' || r.id;
  fetch last from c into r; t := t || ',l' || r.id;
  fetch prior from c into r; t := t || ',p' || r.id;
  fetch first from c into r; t := t || ',f' || r.id;
  fetch absolute 3 from c into r; t := t || ',a' || r.id;
  fetch relative -1 from c into r; t := t || ',r' || r.id;
  move forward 2 from c; get diagnostics n = row_count; t := t || ',m' || n || found;
  fetch backward from c into r; t := t || ',b' || r.id;
  move forward all from c; get diagnostics n = row_count; t := t || ',m' || n;
  fetch c into r; t := t || ',' || coalesce(r.id::text, 'null') || found;
  move c; t := t || found;
  close c;
  return t;
end $$;
select walks();
create function over_cursor() returns text language plpgsql as $$
declare c cursor (n int) for select id, v from scanned where id <= n order by id; t text := ''; a int; b text;
begin
  for r in c(3) loop t := t || r.id || r.v || ' '; continue when r.id = 2; t := t || '|'; end loop;
  open c(1); fetch c into a, b; close c;
  return t || a || b || found;
end $$;
select over_cursor();
create function unbound(q text, x int) returns text language plpgsql as $$
declare c refcursor; r record; t text := '';
begin
  open c for execute q using x;
  loop fetch c into r; exit when not found; t := t || r::text; end loop;
  close c;
  open c no scroll for select x as x, x + 1 as y;
  fetch c into r;
  t := t || r.x || r.y;
  begin fetch prior from c into r; exception when object_not_in_prerequisite_state then t := t || sqlerrm; end;
  close c;
  return t;
end $$;
select unbound('select id, v from scanned where id < $1 order by 1', 3);
-- wrong uses
do $$ declare c refcursor; x int; begin fetch c into x; end $$;
do $$ declare c refcursor := 'nosuch'; begin close c; end $$;
do $$ declare c refcursor := 'nosuch'; x int; begin fetch c into x; end $$;
do $$ declare c refcursor := 'twice'; d refcursor := 'twice'; begin open c for select 1; open d for select 2; end $$;
do $$ declare c refcursor; begin open c for insert into scanned values (99, 'x'); end $$;
do $$ declare c refcursor; begin open c for execute 'select 1; select 2'; end $$;
do $$ declare c cursor for select 1; x int; begin open c; fetch relative null from c into x; end $$;
do $$ declare c cursor (a int) for select a; begin open c; end $$;
do $$ declare c cursor for select 1; begin open c(1); end $$;
do $$ declare c cursor (a int, b int) for select a; begin open c(1, a := 2); end $$;
do $$ declare c cursor (a int) for select a; begin open c(b := 2); end $$;
do $$ declare c int; begin open c for select 1; end $$;
do $$ declare c refcursor; x int; begin open c for select 1; fetch all from c into x; end $$;
-- to the client
create function opens(name refcursor) returns refcursor language plpgsql as $$ begin open name for select id, v from scanned order by id; return name; end $$;
begin;
select opens('mine');
fetch 2 from mine;
move 3 in mine;
fetch mine;
select name, statement, is_scrollable, is_binary, is_holdable from pg_cursors where name = 'mine';
savepoint s;
select opens('other');
fetch other;
rollback to s;
fetch other;
rollback to s;
fetch backward 2 from mine;
close mine;
commit;
-- a cursor that a block opened is gone with what the block did
do $$
declare c refcursor := 'kept_not'; x int;
begin
  begin
    open c for select 1;
    raise exception 'undo';
  exception when others then null;
  end;
  fetch c into x;
end $$;
-- WHERE CURRENT OF
create function changes_current() returns void language plpgsql as $$
declare c cursor for select * from scanned where id <= 4 for update;
begin
  for r in c loop
    if r.id % 2 = 0 then delete from scanned where current of c; else update scanned set v = v || '!' where current of c; end if;
  end loop;
end $$;
select changes_current();
select * from scanned order by id;
begin;
declare w cursor for select * from scanned where id > 4;
update scanned set v = 'no' where current of w;
rollback;
begin;
declare w cursor for select * from scanned where id = 7;
fetch w;
update scanned set v = 'seven' where current of w returning *;
update scanned set v = v || '+' where current of w;
delete from scanned where current of w;
delete from scanned where current of w;
select count(*) from scanned where id = 7;
rollback;
begin;
declare w cursor for select count(*) from scanned;
fetch w;
delete from scanned where current of w;
rollback;
delete from scanned where current of nosuch;
create table family (a int) ; create table member () inherits (family);
insert into family values (1); insert into member values (2), (3);
begin;
declare f cursor for select a from family for update;
fetch 2 from f;
delete from family where current of f;
select tableoid::regclass, a from family order by a;
update only family set a = 5 where current of f;
rollback;
drop table family cascade;
create view scanned_view as select * from scanned;
begin;
declare w cursor for select * from scanned where id = 5; fetch w;
delete from scanned_view where current of w;
rollback;
drop view scanned_view;
-- transactions in procedures and DO
create procedure in_pieces(n int) language plpgsql as $$
begin
  for i in 1..n loop
    insert into scanned values (100 + i, 'piece');
    if i % 2 = 0 then commit; else rollback; end if;
  end loop;
end $$;
call in_pieces(4);
select id from scanned where id > 100 order by id;
begin; call in_pieces(1); rollback;
do $$ begin insert into scanned values (200, 'x'); commit; insert into scanned values (201, 'y'); rollback; end $$;
select id from scanned where id >= 200;
do $$ begin begin commit; exception when division_by_zero then null; end; end $$;
do $$ begin begin raise exception 'x'; exception when others then commit; end; insert into scanned values (202, 'z'); end $$;
select id from scanned where id >= 200 order by 1;
create function is_atomic() returns void language plpgsql as $$ begin call in_pieces(1); end $$;
select is_atomic();
do $$ begin perform is_atomic(); end $$;
do $$ begin execute 'call in_pieces(1)'; end $$;
do $$ begin call in_pieces(2); end $$;
create procedure defines() security definer language plpgsql as $$ begin commit; end $$;
call defines();
create procedure has_setting() set work_mem = '8MB' language plpgsql as $$ begin commit; end $$;
call has_setting();
-- loops go on after the end of the transaction
do $$
declare t text := '';
begin
  for r in select id from scanned where id <= 9 order by id loop
    t := t || r.id || ' ';
    insert into scanned values (300 + r.id, 'loop');
    if r.id % 3 = 0 then rollback; else commit; end if;
  end loop;
  raise notice '%', t;
end $$;
select id from scanned where id > 300 order by id;
do $$
begin
  for r in update scanned set v = v returning id loop commit; end loop;
end $$;
do $$
declare c cursor for select id from scanned order by id; n int := 0;
begin
  for r in c loop n := n + 1; commit; end loop;
  raise notice '%', n;
end $$;
do $$
declare c refcursor := 'gone'; x int;
begin
  open c for select 1; commit; fetch c into x;
end $$;
-- modes of the next transaction
do $$
begin
  set transaction isolation level repeatable read;
  raise notice '%', current_setting('transaction_isolation');
  commit and chain;
  raise notice '%', current_setting('transaction_isolation');
  commit;
  raise notice '%', current_setting('transaction_isolation');
end $$;
-- output arguments
create procedure doubles(inout a int, in b int, out c text) language plpgsql as $$ begin a := a * 2; c := b || '.'; commit; end $$;
do $$ declare x int := 4; y text; begin call doubles(x, 5, y); raise notice '% %', x, y; call doubles(c => y, a => x, b => 1); raise notice '% %', x, y; end $$;
do $$ declare y text; begin call doubles(1 + 1, 5, y); end $$;
call doubles(1, 2, null);
-- settings and utility statements in a body
create function sets() returns text language plpgsql as $$
declare t text;
begin
  set local work_mem = '5MB'; t := current_setting('work_mem');
  perform set_config('work_mem', '6MB', true); t := t || current_setting('work_mem');
  set work_mem = '7MB'; t := t || current_setting('work_mem');
  reset work_mem; t := t || (current_setting('work_mem') = '7MB');
  execute 'show datestyle' into t;
  return t;
end $$;
begin; select sets(); rollback;
create function makes() returns text language plpgsql as $$
begin
  create temp table made (a int);
  create index on made (a);
  insert into made values (1);
  lock table made in share mode;
  analyze made;
  alter table made add b int default 7;
  comment on table made is 'made';
  return (select a || '-' || b from made);
end $$;
begin; select makes(); rollback; select makes();
drop table made;
do $$ begin vacuum scanned; end $$;
do $$ begin create database nope; end $$;
do $$ begin savepoint a; end $$;
do $$ begin execute 'commit'; end $$;
create function with_path() returns text language plpgsql set search_path = pg_catalog set datestyle = 'German' as $$ begin return current_setting('search_path') || date '2020-02-03'; end $$;
select with_path(), current_setting('search_path');
drop table scanned;
drop function walks, over_cursor, unbound, opens, changes_current, is_atomic, sets, makes, with_path;
drop procedure in_pieces, defines, has_setting, doubles;
