-- Functions, procedures and DO blocks LANGUAGE plpgsql.
create function f1(a int, b int default 2) returns int language plpgsql as $$
declare x int := a; y numeric;
begin
  x := x + b; y = x * 1.5;
  if x > 10 then return 100; elsif x = 5 then return y::int; end if;
  for i in 1..3 loop x := x + i; end loop;
  raise notice 'x is % and y is %', x, y;
  return x;
end $$;
select f1(1), f1(3), f1(9);
create table t(id int primary key, v text);
create function f2() returns setof t language plpgsql as $$
declare r t; n int;
begin
  insert into t values (1,'a'),(2,'b'),(3,null);
  get diagnostics n = row_count;
  raise notice 'n %', n;
  for r in select * from t order by id loop
    if r.v is null then r.v := 'none'; end if;
    return next r;
  end loop;
  select * into r from t where id = 2;
  raise notice '% % %', r, r.v, found;
  select * into strict r from t where id = 99;
exception when no_data_found then
  raise notice 'nd % %', sqlstate, sqlerrm;
  return query select 9, 'q';
end $$;
select * from f2();
select count(*) from t;
do $$ declare a int[] := '{1,2,3}'; r record; begin
 a[2] := 20; a[5] := 7; raise notice '%', a;
 foreach r in array array[row(1,2)] loop raise notice '%', r; end loop;
 exception when others then raise notice 'E: %', sqlerrm; end $$;
do $$ declare i int; begin foreach i in array array[1,2,3] loop continue when i=2; raise notice '%', i; end loop; 
 execute 'select $1 + 1' into i using 41; raise notice 'i=%', i;
 case i when 1 then raise notice 'one'; when 42, 43 then raise notice 'fortytwo'; end case;
 perform 1/0; end $$;
