-- Values that functions of users order: default classes of types, and ordering operators of others.
-- Complex numbers by their absolute values, as in the manual's example of a class.
create type complex as (x float8, y float8);
create function complex_abs(complex) returns float8 language sql immutable strict as 'select sqrt(($1).x * ($1).x + ($1).y * ($1).y)';
create function complex_abs_lt(complex, complex) returns bool language sql immutable strict as 'select complex_abs($1) < complex_abs($2)';
create function complex_abs_le(complex, complex) returns bool language sql immutable strict as 'select complex_abs($1) <= complex_abs($2)';
create function complex_abs_eq(complex, complex) returns bool language sql immutable strict as 'select complex_abs($1) = complex_abs($2)';
create function complex_abs_ge(complex, complex) returns bool language sql immutable strict as 'select complex_abs($1) >= complex_abs($2)';
create function complex_abs_gt(complex, complex) returns bool language sql immutable strict as 'select complex_abs($1) > complex_abs($2)';
create function complex_abs_cmp(complex, complex) returns int4 language plpgsql immutable strict as
  $$begin return case when complex_abs($1) < complex_abs($2) then -1 when complex_abs($1) > complex_abs($2) then 1 else 0 end; end$$;
create operator < (leftarg = complex, rightarg = complex, function = complex_abs_lt, commutator = >, negator = >=, restrict = scalarltsel, join = scalarltjoinsel);
create operator <= (leftarg = complex, rightarg = complex, function = complex_abs_le, commutator = >=, negator = >);
create operator = (leftarg = complex, rightarg = complex, function = complex_abs_eq, commutator = =, merges);
create operator >= (leftarg = complex, rightarg = complex, function = complex_abs_ge, commutator = <=, negator = <);
create operator > (leftarg = complex, rightarg = complex, function = complex_abs_gt, commutator = <, negator = <=);
create operator class complex_abs_ops default for type complex using btree as
  operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 complex_abs_cmp(complex, complex);
create table points (n int, c complex);
insert into points values (1, '(3,4)'), (2, '(1,0)'), (3, '(0,2)'), (4, '(-5,0)'), (5, null), (6, '(0,-1)'), (7, '(2,2)'), (8, '(4,3)');
select n, c from points order by c, n;
select n, c from points order by c desc, n;
select n from points order by c nulls first, n limit 4;
select n from points order by c using >, n limit 3;
select n from points order by c fetch first 3 rows with ties;
select distinct complex_abs(c) from (select distinct c from points) s order by 1;
select distinct on (c) c, n from points order by c, n;
select complex_abs(c), count(*), min(n) from points group by c order by c;
select complex_abs(c), n % 2, count(*), grouping(c) from points group by rollup (c, n % 2) order by c nulls first, 2, 4;
select n % 2, count(distinct c), array_agg(n order by c, n) from points group by 1 order by 1;
select array_agg(n order by c desc nulls last, n) from points;
select complex_abs(c) from (select c from points union select c from points) s order by c;
select complex_abs(c) from (select c from points where n < 3 intersect select c from points where n > 3) s order by c;
select n, c from points where c is not null except all select n, c from points where n > 4 order by 1;
select complex_abs(c) from (select c from points except select c from points where n > 5) s order by c;
select n, rank() over (order by c), dense_rank() over (order by c), count(*) over (partition by c) from points order by c, n;
select n, sum(n) over (order by c groups between 1 preceding and current row) from points order by c, n;
select a.n, b.n from points a join points b on a.c = b.c and a.n < b.n order by 1, 2;
select a.n, b.n from points a left join points b on a.c = b.c and a.n <> b.n order by 1, 2;
select n from points where c in (select c from points where n = 1) order by n;
select n from points where c = any (array['(5,0)', '(0,1)']::complex[]) order by n;
select n from points where c between '(2,0)' and '(0,5)' order by n;
select greatest('(1,2)'::complex, '(2,2)', '(-1,0)'), least('(1,2)'::complex, '(2,2)', '(-1,0)');
select n from points where (c, n) > ('(0,5)'::complex, 2) order by c, n;
select n from points where (c, n) <= ('(0,1)'::complex, 2) order by c, n;
select percentile_disc(0.5) within group (order by c), mode() within group (order by c) is not null from points;
select rank('(2,0)'::complex) within group (order by c), cume_dist('(2,0)'::complex) within group (order by c) from points;
with recursive r(c) as (select '(16,0)'::complex union select row((c).y, (c).x / 2)::complex from r where (c).x > 1) select c from r order by c;
prepare by_order(int) as select n from points where n > $1 order by c desc, n;
execute by_order(3);
execute by_order(0);
begin;
declare cur cursor for select n, c from points order by c, n;
fetch 2 from cur;
insert into points values (9, '(0,0)');
fetch 2 from cur;
rollback;

