-- Triggers before the insertion of many rows whose functions only compute.
create table t (id int primary key, v text, n int check (n < 5000), d numeric(6, 2), c varchar(4), o int default 7);
create function compute() returns trigger language plpgsql as $$
declare
  x int := new.id * 2;
  s text;
begin
  new.n := x + 1;
  new.d := new.id / 3.0;
  if new.id % 7 = 0 then
    return null;
  elsif new.id % 11 = 0 then
    new.v := upper(new.v) || tg_name || tg_op;
  end if;
  for i in 1..3 loop
    new.n := new.n + i;
    exit when i = 2;
  end loop;
  new.c := 'a' || new.id % 10;
  s := new.v;
  new.v := s || coalesce(new.o, -1);
  return new;
end $$;
create trigger a before insert on t for each row execute function compute();
insert into t (id, v) select g, 'v' || g from generate_series(1, 1000) g;
select count(*), sum(n), sum(d), min(c), max(c), count(distinct v), sum(o) from t;
select * from t where id in (1, 10, 11, 13, 14, 22, 700, 1000) order by id;
-- A second one gets what the first one made.
create function second() returns trigger language plpgsql as $$ begin new.v := new.v || ';' || new.n; return new; end $$;
create trigger b before insert on t for each row execute function second();
insert into t (id, v) select g, 'w' from generate_series(2001, 2100) g;
select * from t where id in (2001, 2002, 2010) order by id;
drop trigger b on t;
-- Errors of rows, in their order.
insert into t (id, v) select g, 'x' from generate_series(2400, 2600) g;
insert into t (id, v) select case when g = 50 then 1 else g + 1100 end, 'x' from generate_series(1, 100) g;
select count(*) from t where id between 1100 and 1300;
create or replace function compute() returns trigger language plpgsql as $$
begin
  if new.id = 3050 then
    raise exception 'row %', new.id using errcode = 'P1234', detail = new.v;
  end if;
  new.n := 1;
  return new;
end $$;
insert into t (id, v) select g, 'x' from generate_series(3000, 3100) g;
insert into t (id, v) select case when g = 3020 then 1 else g end, 'x' from generate_series(3000, 3100) g;
insert into t (id, v, c) select g, 'x', case when g = 3020 then 'too long' end from generate_series(3000, 3100) g;
insert into t (id, v, n) select g, 'x', case when g = 3080 then 'a' end::int from generate_series(3000, 3100) g;
select count(*) from t where id between 3000 and 3100;
create or replace function compute() returns trigger language plpgsql as $$ begin new.n := 10 / (new.id - 3050); return new; end $$;
insert into t (id, v) select g, 'x' from generate_series(3000, 3100) g;
create or replace function compute() returns trigger language plpgsql as $$ begin new.n := 1; end $$;
insert into t (id, v) select g, 'x' from generate_series(3000, 3100) g;
create or replace function compute() returns trigger language plpgsql as $$ begin new.missing := 1; return new; end $$;
insert into t (id, v) select g, 'x' from generate_series(3000, 3100) g;
-- One that reads the table sees the rows before.
create or replace function compute() returns trigger language plpgsql as $$
begin
  new.n := (select count(*) from t where id > 4000);
  return new;
end $$;
insert into t (id, v) select g, 'x' from generate_series(4001, 4100) g;
select min(n), max(n), count(distinct n) from t where id > 4000;
create function counted(int) returns int language sql as 'select count(*)::int from t where id > $1';
create or replace function compute() returns trigger language plpgsql as $$ begin new.n := counted(5000); return new; end $$;
insert into t (id, v) select g, 'x' from generate_series(5001, 5100) g;
select min(n), max(n), count(distinct n) from t where id > 5000;
create sequence s;
create or replace function compute() returns trigger language plpgsql as $$ begin new.n := nextval('s'); return new; end $$;
insert into t (id, v) select g, 'x' from generate_series(6001, 6100) g;
select min(n), max(n), count(distinct n), last_value from t, s where id > 6000 group by last_value;
-- A domain that looks at the table.
create function is_new(int) returns boolean language sql as 'select count(*) < 20 from t where id > 7000 and $1 is not null';
create domain fresh as int check (is_new(value));
create or replace function compute() returns trigger language plpgsql as $$ declare f fresh; begin f := new.id; new.n := f; return new; end $$;
insert into t (id, v) select g, 'x' from generate_series(7001, 7100) g;
create or replace function compute() returns trigger language plpgsql as $$ declare f int; begin f := new.id::fresh; new.n := 1; return new; end $$;
insert into t (id, v) select g, 'x' from generate_series(7001, 7100) g;
-- COPY, with the line of an error.
create or replace function compute() returns trigger language plpgsql as $$
begin
  new.n := new.id % 100;
  if new.v = 'skip' then return null; end if;
  if new.v = 'fail' then raise exception 'failed at %', new.id; end if;
  return new;
