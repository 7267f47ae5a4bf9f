-- intarray: sets of integers, query_int, indexes by gin__int_ops.
create extension intarray;
select intset(7), icount('{1,2,3}'), icount('{}'), icount('{1,null}'), #'{4,5}'::int[], icount('{{1,2},{3,4}}');
select sort('{3,-1,2}'), sort('{3,-1,2}', 'asc'), sort('{3,-1,2}', 'DESC'), sort_asc('{3,-1,2}'), sort_desc('{3,-1,2}'), sort('[5:7]={3,1,2}'::int[]), sort('{{3,1},{2,0}}'::int[]), sort('{1}', 'x');
select sort('{2,1}', 'up');
select sort('{2,null}'::int[]);
select uniq('{1,1,2,1,1}'), uniq(sort('{2,1,2,1}')), uniq('[3:6]={1,1,2,2}'::int[]), uniq('{}'), uniq('{{1,1},{2,2}}'::int[]);
select idx('{5,6,7,6}', 6), idx('{5,6}', 9), '{5,6}'::int[] # 5, idx('{}', 1);
select subarray('{1,2,3,4,5}', 2), subarray('{1,2,3,4,5}', 2, 3), subarray('{1,2,3,4,5}', -2), subarray('{1,2,3,4,5}', -2, 1), subarray('{1,2,3,4,5}', 0, -1), subarray('{1,2,3,4,5}', 9), subarray('{1,2,3,4,5}', -9, 2), subarray('{}', 1), subarray('{1,2}', 1, 9);
select '{1,2}'::int[] + 3, '{1,2}'::int[] + '{2,3}'::int[], '{1,2,1}'::int[] - 1, '{1,2,1,3}'::int[] - '{1,4}'::int[], '{3,1}'::int[] | 2, '{3,1}'::int[] | 1, '{3,1,1}'::int[] | '{2,3}'::int[], '{3,1,1}'::int[] & '{1,1,3,4}'::int[], '{1}'::int[] & '{2}'::int[], '{}'::int[] | '{}'::int[];
select '{1,2,2}'::int[] @> '{2,1,1}'::int[], '{1}'::int[] @> '{}', '{}'::int[] @> '{1}', '{1}'::int[] <@ '{2,1}', '{1,2}'::int[] && '{2,3}', '{}'::int[] && '{1}', '{1,2}'::int[] && '{3}', '{1,2}'::int[] = '{2,1}', _int_same('{1,2}', '{2,1}'), _int_different('{1}', '{1,1}');
select '{1,null}'::int[] @> '{1}'::int[];
select '{1,null}'::int[] + 1;
select '{1,null}'::int[] & '{1}'::int[];
select q, q::query_int from unnest(array['1', ' 1 ', '!1', '1|2', '1&!2', '!(1|2)', '!(1&2)', '1|2&3', '(1|2)&3', '1|(2|3)', '1|2|3', '1&(2&3)', '!!1', '-5&010', '((1))']) q;
select ''::query_int;
select '1 2'::query_int;
select '(1'::query_int;
select '1)'::query_int;
select 'a&1'::query_int;
select '99999999999'::query_int;
select '{1,2,3}'::int[] @@ '1&!4', '{1,2,3}'::int[] @@ '4|(2&3)', '1&4'::query_int ~~ '{1,2,3}'::int[], '{}'::int[] @@ '!1', '{1,null}'::int[] @@ null;
select array['1&2', '3']::query_int[];
select querytree('1&2'::query_int);
create table queries (q query_int, a int[]);
insert into queries values ('1 & 2', '{1,2}'), ('!3', '{3}'), (null, null);
select q, a, a @@ q as satisfied from queries order by a;
-- Indexes.
create table sets (id int, a int[]);
insert into sets select g, array[g % 7, g % 11, g % 13] from generate_series(1, 500) g;
insert into sets values (1001, '{}'), (1002, null), (1003, '{1}'), (1004, '{5,5,5}'), (1005, '{6,10,12}');
create index sets_a on sets using gin (a gin__int_ops);
create function answers(condition text) returns table (by_index text, by_scan text) language plpgsql as $$
declare query text := 'select count(*) || '' '' || coalesce(min(id)::text, ''-'') || '' '' || coalesce(sum(id)::text, ''-'') from sets where ' || condition;
begin
  set local enable_seqscan = off;
  set local enable_bitmapscan = on;
  execute query into by_index;
  set local enable_seqscan = on;
  set local enable_bitmapscan = off;
  execute query into by_scan;
  return next;
end $$;
select c, by_index, by_index = by_scan as same from unnest(array[$$a && '{5,12}'$$, $$a @> '{5,10}'$$, $$a @> '{}'$$, $$a <@ '{5,6,10,12}'$$, $$a = '{6,10,12}'$$, $$a = '{}'$$, $$a @@ '5&10'$$, $$a @@ '5|(10&!12)'$$, $$a @@ '!5'$$,
  $$a @@ '!(1|2)&3'$$, $$'{5}' <@ a$$, $$'5&6'::query_int ~~ a$$, $$a @> '{99}'$$]) with ordinality u(c, n), answers(c) order by n;
set enable_seqscan = off;
explain (costs off) select * from sets where a @@ '5&10';
explain (costs off) select * from sets where a && '{5,12}';
select pg_get_indexdef('sets_a'::regclass);
select oprname, oprleft::regtype, oprright::regtype, oprcode from pg_operator where oid >= 16384 order by oprname, oprcode::text;
drop table sets, queries;
drop extension intarray;