-- Parts of values.
create type tagged as (c complex, tag text);
create table tags (t tagged, a complex[], n int);
insert into tags values ('("(3,4)",b)', array['(1,0)', '(3,4)']::complex[], 1), ('("(0,5)",a)', array['(0,1)']::complex[], 2),
  ('("(1,1)",z)', array['(0,1)', '(5,0)']::complex[], 3), ('("(5,0)",b)', '{}', 4), (null, array['(0,-1)', null]::complex[], 5);
select n from tags order by t, n;
select n from tags order by a, n;
select min(n), count(*) from tags group by t order by t;
select min(n), count(*) from tags group by a order by a;
select min(n), count(*) from tags group by row((t).c, n / 5) order by 1;
select n from tags order by row((t).c, n);
select a.n, b.n from tags a join tags b on a.a = b.a order by 1, 2;
select a.n, b.n from tags a join tags b on a.t = b.t order by 1, 2;
select array_position(a, '(0,5)'), array_positions(a, '(-1,0)'), array_remove(a, '(4,3)') from tags order by n;
select n from tags where a < array['(0,1)', '(2,0)']::complex[] order by n;
create domain unit as complex check (complex_abs(value) < 2);
select n from points where complex_abs(c) < 2 order by c::unit desc, n;

-- Ordering operators of classes that are no defaults.
create function mod_cmp(int4, int4) returns int4 language sql immutable strict as 'select $1 % 3 - $2 % 3';
create function mod_lt(int4, int4) returns bool language sql immutable strict as 'select $1 % 3 < $2 % 3';
create function mod_eq(int4, int4) returns bool language sql immutable strict as 'select $1 % 3 = $2 % 3';
create function mod_gt(int4, int4) returns bool language sql immutable strict as 'select $1 % 3 > $2 % 3';
create operator <% (leftarg = int4, rightarg = int4, function = mod_lt, commutator = >%);
create operator =% (leftarg = int4, rightarg = int4, function = mod_eq, commutator = =%);
create operator >% (leftarg = int4, rightarg = int4, function = mod_gt, commutator = <%);
create operator <%% (leftarg = int4, rightarg = int4, function = mod_lt);
create operator class mod_ops for type int4 using btree as operator 1 <%, operator 3 =%, operator 5 >%, function 1 mod_cmp(int4, int4);
create table numbers (i int4 primary key);
insert into numbers select i from generate_series(1, 10) i;
select i, -i from numbers order by i using <%, i;
select i, -i from numbers order by i using >%, i desc limit 4;
select i % 3 from (select distinct i from numbers order by i using <%) s order by 1;
select i % 3 from (select distinct on (i) i from numbers order by i using >%) s order by 1;
select array_agg(i order by i using >%, i) from numbers;
select count(distinct i), array_agg(distinct i order by i) from numbers;
select i, count(*) over (order by i using <%) from numbers order by i using <%, i;
select i, i % 2 from numbers order by i % 2, i using <%, i desc;
select i from numbers order by i using <%%;
select i from numbers order by i using =%;

-- Errors of functions are those of the statement.
create function mod_fails(int4, int4) returns int4 language plpgsql immutable strict as $$begin if $1 = 7 or $2 = 7 then raise 'seven'; end if; return $1 - $2; end$$;
create operator <! (leftarg = int4, rightarg = int4, function = mod_lt);
create operator class failing for type int4 using btree as operator 1 <!, operator 3 =%, function 1 mod_fails(int4, int4);
select i from numbers where i < 7 order by i using <!;
select i from numbers order by i using <!;
create function mod_null(int4, int4) returns int4 language sql immutable strict as 'select null::int4';
create operator <!! (leftarg = int4, rightarg = int4, function = mod_lt);
create operator class nulls for type int4 using btree as operator 1 <!!, operator 3 =%, function 1 mod_null(int4, int4);

-- An equality by hash alone.
create type word as (w text);
create function word_eq(word, word) returns bool language sql immutable strict as 'select lower(($1).w) = lower(($2).w)';
create function word_hash(word) returns int4 language sql immutable strict as 'select length(($1).w)';
create operator = (leftarg = word, rightarg = word, function = word_eq, commutator = =, hashes);
create operator class word_ops default for type word using hash as operator 1 =, function 1 word_hash(word);
create table words (w word, n int);
insert into words values ('(Ab)', 1), ('(aB)', 2), ('(cd)', 3), ('(x)', 4), (null, 5), ('(CD)', 6);
select a.n, b.n from words a join words b on a.w = b.w and a.n < b.n order by 1, 2;

