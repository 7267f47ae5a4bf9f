-- The collation of a call is that of the body's parameters and variables.
create schema call_collations;
set search_path = call_collations;
create collation insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table words (n int, de text collate "de-x-icu", c text collate "C", i text collate insensitive);
insert into words values (1, 'ab', 'ab', 'ab'), (2, 'B', 'B', 'B'), (3, 'äb', 'äb', 'ÄB'), (4, 'c', 'c', 'c');

-- Bodies that are inlined, run, and analyzed when the function is created.
create function less_inlined(a text, b text) returns bool immutable language sql as 'select a < b';
create function less_run(a text, b text) returns bool volatile language sql as 'select count(*) from pg_am; select a < b';
create function less_return(a text, b text) returns bool immutable language sql return a < b;
create function less_atomic(a text, b text) returns bool language sql begin atomic select a < b; end;
create function less_plpgsql(a text, b text) returns bool language plpgsql as 'begin return a < b; end';
select n, less_inlined(de, 'B'), less_run(de, 'B'), less_return(de, 'B'), less_atomic(de, 'B'), less_plpgsql(de, 'B') from words order by n;
select n, less_inlined(c, 'B'), less_run(c, 'B'), less_return(c, 'B'), less_atomic(c, 'B'), less_plpgsql(c, 'B') from words order by n;
select less_plpgsql('ab', 'B'), less_plpgsql('ab' collate "C", 'B'), less_plpgsql('ab', 'B' collate "en-x-icu");
select less_plpgsql(de, c), less_run(de, c) from words order by n;

-- Variables.
create function variables(a text, b name, out x text, out y text) language plpgsql as $$
declare v text; w text collate "C"; d words.de%type; r words%rowtype; n name; l text[];
begin
  x := concat_ws(' ', pg_collation_for(a), pg_collation_for(b), pg_collation_for(x), pg_collation_for(v), pg_collation_for(w));
  y := concat_ws(' ', pg_collation_for(d), pg_collation_for(r.de), pg_collation_for(r.i), pg_collation_for(n), pg_collation_for(l), pg_collation_for($1));
end $$;
select * from variables('a', 'b');
select * from variables('a' collate "de-x-icu", 'b');
select * from variables('a' collate "C", 'b');
create function records() returns setof text language plpgsql as $$
declare r record; q record;
begin
  for r in select de, c, i, n, de || 'x' as joined, de collate "C" as bytes from words order by n loop
    return next concat_ws(' ', r.n, r.de < 'B', r.c < 'B', r.i = 'äb', r.joined < 'B', r.bytes < 'B', pg_collation_for(r.bytes));
  end loop;
  select de, i into r from words where n = 3;
  return next concat_ws(' ', pg_collation_for(r.de), r.i = 'äb');
  q := r;
  return next concat_ws(' ', pg_collation_for(q.de), q.i = 'äb');
  r := row('a'::text);
  return next pg_collation_for(r.f1);
  select * into q from words where n = 9;
  return next concat_ws(' ', pg_collation_for(q.de), q.i = 'äb');
  for r in execute 'select i as y from words where n = 3' loop return next r.y = 'äb'; end loop;
end $$;
select * from records();
create function cased(a text) returns text language plpgsql as $$ begin case a when 'X' then return 'x'; else return 'else'; end case; end $$;
select cased('x'), cased('x' collate insensitive), cased('X');
create function outer_one(a text) returns text language plpgsql as 'begin return cased(a) || cased(upper(a)); end';
select outer_one('x'), outer_one('x' collate insensitive);
create function fired() returns trigger language plpgsql as $$
begin raise notice '% % % %', new.de < 'B', new.c < 'B', new.i = 'zz', pg_collation_for(tg_table_name); return null; end $$;
create trigger fired before insert on words for each row execute function fired();
insert into words values (5, 'ab', 'ab', 'ZZ');

-- Aggregates, operators, indexes.
create function greater_plpgsql(a text, b text) returns text language plpgsql immutable strict as 'begin if a > b then return a; end if; return b; end';
create aggregate greatest_plpgsql(text) (sfunc = greater_plpgsql, stype = text);
create function greater_sql(a text, b text) returns text language sql immutable strict as 'select case when a > b then a else b end';
create aggregate greatest_sql(text) (sfunc = greater_sql, stype = text);
select greatest_plpgsql(de), greatest_plpgsql(c), greatest_plpgsql(i), greatest_sql(de), greatest_sql(c) from words;
select n, greatest_plpgsql(de) over (order by n), greatest_plpgsql(c) over (order by n) from words order by n;
create operator <<< (function = less_plpgsql, leftarg = text, rightarg = text);
select n, de <<< 'B', c <<< 'B', 'ab' <<< c, de <<< ('B' collate "C") from words order by n;
create function early(a text) returns bool language plpgsql immutable as 'begin return a < ''B''; end';
create index on words (early(de));
create index on words (early(c));
set enable_seqscan = off;
select n from words where early(de) order by n;
select n from words where early(c) order by n;
reset enable_seqscan;

-- Rows, polymorphic arguments, defaults, procedures, cursors, statements.
create function rows_plpgsql(a text) returns setof text language plpgsql as
$$ begin return query select pg_collation_for(a) || (a < 'B'); return next pg_collation_for(a); end $$;
select * from rows_plpgsql('ab' collate "de-x-icu");
select rows_plpgsql('ab' collate "C");
create function rows_sql(a text) returns setof text language sql volatile as $$ select pg_collation_for(a) || (a < 'B') $$;
select * from rows_sql('ab' collate "de-x-icu");
select rows_sql('ab');
create function polymorphic(a anyelement, b anyelement) returns bool language plpgsql as 'begin return a < b; end';
select polymorphic('ab'::text, 'B'), polymorphic('ab'::text collate "de-x-icu", 'B'), polymorphic(1, 2);
create function with_default(a text default 'ab' collate "de-x-icu") returns text language plpgsql as 'begin return pg_collation_for(a) || (a < ''B''); end';
select with_default(), with_default('ab'), with_default('ab' collate "C");
create procedure called(a text, inout b text) language plpgsql as $$ begin b := pg_collation_for(a) || (a < 'B'); end $$;
call called('ab' collate "de-x-icu", 'x');
call called('ab', 'x');
create function cursors(a text) returns setof text language plpgsql as
$$ declare c cursor (z text) for select pg_collation_for(z) || ' ' || (z < 'B') as v; begin for r in c (a) loop return next r.v; end loop; end $$;
select * from cursors('ab' collate "de-x-icu");
create function creates(a text) returns text language plpgsql as $$ begin create table made as select a as x; return pg_collation_for(x) from made; end $$;
select creates('ab' collate "de-x-icu");
select collation_name from information_schema.columns where table_schema = 'call_collations' and table_name = 'made';
create function sorted(variadic a text[]) returns text language plpgsql as $$ begin return (select string_agg(x, ',' order by x) from unnest(a) x); end $$;
select sorted('ab', 'B', 'c'), sorted('ab' collate "en-x-icu", 'B', 'c'), sorted('ab' collate "C", 'B');
create function updates(a text) returns bigint language plpgsql as
$$ declare k bigint; begin update words set n = n where c < a; get diagnostics k = row_count; return k; end $$;
select updates('B'), updates('B' collate "de-x-icu");
create domain bytes_text as text collate "C";
create function of_domain(a bytes_text) returns text language plpgsql as $$ declare v bytes_text; begin return pg_collation_for(a) || pg_collation_for(v); end $$;
select of_domain('x'), of_domain('x' collate "de-x-icu");
set client_min_messages = warning;
drop schema call_collations cascade;
