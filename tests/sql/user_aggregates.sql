-- CREATE AGGREGATE: over built-in functions and functions in SQL and PL/pgSQL; grouped, ordered, over windows.
create table t (g int, a int, b text, n numeric);
insert into t values (1, 1, 'x', 1.5), (1, 2, 'y', 2.5), (1, null, null, null), (2, 5, 'z', 10), (2, 5, 'z', 10), (3, null, 'q', null);
create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '0');
create aggregate sum_or_null(int) (sfunc = int4pl, stype = int);
create function add_text(state text, v text) returns text language sql immutable as 'select coalesce(state || ''+'' || v, v, state)';
create function brackets(text) returns text language plpgsql immutable as $$ begin return '[' || coalesce($1, '-') || ']'; end $$;
create aggregate joined(text) (sfunc = add_text, stype = text, finalfunc = brackets);
create function weighted(state numeric[], v numeric, w int) returns numeric[] language plpgsql as
  $$ begin return array[state[1] + coalesce(v * w, 0), state[2] + coalesce(w, 0)]; end $$;
create function weighted_end(numeric[]) returns numeric language sql as 'select round($1[1] / nullif($1[2], 0), 3)';
create aggregate weighted_mean(v numeric, w int) (sfunc = weighted, stype = numeric[], finalfunc = weighted_end, initcond = '{0,0}', parallel = safe);
create aggregate collect(anycompatible) (sfunc = array_append, stype = anycompatiblearray, initcond = '{}');
create function first_of(anyelement, anyelement) returns anyelement language sql immutable strict as 'select $1';
create aggregate first(anyelement) (sfunc = first_of, stype = anyelement, parallel = safe);
create function all_of(int, variadic int[]) returns int language sql as 'select $1 + (select sum(x)::int from unnest($2) x)';
create aggregate spread(variadic int[]) (sfunc = all_of, stype = int, initcond = 0);
create aggregate my_avg(basetype = int4, sfunc = int4_avg_accum, stype = int8[], finalfunc = int8_avg, initcond = '{0,0}');
create aggregate my_count(*) (sfunc = int8inc, stype = int8, initcond = '0');
create aggregate my_old_count(basetype = 'ANY', sfunc = int8inc, stype1 = int8, initcond1 = '0');

select g, total(a), sum_or_null(a), joined(b), weighted_mean(n, a), collect(a), first(b), my_avg(a), my_count(*), my_old_count(*), spread(a, g, 1) filter (where a is not null)
  from t group by g order by g;
select total(a), sum_or_null(a), joined(b), collect(b), first(a), my_count(*) from t where false;
select total(distinct a), joined(distinct b order by b desc), joined(b order by a desc nulls last, b), total(a) filter (where g = 2), collect(n order by n) from t;
select g, a, total(a) over w, joined(b) over w, collect(a) over (order by g, a rows between 1 preceding and current row), first(b) over (partition by g order by a)
  from t window w as (partition by g order by a nulls first) order by g, a nulls first;
select g, collect(a order by a) from t group by rollup (g) order by g;
select total(a) from t having total(a) > 10;
select collect(x) from (select collect(a) from t group by g) s (x);
select first(t order by a desc nulls last) from t;
select total(v) from generate_series(1, 100000) v;
select sum(x) from (select v % 1000, total(v) x from generate_series(1, 100000) v group by 1) s;

-- refused
create aggregate bad(int) (sfunc = int4pl);
create aggregate bad(int) (stype = int);
create aggregate bad(int) (sfunc = int4pl, stype = int8);
create aggregate bad(int) (sfunc = no_such, stype = int);
create aggregate bad(text) (sfunc = int4pl, stype = int);
create aggregate bad(text) (sfunc = texteq, stype = text);
create aggregate bad(int8) (sfunc = add_text, stype = text);
create aggregate bad(int) (sfunc = generate_series, stype = int);
create aggregate bad(int) (sfunc = int4pl, stype = int, finalfunc = no_such);
create aggregate bad(int) (sfunc = int4pl, stype = int, combinefunc = int8pl);
create aggregate bad(int) (sfunc = int4pl, stype = int, sortop = ~~~~);
create aggregate bad(int) (sfunc = int4pl, stype = int, parallel = perhaps);
create aggregate bad(int) (sfunc = int4pl, stype = int, finalfunc_modify = perhaps);
create aggregate bad(int) (sfunc = int4pl, stype = int, msfunc = int4pl);
create aggregate bad(int) (sfunc = int4pl, stype = int, mstype = int, msfunc = int4pl);
create aggregate bad(int) (sfunc = int4pl, stype = int, hypothetical);
create aggregate bad(int) (sfunc = int4pl, stype = anyelement);
create aggregate bad(basetype = int, sfunc = int4pl, stype = record);
create aggregate bad(text) (sfunc = int4_sum, stype = int8);
create aggregate bad(int) (sfunc = int4pl, stype = int, initcond = 'x');
create aggregate total(int) (sfunc = int4pl, stype = int);
create aggregate warned(int) (sfunc = int4pl, stype = int, nonsense = 1);
select total(a) from t where total(a) > 1;
select total('x');
select total(a, a) from t;
drop function add_text(text, text);
drop aggregate no_such(int);
drop aggregate if exists no_such(int);
drop function total(int);
alter function total(int) rename to other;