end $$;
copy t (id, v) from stdin;
8001	a
8002	skip
8003	skip
8004	b
8005	c
\.
select id, v, n from t where id > 8000 order by id;
copy t (id, v) from stdin;
9001	a
9002	skip
9003	fail
9004	b
\.
copy t (id, v) from stdin;
9001	a
9002	skip
8001	b
9003	fail
\.
-- Conditions, columns that are dropped or generated, replicas.
create table u (a int, gone int, b int, g int generated always as (a * 2) stored, s text);
alter table u drop column gone;
create function twice() returns trigger language plpgsql as $$ begin new.b := new.a * 2; new.s := new.s || 'y'; return new; end $$;
create trigger a before insert on u for each row when (new.a % 2 = 0) execute function twice();
insert into u (a, s) select g, 'x' from generate_series(1, 100) g;
select count(*), sum(a), sum(b), sum(g), count(distinct s) from u;
alter table u drop column g;
drop trigger a on u;
create trigger a before insert on u for each row execute function twice();
insert into u (a, s) select g, 'x' from generate_series(1, 100) g;
select count(*), sum(a), sum(b), count(distinct s) from u;
alter table u disable trigger a;
insert into u (a, s) select g, 'z' from generate_series(1, 100) g;
select count(*), sum(b), count(distinct s) from u;
-- Rows that a trigger skips have lines, too.
create table lines (id int primary key, v text);
create function skips() returns trigger language plpgsql as $$ begin if new.v = 'skip' then return null; end if; return new; end $$;
create trigger a before insert on lines for each row execute function skips();
copy lines from stdin;
1	a
2	skip
3	skip
4	b
1	c
5	skip
\.
insert into lines select g, case when g % 2 = 0 then 'skip' else 'a' end from generate_series(1, 5000) g;
insert into lines select g, 'skip' from generate_series(5001, 15000) g;
insert into lines select case g when 9001 then 3 else g end, case when g % 3 = 0 then 'skip' else 'a' end from generate_series(6000, 12000) g;
select count(*), min(id), max(id) from lines;
create table empty ();
create function as_is() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger a before insert on empty for each row execute function as_is();
insert into empty select from generate_series(1, 5);
select count(*) from empty;
-- A condition that a function of a user converts.
create type mood as enum ('y', 'n');
create table moods (m mood);
create function is_first(mood) returns boolean language plpgsql as $$ begin return not exists (select from moods where m = $1); end $$;
create cast (mood as boolean) with function is_first(mood) as assignment;
create function firsts() returns trigger language plpgsql as $$ begin if new.m then return new; end if; return null; end $$;
create trigger a before insert on moods for each row execute function firsts();
insert into moods select case when g % 2 = 0 then 'y' else 'n' end::mood from generate_series(1, 10) g;
select * from moods order by m;
-- A domain within a row that is read from a text.
create function is_alone(int) returns boolean language plpgsql as 'begin return (select count(*) = 0 from inner_rows); end';
create domain alone as int check (is_alone(value));
create type inner_row as (a alone);
create table inner_rows (x text, c inner_row);
create function reads_row() returns trigger language plpgsql as $$ begin new.c := new.x::inner_row; return new; end $$;
create trigger a before insert on inner_rows for each row execute function reads_row();
insert into inner_rows (x) select '(1)' from generate_series(1, 3);
drop table lines, empty, moods, inner_rows cascade;
drop type mood, inner_row cascade;
drop domain alone;
drop function skips, as_is, firsts, reads_row, is_alone;
drop table t, u;
drop function compute, second, twice, counted;
drop domain fresh;
drop function is_new;
drop sequence s;
