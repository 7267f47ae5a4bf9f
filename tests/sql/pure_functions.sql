-- Functions that only compute run for all rows of a batch in turn; others see what the calls before have done.
create function plus(a int, b int default 3) returns int language plpgsql as $$ begin return a + b; end $$;
select sum(plus(g)), sum(plus(g, g)), count(plus(null, g)) from generate_series(1, 3000) g;
select plus(g, 2147483600) from generate_series(40, 60) g;
create function strict_plus(a int, b numeric) returns numeric language plpgsql strict immutable as $$
declare x numeric := a; y text;
begin
  while x < b loop x := x + 1; end loop;
  y := x::text || '.5';
  return y;
end $$;
select g, strict_plus(nullif(g, 3), 4.25) from generate_series(1, 6) g;
create function narrow(a int) returns varchar(3) language plpgsql as $$ begin return a; end $$;
select narrow(g * 100) from generate_series(1, 12) g;
create function fails(a int) returns int language plpgsql as $$
begin
  if a = 7 then raise exception 'not %', a using hint = 'other'; end if;
  return a;
end $$;
select fails(g) from generate_series(1, 10) g;
select fails(g) from generate_series(8, 10) g;
create function falls_off(a int) returns int language plpgsql as $$ begin if a < 5 then return a; end if; end $$;
select falls_off(g) from generate_series(1, 10) g;
select falls_off(g) from generate_series(1, 4) g;
create function nothing(a int) returns void language plpgsql as $$ begin a := a + 1; end $$;
select nothing(g), nothing(g) is null from generate_series(1, 3) g;
create function keeps(a int) returns int language plpgsql as $$ declare n int; begin n := coalesce(n, 0) + a; a := a + n; return a; end $$;
select keeps(g) from generate_series(1, 4) g;
create function outs(a int, out b int, out c text) language plpgsql as $$ begin b := a + 1; c := a || 'x'; end $$;
select outs(g), (outs(g)).c from generate_series(1, 3) g;
create function one_out(a int, out b int) language plpgsql as $$ begin if a > 1 then b := a; end if; end $$;
select one_out(g) from generate_series(1, 3) g;
create table seen (a int);
create function sees(a int) returns int language plpgsql as $$ begin insert into seen values (a); return (select count(*) from seen); end $$;
select sees(g) from generate_series(1, 4) g;
create function calls(a int) returns int language plpgsql as $$ begin return sees(a) * 10; end $$;
select calls(g) from generate_series(1, 3) g;
create function tells(a int) returns int language plpgsql as $$ begin raise notice '%', a; return a; end $$;
select tells(g) + plus(g) from generate_series(1, 2) g;
create function sets(a int) returns text language plpgsql as $$ begin return set_config('my.a', coalesce(current_setting('my.a', true), '') || a, false); end $$;
select sets(g) from generate_series(1, 4) g;
create function any_of(a anyelement) returns anyelement language plpgsql as $$ begin return a; end $$;
select any_of(g), any_of(g || 'x'), any_of(array[g]) from generate_series(1, 2) g;
create domain small as int check (value < 3);
create function to_small(a int) returns small language plpgsql as $$ begin return a; end $$;
select to_small(g) from generate_series(1, 4) g;
create function in_small(a small) returns int language plpgsql as $$ begin a := a + 1; return a; end $$;
select in_small(g) from generate_series(0, 4) g;
-- The calling statement's functions may be replaced between two statements.
create or replace function plus(a int, b int default 3) returns int language plpgsql as $$ begin return a * b; end $$;
select sum(plus(g)) from generate_series(1, 10) g;
create function stable_count() returns int stable language plpgsql as $$ begin return (select count(*) from seen); end $$;
select stable_count() + g from generate_series(1, 2) g;
-- Pure functions do not keep an INSERT from taking rows in bulk.
create table filled (a int, b int);
create function twice(a int) returns int language plpgsql as $$ begin return a * 2; end $$;
insert into filled select g, twice(g) from generate_series(1, 5000) g;
insert into filled (b) values (twice(4)), (twice(5));
update filled set b = twice(b) where a < 10;
select count(*), sum(b) from filled;
create function counts_rows(a int) returns setof int language plpgsql as $$ begin return next (select count(*) from filled); end $$;
truncate filled;
insert into filled select g, counts_rows(g) from generate_series(1, 4) g;
select * from filled order by a;
drop table filled;
drop function twice, counts_rows;
-- Numbers are put into their variables.
do $$
declare a int := 2147483640; b bigint := 1; f float8 := 0.5; t boolean := false; n int;
begin
  for i in 1..5 loop b := b + i; f := f * b; t := b > 5; a := a + 1; end loop;
  raise notice '% % % %', a, b, f, t;
  n := n + 1;
  raise notice '%', n;
  n := 5; n := n + null;
  raise notice '%', n;
  a := a + a;
end $$;
drop function plus, strict_plus, narrow, fails, falls_off, nothing, keeps, outs, one_out, sees, calls, tells, sets, any_of, to_small, in_small, stable_count;
drop table seen;
drop domain small;
