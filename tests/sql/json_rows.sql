-- Functions that give rows, in a SELECT list and in FROM: what type the rows have, and which are refused.
create table j (b jsonb, t json);
insert into j values ('{"a": 1, "b": [1, 2]}', '{"a": 1}');
create type pair as (a int, b text);
create type single as (c pair);
create domain positive as pair check ((value).a > 0);
create table cut (x int, a int, y text);
alter table cut drop column x;
insert into cut values (1, 'q');

-- Rows with OUT columns.
select jsonb_each(b) from j;
select (jsonb_each(b)).* from j;
select (jsonb_each(b)).value from j;
select jsonb_each_text(b) from j;
select json_each('{"a": 1}');
select jsonb_each(b), generate_series(1, 3) from j;
select jsonb_each(b) from j order by 1 desc;
select (r).key, r from (select jsonb_each(b) r from j) x(r);
select to_jsonb(jsonb_each(b)) from j;
select array(select json_each('{"a": 1}'));
select * from (select json_each('{"a": 1}') union all select row('b', '2'::json)) x;
select x from json_each('{"a": 1}') x;
select to_json(information_schema._pg_expandarray(array['2020-01-01'::date]));
select aclexplode('{postgres=r/postgres}'::aclitem[]);
create function dated(out a int, out b date) returns setof record language sql as $$ select 1, date '2020-01-01' $$;
select dated(), (dated()).b, to_json(dated());

-- Rows of a named type.
select jsonb_populate_record(null::pair, '{"a": 1, "b": "x"}');
select (jsonb_populate_recordset(null::pair, '[{"a": 1, "b": "x"}, {"a": 2}]')).*;
select json_populate_recordset(null::single, '[{"c": {"a": 1, "b": "z"}}]');
select (json_populate_recordset(null::single, '[{"c": {"a": 1, "b": "z"}}]')).*;
select * from json_populate_recordset(null::single, '[{"c": {"a": 1, "b": "z"}}]');
select to_json(json_populate_recordset(null::cut, '[{"a": 1, "y": "z"}]'));
select (json_populate_record(c, '{"y": "w"}')).* from cut c;
select jsonb_populate_record(null::positive, '{"a": 1}');
select jsonb_populate_record(null::positive, '{"a": 0}');
select * from jsonb_populate_recordset(null::positive, '[{"a": 1}, {"a": 0}]');
create domain short_list as varchar(2)[] check (cardinality(value) < 3);
create domain shorter_list as short_list check (cardinality(value) < 2);
create type lists as (a short_list, b shorter_list);
select jsonb_populate_record(null::lists, '{"a": ["x", "yz"], "b": ["x"]}');
select jsonb_populate_record(null::lists, '{"a": ["x", "y", "z"]}');
select json_populate_record(null::lists, '{"b": ["x", "y"]}');
select json_populate_record(null::lists, '{"b": "{x,y}"}');
select json_populate_record(null::lists, '{"b": ["xyz"]}');
select * from jsonb_to_record('{"a": [1, 2, 3]}') as x(a short_list);
create function singles() returns setof single language sql as $$ select row(row(1, 'x')::pair)::single $$;
select * from singles();
select singles();
select (singles()).c;

-- Rows of the type of the value given, which must be what the query expects.
select json_populate_recordset(row(1, date '2020-01-01'), '[{"f1": 0}]');
select * from json_populate_recordset(row(1, 2), '[{"f1": 0, "f2": 1}]') as (a int, b int);
select * from json_populate_recordset(row(1, 2), '[{"f1": 0, "f2": 1}]') as (a int, b int, c int);
select * from json_populate_recordset(row(1, 2), '[{"f1": 0, "f2": 1}]') as (a int, b text);
select * from json_populate_recordset(null::record, '[{"f1": 0, "f2": 1}]') as (a int, f2 int);
create function anything() returns record language sql as $$ select row(1, 'x')::pair $$;
select * from anything() as (a pair);
select * from anything() as (a int, b text);

-- No type, or none of rows.
select json_populate_record(null::record, '{"f1": 1}');
select json_populate_record(null::record, null);
select json_populate_recordset(null::record, null);
select jsonb_to_record('{"a": 1}');
\echo :LAST_ERROR_SQLSTATE
select jsonb_to_recordset('[{"a": 1}]');
select jsonb_to_recordset(null);
select jsonb_populate_record(3, '{"f1": 1}');
\echo :LAST_ERROR_SQLSTATE
select jsonb_populate_recordset(3, '[]');
select json_populate_record(null::int, null);
select * from jsonb_populate_recordset(row(1, 2), '[]');

-- Shapes that do not fit.
select jsonb_populate_record(null::pair, '[1]');
select jsonb_populate_record(null::pair, '1');
select json_populate_recordset(null::pair, '{"a": 1}');
select jsonb_populate_recordset(null::pair, '3');
select * from jsonb_populate_recordset(null::pair, '[{"a": 1}, 3]');
select * from json_to_recordset('[[1]]') as (a int);
select * from jsonb_to_recordset('[{"b": 3}]') as (b pair);
\echo :LAST_ERROR_SQLSTATE
select * from json_to_recordset('[{"b": [3]}]') as (b pair);
select * from json_to_recordset('[{"b": "(1,x)"}]') as (b pair);
select * from jsonb_to_recordset('[{"a": [1, 2], "b": {"a": 3}}]') as (a int[], b pair);

-- Assignment to parts that are not there.
create table js(id int, j jsonb);
insert into js values (1, null), (2, '{}'), (3, '[]'), (4, '{"a":{"b":1}}'), (5, '[1,2]');
update js set j['a'] = '1' where id in (1, 2, 4);
update js set j['b']['c'][2] = '"x"' where id in (1, 2, 4);
update js set j[4] = '"y"' where id in (3, 5);
update js set j[6]['k'][1] = null where id in (3, 5);
update js set j[-1] = '7' where id in (3, 5);
select * from js order by id;
update js set j[-100] = '7' where id = 3;
update js set j['a']['q'] = '7' where id = 1;
update js set j['x'] = '7' where id = 3;
update js set j[null] = '7' where id = 3;
insert into js(id, j[2]) values (9, '1') returning *;
insert into js(id, j['a'][0]) values (9, '1') returning *;
drop table js;

-- Arrays of arrays.
select array(select array[i, i / 2] from generate_series(1, 2) i), array(select array[i] from generate_series(1, 0) i);
select array(select null::int[]);
select array(select '{}'::int[]);
select array(select case when i = 1 then array[1] else array[1, 2] end from generate_series(1, 2) i);
select pg_typeof(array(select '1 2'::int2vector)), array(select '1 2'::int2vector);
