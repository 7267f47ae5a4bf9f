-- Functions and procedures LANGUAGE sql.
create table t (a int primary key, b text);
-- One expression.
create function add1(int) returns int language sql immutable as 'select $1 + 1';
create function add2(a int, b int default 10) returns int language sql immutable as $$ select a + add2.b $$;
select add1(41), add2(1), add2(1, 2), add2(b => 5, a => 6), add2(a => 1);
select add1(x) from generate_series(1, 3) x where add1(x) > 2;
-- Overloads, and the schema in front.
create function f(int) returns text language sql as $$ select 'int' $$;
create function f(text) returns text language sql as $$ select 'text' $$;
create function f(numeric) returns text language sql as $$ select 'numeric' $$;
select f(1), f('1'), f(1.0), f(1::smallint), play.f('x'::text), f('2000-01-01'::date::text);
select f(true);
drop function f;
drop function f(numeric), f(int);
select f('1');
drop function f;
select f('1');
drop function if exists f, f(int, text);
-- Bodies of several statements; the last one counts.
create function put(x int, y text) returns t language sql as 'insert into t values (x, y) returning *';
create function change(x int, y text) returns bigint language sql as $$
  update t set b = y where a = x;
  select count(*) from t where b = y;
$$;
create function remove(x int) returns setof text language sql as 'delete from t where a >= x returning b';
create function nothing() returns void language sql as 'insert into t values (100, null)';
create function empty() returns void language sql as '';
select * from put(1, 'one');
select put(2, 'two'), (put(3, 'three')).b;
select change(1, 'two');
select nothing();
select nothing();
select empty();
select * from t order by a;
select remove(2);
select * from remove(0);
-- Sets and rows.
insert into t select i, 'x' || i from generate_series(1, 5) i;
create function all_of() returns setof t language sql stable as 'select * from t order by a';
create function squares(n int) returns table(x int, y int) language sql as 'select i, i * i from generate_series(1, n) i';
create function twice(a int, out b int, out c text) language sql as $$ select a * 2, 'x' || a $$;
create function anything(int) returns setof record language sql as 'select $1, b from t where a = $1';
select * from all_of() where a < 3;
select b, (all_of()).a from t where a = 1;
select * from squares(3);
select squares(2);
select * from squares(2) with ordinality as s(p, q, r);
select twice(4), (twice(5)).c;
select * from twice(6);
select * from t, twice(a) where t.a < 3 order by t.a;
select * from anything(2) as r(x int, y text);
select * from anything(2);
select * from anything(2) as r(x int, y int);
select t.a, s.y from t, lateral squares(t.a) s where t.a < 4 order by 1, 2;
select * from t left join squares(3) on x = a order by a;
select (select max(y) from squares(t.a)) from t order by 1;
select all_of() limit 2;
-- NULL and STRICT; VARIADIC.
create function lenient(int) returns text language sql as $$ select coalesce($1::text, 'none') $$;
create function fussy(int) returns text language sql strict as $$ select coalesce($1::text, 'none') $$;
create function fussy_set(int) returns setof int language sql strict as $$ select 1 $$;
create function total(variadic int[]) returns bigint language sql as 'select sum(x) from unnest($1) x';
select lenient(null), fussy(null), fussy(1), total(1, 2, 3), total(variadic array[4, 5]);
select * from fussy_set(null);
-- Recursion.
create function fact(n int) returns bigint language sql as 'select 1::bigint';
create or replace function fact(n int) returns bigint language sql as
  'select case when n <= 1 then 1 else n * fact(n - 1) end';
select fact(10), fact(20);
-- Polymorphic.
create function pair(anyelement, anyelement) returns anyarray language sql as 'select array[$1, $2]';
create function first_of(anyarray) returns anyelement language sql as 'select $1[1]';
create function both_of(x anyelement, out y anyelement, out z anyarray) language sql as 'select x, array[x]';
select pair(1, 2), pair('a'::text, 'b'), pg_typeof(pair(1.5, 2)), first_of('{x,y}'::text[]), first_of(array[7]);
select * from both_of(3);
select pair(1, 'x'::text);
create function lost() returns anyelement language sql as 'select 1';
-- RETURN and BEGIN ATOMIC.
create function r(a int, b int) returns int return a + b;
create function atomic(a int) returns bigint begin atomic select 1; select count(*) from t where t.a < atomic.a; end;
select r(1, 2), atomic(3);
drop table t;
create table changed (a int primary key, b text default 'd');
create function modifies(x int) returns setof changed begin atomic
  insert into changed values (x, 'one'), (x + 1, 'two');
  insert into changed as z (b, a) select z.b || '!', z.a from changed z where z.a = x
    on conflict (a) do update set b = excluded.b || z.b where z.a < 100;
  insert into changed (a) values (x) on conflict do nothing;
  update changed set b = c.b || modifies.x from changed c where c.a = changed.a and c.a > modifies.x;
  delete from only changed where a = -x;
  with w as (insert into changed (a) values (x + 2) returning a) select count(*) from w;
  select * from changed order by a;