-- Indexes.
create index points_c on points (c);
create index points_mod on points (n mod_ops);
create index points_both on points (n, c desc);
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'points'::regclass order by 1;
insert into points values (10, '(0,1)');
select n from points where c = '(1,0)' order by n;
select n from points where n =% 1 order by n;
delete from points where n = 10;
update points set c = '(9,9)' where n = 2;
select n from points order by c, n;
reindex index points_c;
truncate points;
insert into points values (1, '(1,1)');
alter table points add column more text default 'x';
alter table points alter more drop default;
alter table points alter more type int using 1;
select n from points where c = '(1,1)';
drop index points_mod;
drop table points, tags, numbers, words;
drop type complex cascade;

-- Rows without a named type: those of one statement may have fields of different types.
create type by_x as (x int, y int);
create function x_cmp(by_x, by_x) returns int4 language sql immutable strict as 'select ($1).x - ($2).x';
create function x_lt(by_x, by_x) returns bool language sql immutable strict as 'select ($1).x < ($2).x';
create function x_eq(by_x, by_x) returns bool language sql immutable strict as 'select ($1).x = ($2).x';
create function x_gt(by_x, by_x) returns bool language sql immutable strict as 'select ($1).x > ($2).x';
create operator < (leftarg = by_x, rightarg = by_x, function = x_lt, commutator = >);
create operator = (leftarg = by_x, rightarg = by_x, function = x_eq, commutator = =);
create operator > (leftarg = by_x, rightarg = by_x, function = x_gt, commutator = <);
create operator class x_ops default for type by_x using btree as operator 1 <, operator 3 =, operator 5 >, function 1 x_cmp(by_x, by_x);
create type by_y as (x int, y int);
create function y_cmp(by_y, by_y) returns int4 language sql immutable strict as 'select ($1).y - ($2).y';
create function y_lt(by_y, by_y) returns bool language sql immutable strict as 'select ($1).y < ($2).y';
create function y_eq(by_y, by_y) returns bool language sql immutable strict as 'select ($1).y = ($2).y';
create function y_gt(by_y, by_y) returns bool language sql immutable strict as 'select ($1).y > ($2).y';
create operator < (leftarg = by_y, rightarg = by_y, function = y_lt, commutator = >);
create operator = (leftarg = by_y, rightarg = by_y, function = y_eq, commutator = =);
create operator > (leftarg = by_y, rightarg = by_y, function = y_gt, commutator = <);
create operator class y_ops default for type by_y using btree as operator 1 <, operator 3 =, operator 5 >, function 1 y_cmp(by_y, by_y);
create table pairs (c by_x, d by_y);
insert into pairs select row(i, (i * 7919) % 1000)::by_x, row((i * 31) % 1000, i % 10)::by_y from generate_series(1, 500) i;
select count(distinct row(c, 1)), count(distinct row(d, 1)) from pairs;
select count(distinct row('a'::text, d)), count(distinct row(1, c)) from pairs;
select count(distinct array[row(c, 1)]), count(distinct array[row(d, 1)]) from pairs;
select c from pairs order by row(d, 'a'::text) desc, row(c, 1) limit 3;
select row(1, c) from pairs where (c).x < 4 intersect select row(1, c) from pairs where (c).x > 1 order by 1 limit 2;
select r from (values (row(1, 2)), (row(2, 'a'::text))) v (r) order by r;
select r from (values (row(1, 2)), (row(1, 2, 3))) v (r) order by r;
drop table pairs;
drop type by_x cascade;
drop type by_y cascade;
drop type word cascade;

-- A class that is no default changes nothing for them.
create type odd as enum ('a', 'b');
create function odd_cmp(odd, odd) returns int4 language sql immutable strict as 'select enum_cmp($2, $1)';
create function odd_lt(odd, odd) returns bool language sql immutable strict as 'select enum_gt($1, $2)';
create operator <~ (leftarg = odd, rightarg = odd, function = odd_lt);
create operator class odd_ops for type odd using btree as operator 1 <~, function 1 odd_cmp(odd, odd);
create table plain (i int, t text);
insert into plain select i, 't' || i from generate_series(1, 300) i;
select i from plain order by row(i % 7, 1), row(t, 2) limit 5;
select count(*) from (select row(i, t) r from plain) a join (select row(i, t) r from plain) b on a.r = b.r;
drop table plain;
drop type odd cascade;