create procedure p1(inout a int, b text) language plpgsql as $$ begin a := a + length(b); end $$;
call p1(3, 'abc');
do $$ declare v int := 5; begin call p1(v, 'xxxx'); raise notice 'v=%', v; end $$;
create function f3(x int, out a int, out b text) language plpgsql as $$ begin a := x*2; b := 'b'||x; end $$;
select * from f3(4); select f3(5);
create function f4() returns void language plpgsql as $$ begin null; end $$;
select f4(), f4() is null;
create function f5(n int) returns int language plpgsql as $$ begin if n <= 1 then return 1; end if; return n * f5(n-1); end $$;
select f5(10);
create function f6() returns int language plpgsql as $$ begin retrn 1; end $$;
create function f7() returns int language plpgsql as $$ begin return nosuch; end $$;
select f7();
create function f8(anyelement) returns anyarray language plpgsql as $$ begin return array[$1,$1]; end $$;
select f8(3), f8('x'::text);
-- names
create table names(id int, total int);
insert into names values (1, 10), (2, 20);
create function ambiguous(id int) returns int language plpgsql as $$ begin return (select total from names where id = id); end $$;
select ambiguous(1);
create function qualified(id int) returns int language plpgsql as $$ begin return (select total from names n where n.id = qualified.id); end $$;
select qualified(1), qualified(2), qualified(3);
create function prefers(id int) returns int language plpgsql as $$
#variable_conflict use_column
begin return (select sum(total) from names where id = id); end $$;
select prefers(1);
do $$ <<outer>> declare x int := 1; begin declare x int := 2; begin raise notice '% %', x, outer.x; end; end $$;
-- records
do $$ declare r record; begin raise notice '%', r.a; end $$;
do $$ declare r record; begin select 1 as a, 'x' as b into r; raise notice '% % %', r, r.a + 1, r.b || 'y'; select 2.5 as a into r; raise notice '%', r.a * 2; raise notice '%', r.b; end $$;
create type pair as (a int, b text);
do $$ declare p pair; q pair[]; begin p.a := 3; p.b := 'z'; raise notice '%', p; p := row(4, 'w'); q[1] := p; q[2].b := 'deep'; raise notice '% %', q, q[1].a; p := null; raise notice '% %', p, p.a; end $$;
create function makes() returns pair language plpgsql as $$ declare p pair; begin p := (7, 'seven'); return p; end $$;
select makes(), (makes()).b;
create function wrong() returns pair language plpgsql as $$ begin return row(1, 'w'::text, 3); end $$;
select wrong();
-- loops
do $$ begin for i in reverse 10..1 by 3 loop raise notice '%', i; end loop; for i in 1..0 loop raise notice 'never'; end loop; raise notice '%', found; end $$;
do $$ declare i int := 0; begin <<a>> loop i := i + 1; <<b>> while true loop i := i + 1; exit a when i > 5; continue a when i % 2 = 0; exit; end loop b; end loop; raise notice '%', i; end $$;
do $$ declare a int; b text; begin for a, b in select x, x::text || '!' from generate_series(1, 2) x loop raise notice '% %', a, b; end loop; for a in execute 'select $1 * 2' using 21 loop raise notice '%', a; end loop; end $$;
do $$ declare s int[]; begin foreach s slice 1 in array array[[1, 2], [3, 4]] loop raise notice '%', s; end loop; end $$;
do $$ begin for i in null..3 loop null; end loop; end $$;
-- errors, and what handles them
create table kept(i int primary key);
do $$ begin insert into kept values (1); begin insert into kept values (2); insert into kept values (1); exception when unique_violation then raise notice '% | %', sqlstate, sqlerrm; end; insert into kept values (3); end $$;
select * from kept order by 1;
do $$ declare c text; d text; m text; begin perform 1 / 0; exception when division_by_zero or others then get stacked diagnostics m = message_text, c = returned_sqlstate, d = pg_exception_context; raise notice '% % %', m, c, d; end $$;
do $$ begin raise exception 'custom %', 1 using errcode = '22012', detail = 'd', hint = 'h'; exception when sqlstate '22012' then raise notice 'caught %', sqlerrm; raise; end $$;
do $$ begin raise division_by_zero; end $$;
do $$ begin raise sqlstate 'U1234' using message = 'mine'; end $$;
do $$ begin raise notice '% %%', null; raise warning 'w'; raise info 'i'; end $$;
do $$ begin assert 1 = 1; assert 1 = 2, 'not so'; exception when others then raise notice 'never'; end $$;
do $$ declare n int not null := 1; begin n := null; end $$;
do $$ declare c constant int := 1; begin c := 2; end $$;
do $$ declare s varchar(3); begin s := 'toolong'; end $$;
create function no_return() returns int language plpgsql as $$ begin null; end $$;
select no_return();
do $$ begin case 5 when 1 then null; end case; end $$;
do $$ begin select 1; end $$;
do $$ declare a int; begin select 1 / (x - 1) into a from generate_series(1, 3) x; end $$;
do $$ declare a int; begin select x into strict a from generate_series(1, 3) x; end $$;
do $$ declare a int; begin insert into kept select generate_series(10, 12) returning i into a; end $$;
do $$ declare a int; begin update kept set i = i + 100 where i = 3 returning i into a; raise notice '% %', a, found; delete from kept where i = 99; raise notice '%', found; end $$;
-- syntax
do $$ begin if true then null; end $$;
do $$ begin x := 1; end $$;
do $$ declare x int; x int; begin end $$;
do $$ begin exit; end $$;
do $$ begin raise notice '%'; end $$;
do $$ begin perform (1; end $$;
create function bad(a int) returns int language plpgsql as $$
begin
  return a +;
end $$;
-- transactions are the caller's
create function tries() returns void language plpgsql as $$ begin commit; end $$;
select tries();
-- volatile functions see what they have done, stable ones do not
create function counts_twice() returns text language plpgsql as $$ declare a int; begin a := (select count(*) from kept); insert into kept values (50 + a); return a || ' ' || (select count(*) from kept); end $$;
select counts_twice();
create function changes() returns void stable language plpgsql as $$ begin insert into kept values (999); end $$;
select changes();
create function of_set(n int) returns table(a int, b text) language plpgsql as $$ begin for i in 1..n loop a := i; b := repeat('x', i); return next; end loop; return query select 99, 'q'; return query execute 'select $1, $2' using 100, 'e'::text; end $$;
select * from of_set(2);
select a, of_set(1) from of_set(1) limit 2;
create function mismatched() returns table(a int, b int) language plpgsql as $$ begin return query select 1; end $$;
select * from mismatched();
create function dynamic(t text) returns bigint language plpgsql as $$ declare n bigint; begin execute format('select count(*) from %I', t) into n; return n; end $$;
select dynamic('kept') > 0, dynamic('nosuch');
create function variadic_sum(variadic a int[]) returns int language plpgsql as $$ declare s int := 0; x int; begin foreach x in array a loop s := s + x; end loop; return s; end $$;
select variadic_sum(1, 2, 3);
drop function f2();
drop type pair cascade;
-- Places of errors in declarations and targets.
do $$ <<b>> declare c int; begin b.d.c.x = 1; end $$;
do $$ declare c int; r1 record[]; begin end $$;
do $$ declare c cursor (x anyelement) for select 1; begin end $$;
do $$ declare c int; x no_such_type; begin end $$;
do $$ declare c int; x public.no_such_type; begin end $$;
do $$
declare x constant int[]; y int;
begin
  for x[1], y in select 1, 2 loop
  end loop;
end $$;
do $$ declare x constant int = 1; begin for x, x in select 1, 2 loop end loop; end $$;

-- The stack of functions in notices and PG_CONTEXT.
create function told() returns text language plpgsql as $$
declare c text; begin raise notice 'told'; get diagnostics c = pg_context; return c; end $$;
create function asks() returns text language plpgsql as $$ begin return told(); end $$;
create function selects() returns text language plpgsql as $$ declare c text; begin select told() into c from pg_class limit 1; return c; end $$;
create function executes() returns text language plpgsql as $$ declare c text; begin execute 'select told()' into c; return c; end $$;
create function by_sql() returns text language sql as $$ select told() from pg_class limit 1 $$;
select asks();
select selects();
select executes();
select by_sql();

-- Targets, and values that are no rows.
create type pair as (x int, y text);
create table pairs (x int, y text, z int[]);
insert into pairs values (1, 'a', '{1,2}'), (2, 'b', '{3}');
do $$ declare p constant int := 3; begin for p in 1..2 loop raise notice '%', p; end loop; raise notice '%', p; end $$;
do $$ declare p pair; begin p := '(4,d)'::text; raise notice '%', p; p := 5; end $$;
do $$ declare r record; begin select * into r from pairs where x = 1; r.z[2] := 55; raise notice '%', r; r.z := r.z || 7; raise notice '%', r.z; end $$;
do $$ declare r record; t text; begin r := row(1, 'a'); t := r.f2; raise notice '%', t; end $$;
do $$ declare p pair; begin for p in select x, y from pairs where x > 9 loop null; end loop; raise notice '% %', p, p is null; select x, y into p from pairs where x > 9; raise notice '%', p; end $$;
do $$ begin execute 'select * from pairs where x = $1'; end $$;
do $$ declare c refcursor; n int := 2; begin open c for values (1), (2), (3); move n in c; end $$;
do $$ declare c refcursor; r record; begin open c for values (1); fetch last c into r; end $$;
create procedure adds(inout x numeric) language plpgsql as $$ begin x := x + 1; end $$;
do $$ declare a numeric := 5; begin call adds(a); raise notice '%', a; end $$;
do $$ declare a int := 5; begin call adds(a); end $$;

-- The checks of plpgsql.extra_errors and plpgsql.extra_warnings.
set plpgsql.extra_warnings = 'too_many_rows, strict_multi_assignment';
do $$ declare a int; begin select x into a from pairs order by x; raise notice '%', a; select x, y into a from pairs where x = 1; raise notice '%', a; end $$;
do $$ declare p pair; begin for p in select x from pairs order by x loop raise notice '%', p; end loop; end $$;
reset plpgsql.extra_warnings;
set plpgsql.extra_errors = 'all';
do $$ declare a int; begin select x into a from pairs order by x; end $$;
do $$ declare a int; b int; begin select x into a, b from pairs where x = 1; end $$;
create function shadowing(a int) returns int language plpgsql as $$ declare a text; begin return 1; end $$;
set plpgsql.extra_errors = 'nonsense';
set plpgsql.extra_errors = 'all, none';
reset plpgsql.extra_errors;
set plpgsql.extra_warnings = 'shadowed_variables';
create function shadowing(a int) returns int language plpgsql as $$ declare a text; begin return 1; end $$;
reset plpgsql.extra_warnings;
set plpgsql.check_asserts = false;
do $$ begin assert false; raise notice 'not checked'; end $$;
reset plpgsql.check_asserts;

-- A function that is not volatile runs queries only.
create function sets() returns void language plpgsql stable as $$ begin set work_mem = '5MB'; end $$;
select sets();
create function shows() returns text language plpgsql stable as $$ declare t text; begin for t in show work_mem loop return t; end loop; end $$;
select shows();
set plpgsql.extra_warnings = 'shadowed_variables';
create function shadowing_arguments(a int) returns int language plpgsql as $$ declare c cursor (a int) for select 1; begin return 1; end $$;
reset plpgsql.extra_warnings;

-- Variables in the queries of other statements.
create function into_table(a int, v varchar, anyarray) returns void language plpgsql as $$ declare r record; begin select 1 as x, 'y'::text as y into r; create temp table of_variables as select a, v as v, $1 + 1 as b, r.y, r.x * a as x, $3[i] as e, i from generate_series(1, a) i where i <= array_length($3, 1); end $$;
select into_table(2, 'text', array['p', 'q']);
select * from of_variables order by i;
select attname, format_type(atttypid, null) from pg_attribute where attrelid = 'of_variables'::regclass and attnum > 0 order by attnum;
do $$ declare n int := 3; m int; begin execute 'create temp table used as select $1 as a, $2 as b' using n, 'z'::text; get diagnostics m = row_count; raise notice '%', m; create temp table if not exists of_variables as select n; create table nothing_yet as select n as n, 'a' as t with no data; declare of_n cursor for select i from generate_series(1, n) i; fetch all from of_n; exception when others then raise notice '% %', sqlstate, sqlerrm; end $$;
create function open_it(n int) returns void language plpgsql as $$ begin declare of_series cursor with hold for select i * n as j from generate_series(1, n) i; end $$;
do $$ declare n int := 2; begin execute 'declare of_n cursor with hold for select i, $1 from generate_series(1, $1) i' using n; end $$;
fetch all from of_n; close of_n;
do $$ declare n int := 2; begin create materialized view of_variable as select n as n; exception when others then raise notice '% %', sqlstate, sqlerrm; end $$;
do $$ declare n int := 2; begin create view of_variable as select n as n; exception when others then raise notice '% %', sqlstate, sqlerrm; end $$;
do $$ declare v varchar(5) := 'abc'; n numeric(5, 2) := 1.5; r record; begin select 'a'::varchar as f into r; create table with_modifiers as select v, n, r.f, v || 'x' as w from generate_series(1, n::int) group by v, n; end $$;
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'with_modifiers'::regclass and attnum > 0 order by attnum; select * from with_modifiers;

-- EXECUTE of a statement that returns rows runs it to its end.
prepare fails(int) as select 1 / $1; prepare counted as select nextval('calls') from generate_series(1, 3); create sequence calls;
do $$ begin execute 'execute fails(0)'; exception when others then raise notice '% %', sqlstate, sqlerrm; end $$;
deallocate counted; prepare counted as select nextval('calls') from generate_series(1, 3);
do $$ declare n int; begin execute 'execute counted'; get diagnostics n = row_count; raise notice '%', n; end $$;
select last_value from calls;

-- The context of a caught error goes up to the outermost function.
create function failing() returns int language plpgsql as $$ begin raise exception 'it fails'; end $$;
create function catching() returns text language plpgsql as $$ declare c text; begin perform failing(); return ''; exception when others then get stacked diagnostics c = pg_exception_context; return c; end $$;
create function assigning() returns text language plpgsql as $$ declare r text; begin r := catching(); return r; end $$;
create function looping() returns setof text language plpgsql as $$ declare r text; begin for r in select assigning() from generate_series(1, 1) loop return next r; end loop; for r in execute 'select catching()' loop return next r; end loop; return query select catching(); end $$;
create function in_sql() returns setof text language sql as $$ select catching() from generate_series(1, 1) $$;
select catching(); select assigning(); select * from looping(); select * from in_sql();

-- A SELECT that changes rows in WITH runs to its end: all rows, and all triggers.
create table changed (i int); create table noted (i int);
create function note() returns trigger language plpgsql as $$ begin insert into noted values (new.i); return null; end $$;
create trigger note after insert on changed for each row execute function note();
create function change_first(n int) returns int language plpgsql as $$ declare r int; begin with c as (insert into changed select i from generate_series(1, n) i returning i) select i from c into r; return r; end $$;
create function change_dynamically(n int) returns int language plpgsql as $$ declare r int; begin execute 'with c as (insert into changed select i from generate_series(1, $1) i returning i) select count(*) from c' into r using n; return r; end $$;
create function change_in_loop(n int) returns int language plpgsql as $$ declare r int; begin for r in with c as (insert into changed select i from generate_series(1, n) i returning i) select i from c order by i loop return r; end loop; end $$;
create function change_by_cursor(n int) returns int language plpgsql as $$ declare r int; c cursor for with c as (insert into changed select i from generate_series(1, n) i returning i) select i from c order by i; begin open c; fetch c into r; close c; return r; end $$;
create function change_in_sql(n int) returns int language sql as $$ with c as (insert into changed select i from generate_series(1, n) i returning i) select i from c order by i $$;
select change_first(3), (select count(*) from noted); truncate changed, noted;
select change_first(3); select count(*) from changed; select count(*) from noted;
select change_dynamically(4); select count(*) from changed; select count(*) from noted;
select change_in_loop(5); select count(*) from changed; select count(*) from noted;
select change_by_cursor(6); select count(*) from changed; select count(*) from noted;
select change_in_sql(7); select count(*) from changed; select count(*) from noted;

-- Elements that are put into an array where it is: other variables, and the array before an error, keep theirs.
do $$
declare
  a int[] := '{1,2,3}';
  b int[];
  c int[] not null := '{}';
  d int[] := '[5:6]={1,2}';
  e text[] := '{}';
  f numeric(4,1)[] := '{}';
  m int[][] := '{{1,2},{3,4}}';
  n int[];
begin
  b := a;
  a := a || 4;
  a[1] := a[2] + a[3];
  raise notice '% %', a, b;
  a := a || a[1];
  a := a || a;
  a := array_append(a, null);
  raise notice '%', a;
  for i in 1..3 loop c := c || i; c[i + 1] := i; n := n || i; d := d || i; d[3] := i; e := e || 'x'::text; f := f || 1.26; end loop;
  raise notice '% % % % %', c, d, e, f, n;
  m[2][1] := 7;
  m[1][2] := m[2][1];
  raise notice '%', m;
  for i in 1..2 loop
    begin
      b := b || 1 / (i - 1);
      b[7] := 1 / (i - 2);
    exception when division_by_zero then raise notice '% %', sqlerrm, b;
    end;
    begin
      m[3][i] := 1;
    exception when array_subscript_error then raise notice '% %', sqlerrm, m;
    end;
    begin
      m := m || 1;
    exception when others then raise notice '% %', sqlerrm, m;
    end;
    begin
      b[null] := 1;
    exception when others then raise notice '% %', sqlerrm, b;
    end;
    begin
      b[2147483647] := 1;
    exception when others then raise notice '% %', sqlstate, b;
    end;
  end loop;
end
$$;

create function grown(a int[], n int) returns int[] language plpgsql as $$
begin
  for i in 1..n loop a := a || i; a[1] := i; end loop;
  return a;
end
$$;
select grown(x, 2), x, grown(x, 3) from (values ('{}'::int[]), ('{9,9}'), (null)) v(x);
create domain small_array as int[] check (cardinality(value) < 4);
do $$
declare s small_array := '{1}';
begin
  s := s || 2; s[3] := 3;
  raise notice '%', s;
  s[4] := 4;
end
$$;
do $$
declare a int[] := '{}'; t text;
begin
  for i in 1..60000 loop a := a || i; end loop;
  for i in 1..60000 loop a[i] := a[i] + 1; end loop;
  raise notice '% % %', cardinality(a), a[1], a[60000];
end
$$;
drop domain small_array;
drop function grown;