end;
\sf modifies
select * from modifies(1);
alter table changed rename column b to renamed;
select * from modifies(10);
drop table changed cascade;
-- Objects that a view, a default, a check and an index depend on.
create function is_even(int) returns bool language sql immutable as 'select $1 % 2 = 0';
create table u (a int check (is_even(a)), b int default add1(4));
create index on u (add1(a));
create view v as select add1(a), b from u;
create table g (a int, c int generated always as (add1(a)) stored);
insert into u (a) values (2), (4);
insert into u (a) values (3);
select * from u where add1(a) = 5;
select * from v order by 1;
create index on u (lenient(a));
drop function add1(int);
drop function is_even;
alter function add1(int) rename to plus1;
select pg_get_constraintdef(oid) from pg_constraint where conname = 'u_a_check';
insert into u (a) values (6) returning *;
insert into g (a) values (6) returning *;
create schema other;
alter function plus1(int) set schema other;
select plus1(1);
select * from v order by 1;
drop schema other cascade;
\d u
\d g
-- Snapshots: which rows of the calling statement a function sees.
create table w (a int);
create function count_v() returns bigint language sql volatile as 'select count(*) from w';
create function count_s() returns bigint language sql stable as 'select count(*) from w';
create function count_set() returns setof bigint language sql volatile as 'select count(*) from w';
insert into w select 1 from generate_series(1, 3);
insert into w values (1) returning count_v(), count_s();
create function grow() returns int language sql as 'insert into w values (1) returning a';
select grow(), count_v(), count_s(), grow(), count_v(), count_s();
select count(*) from w;
create function sly() returns int language sql stable as 'insert into w values (1) returning a';
select sly();
begin read only;
select grow();
rollback;
begin;
savepoint s;
select grow() from generate_series(1, 3);
rollback to s;
select count_v();
commit;
-- Made and used in one function.
create function makes() returns bigint language sql as $$
  create temp table made (a int);
  insert into made select i from generate_series(1, 4) i;
  select 1::bigint;
$$;
set check_function_bodies = off;
create function uses_late() returns bigint language sql as 'select count(*) from late';
select uses_late();
create table late (a int);
select uses_late();
reset check_function_bodies;
-- Who it runs as, and with which settings.
create function who() returns name language sql security definer as 'select current_user';
create function zone() returns text language sql set timezone = 'Asia/Tokyo' as $$ select current_setting('timezone') $$;
create function zone_rows() returns setof text language sql set timezone to 'Asia/Tokyo' set work_mem = '1MB'
  as $$ select current_setting('timezone') union all select current_setting('work_mem') $$;
select zone(), current_setting('timezone');
select * from zone_rows();
alter function zone() reset timezone;
select zone();
alter function zone() set timezone = 'UTC' stable strict cost 3;
select provolatile, proisstrict, procost, proconfig from pg_proc where proname = 'zone';
create function sets() returns text language sql as $$ set work_mem = '4MB'; select current_setting('work_mem') $$;
create function sets_both() returns text language sql set timezone = 'Asia/Tokyo'
  as $$ select set_config('work_mem', '5MB', false); select current_setting('timezone') $$;