-- changed
create or replace aggregate total(int) (sfunc = int4mul, stype = int, initcond = '1');
select total(a) from t;
create or replace aggregate total(int) (sfunc = int4_sum, stype = int8);
alter aggregate total(int) rename to product;
comment on aggregate product(int) is 'multiplies';
select obj_description('product(int)'::regprocedure), product(a) from t;
create aggregate moving(int) (sfunc = int4pl, stype = int, initcond = '0', combinefunc = int4pl, sspace = 8,
  msfunc = int4pl, minvfunc = int4mi, mstype = int, minitcond = '0', sortop = <, finalfunc_modify = read_write);
select aggfnoid::regprocedure, aggkind, aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn, aggfinalmodify, aggmfinalmodify,
  aggsortop::regoperator, aggtranstype::regtype, aggtransspace, aggmtranstype::regtype, agginitval, aggminitval
  from pg_aggregate where aggfnoid >= 16384 and aggfnoid::regproc::text ~ '^(moving|product|weighted_mean|first)$' order by 1::text;
select proname, prokind, prosrc, proparallel, provolatile, proisstrict from pg_proc where proname in ('moving', 'first') and pronamespace = 'play'::regnamespace order by 1;
\da play.*
create schema other;
alter aggregate moving(int) set schema other;
select other.moving(a) over (order by a rows between 1 preceding and current row) from t order by a;
drop schema other cascade;
create view v as select g, joined(b order by b) j from t group by g;
drop aggregate joined(text);
drop function brackets(text) cascade;
drop function first_of(anyelement, anyelement) cascade;
select first(a) from t;
create role aggregator;
revoke execute on function weighted_mean(numeric, int) from public;
grant select on t to aggregator;
grant usage on schema play to aggregator;
set role aggregator;
select weighted_mean(n, a) from t;
select product(a) from t;
create aggregate mine(int) (sfunc = int4pl, stype = int);
reset role;
drop owned by aggregator;
drop role aggregator;

-- Ordered-set and hypothetical-set ones.
create aggregate my_percentile(float8 order by anyelement)
  (stype = internal, sfunc = ordered_set_transition, finalfunc = percentile_disc_final, finalfunc_extra = true);
create aggregate my_rank(variadic "any" order by variadic "any")
  (stype = internal, sfunc = ordered_set_transition_multi, finalfunc = rank_final, finalfunc_extra = true, hypothetical);
create table ranked (g int, a int);
insert into ranked values (1, 5), (1, 3), (1, null), (2, 8), (2, 2), (2, 4);
select g, my_percentile(0.5) within group (order by a), my_rank(4) within group (order by a), my_rank(4) within group (order by a desc nulls last) from ranked group by g order by g;
create function keep(int[], int) returns int[] language sql as 'select $1 || $2';
create function nth(int[], int) returns int language sql as 'select (select x from unnest($1) x order by x nulls last offset $2 - 1 limit 1)';
create aggregate nth_of(int order by int) (sfunc = keep, stype = int[], finalfunc = nth, initcond = '{}');
select g, nth_of(1) within group (order by a), nth_of(g) within group (order by a desc) filter (where a > 3) from ranked group by g order by g;
select nth_of(2) within group (order by a) from ranked where false;
create function shown(anyarray, int, anyelement) returns text language sql as 'select $1::text || '' '' || $2 || coalesce($3::text, '' null'')';
create aggregate shown_of(int order by anyelement) (sfunc = array_append, stype = anyarray, finalfunc = shown, finalfunc_extra, initcond = '{}');
select shown_of(7) within group (order by a) from (values (1), (2)) v (a);
select proname, aggkind, aggnumdirectargs, aggfinalmodify, aggfinalextra, pg_get_function_arguments(p.oid) from pg_aggregate join pg_proc p on p.oid = aggfnoid
  where proname in ('my_percentile', 'my_rank', 'nth_of', 'shown_of') order by 1;
select nth_of(1);
select nth_of(1, 2) within group (order by a) from ranked;
select nth_of(1) within group (order by a) over () from ranked;
select my_rank(1, 2) within group (order by a) from ranked;
create aggregate bad(int order by variadic int[]) (sfunc = keep, stype = int[]);
create aggregate bad(int order by text) (sfunc = keep, stype = int[], hypothetical);
create aggregate bad(int) (sfunc = keep, stype = int[], hypothetical);
create aggregate bad(int order by int) (sfunc = keep, stype = text);
create aggregate bad(text order by int) (sfunc = keep, stype = int[], finalfunc = nth);
alter aggregate nth_of(int order by int) rename to nth_element;
comment on aggregate nth_element(int order by int) is 'by its place';
select nth_element(2) within group (order by a) from ranked;
drop aggregate nth_element(int order by int), my_percentile(float8 order by anyelement), my_rank(variadic "any" order by variadic "any"), shown_of(int order by anyelement);
drop function keep, nth, shown;
drop table ranked;