select sets();
show work_mem;
select sets_both();
show work_mem;
show timezone;
reset work_mem;
create function pg_temp.passing(int) returns int language sql as 'select $1 * 3';
select pg_temp.passing(4);
select passing(4);
discard temp;
select pg_temp.passing(4);
create function endless(int) returns int language sql as 'select 1';
create or replace function endless(int) returns int language sql as 'select 1; select endless($1 + 1)';
select endless(1);
-- Rows as arguments and results.
create table rows (a int, b text);
insert into rows values (1, 'x');
create function of_row(r rows) returns text language sql as 'select r.b || $1.a';
create function to_row() returns rows language sql as $$ select row(1, 'c')::rows $$;
create function no_row() returns rows language sql as $$ select * from rows where false $$;
select of_row(rows), rows.of_row, of_row(row(2, 'y')) from rows;
select to_row(), (to_row()).*, no_row(), no_row() is null;
select * from to_row();
select * from no_row();
alter table rows add column c int;
select to_row();
-- A call uses the argument's default at the time of the call.
create view takes_default as select add2(1) as x;
create or replace function add2(a int, b int default 20) returns int language sql immutable as $$ select a + add2.b $$;
select * from takes_default;
drop view takes_default;
-- Procedures.
create procedure p(a int, inout b int) language sql as 'insert into w values (a); select a + b';
create procedure q(text) language sql as 'select 1';
call p(1, 60);
call p(b => 2, a => 1);
call q('x');
call q(1);
call who();
select q('x');
call nope();
-- Functions are none, and are looked for by all of their arguments.
create function in_and_out(a inout int, b out int) language sql as 'select 1, a';
create function rows_of(a int) returns table(b int) language sql as 'select a';
call in_and_out(1, null);
call in_and_out(1);
call in_and_out(b => 1, a => 2);
call rows_of(1);
call rows_of(1, 2);
drop function in_and_out, rows_of;
drop function q(text);
drop procedure p;
drop routine q;
-- Another name for what is built in.
create function less(int, int) returns bool language internal immutable strict as 'int4lt';
create function steps(int, int) returns setof int language internal strict as 'generate_series_int4';
select less(1, 2), less(null, 2);
select * from steps(2, 4);
select proname, less(pronargs, 2) from pg_proc where proname = 'less';
create function nothing_built_in() returns int language internal as 'nosuch';
\sf less
drop function less;
-- What is wrong with a definition.
create function bad() returns int language sql as 'select 1; select ''x''';
create function bad() returns int language sql as 'select nope';
create function bad(a int) returns int language sql as $$ select a, 1 $$;
create function bad() returns int language sql as 'selec 1';
create function bad() returns int as 'select 1';
create function bad() returns int language sql;
create function bad() language sql as 'select 1';
create function bad() returns int language nope as 'select 1';
create function bad(a int default 'x') returns int language sql as 'select 1';
create function bad(out a int, out b int) returns int language sql as 'select 1, 2';
create function bad(cstring) returns int language sql as 'select 1';
create function bad() returns int language sql immutable stable as 'select 1';
create function bad() returns int language sql cost -1 as 'select 1';
create function bad() returns int language sql rows 5 as 'select 1';
create function bad() returns squares_t language sql as 'select 1';
create procedure bad() language sql immutable as 'select 1';
create function who() returns name language sql as 'select current_user';
create or replace function who() returns text language sql as 'select current_user::text';
create or replace function add2(a int, c int default 10) returns int language sql as 'select 1';
create or replace function add2(a int, b int) returns int language sql as 'select 1';
create or replace procedure who() language sql as 'select 1';
create function divides(int) returns int language sql as 'select 1; select 1 / $1';
select divides(0);
-- Privileges.
create role functions_user;
grant usage on schema play to functions_user;
revoke execute on function who() from public;
set role functions_user;
select who();
select zone();
alter function zone() volatile;
drop function zone();
reset role;
grant execute on function who() to functions_user;
select proacl from pg_proc where proname = 'who';
set role functions_user;
select who() = session_user, count_s();
reset role;
grant execute on all functions in schema play to functions_user;
revoke all on all routines in schema play from functions_user;
alter default privileges in schema play grant execute on functions to functions_user;
create function later() returns int language sql as 'select 1';
select proacl from pg_proc where proname = 'later';
drop function later();
alter default privileges in schema play revoke execute on functions from functions_user;
revoke usage on schema play from functions_user;
revoke execute on function who() from functions_user;
drop role functions_user;
-- How they are shown.
comment on function add2(int, int) is 'adds';
select obj_description('add2(int,int)'::regprocedure), 'twice'::regproc, 'total(int[])'::regprocedure;
select pg_get_function_arguments('add2'::regproc), pg_get_function_identity_arguments('add2'::regproc),
  pg_get_function_result('squares'::regproc), pg_get_functiondef('add2'::regproc);
\sf zone_rows
\sf r
\sf atomic
\df total
\df+ twice
drop function nosuch();
drop function nosuch;
drop function add2(text);
drop function add2(nosuch);
drop procedure if exists nosuch(int);
drop aggregate add2(int, int);
-- What they mention, as information_schema has it.
create table mentioned (a int, b int);
create sequence counted;
create function inner_one(int) returns int return $1 + 1;
create function outer_one(a int default inner_one(1), b bigint default nextval('counted')) returns bigint
  begin atomic select max(m.b) + inner_one(2) from mentioned m; end;
select split_part(specific_name::text, '_', 1), split_part(routine_name::text, '_', 1) from information_schema.routine_routine_usage
  where specific_schema = 'play' and specific_name::text ~ '^outer_one' order by 1, 2;
select routine_name, sequence_name from information_schema.routine_sequence_usage where routine_schema = 'play';
select routine_name, table_name, column_name from information_schema.routine_column_usage where routine_name = 'outer_one';
select routine_name, table_name from information_schema.routine_table_usage where routine_name = 'outer_one';
drop function inner_one(int);
-- A text may call its own function.
create function sum_to(n int) returns int language sql as $$ select case when n <= 0 then 0 else n + sum_to(n - 1) end $$;
select sum_to(100);
create function to_itself(n int) returns int language sql begin atomic; select to_itself(n); end;
-- A SET clause is restored; what the function sets otherwise lasts as long as elsewhere.
create function sets_others() returns text language plpgsql set work_mem = '3MB' as $$
begin
  set local work_mem = '4MB'; perform set_config('lock_timeout', '1h', true); set local enable_seqscan = off;
  perform set_config('statement_timeout', '2h', false);
  return current_setting('work_mem');
end $$;
begin;
select sets_others(), current_setting('lock_timeout'), current_setting('statement_timeout');
show enable_seqscan;
commit;
select current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('enable_seqscan');
reset statement_timeout;
create function wrong_value() returns int language sql set work_mem = 'x' as $$ select 1 $$;
drop function sum_to, sets_others;
