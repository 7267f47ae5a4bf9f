-- Shells of types, and base types whose functions are built-in ones by other names.
create type hull;
create type hull;
create table u (a hull);
create table u (a hull[]);
select null::hull;
alter type hull rename to shape;
alter type hull set schema pg_temp;
alter type hull set (storage = plain);
alter type hull add value 'x';
alter type hull owner to current_user;
comment on type hull is 'not yet';
create cast (hull as int) with inout;
create aggregate ag (int4) (sfunc = int4pl, stype = hull);
create operator === (leftarg = hull, rightarg = int4, function = int4eq);
create function f() returns hull language sql as 'select 1';
create function f() returns missing language plpgsql as 'begin return 1; end';
create function f(cstring) returns missing(3) language internal as 'int4in';
select typname, typtype, typcategory, typlen, typisdefined, typinput, typoutput, typarray, obj_description(oid, 'pg_type')
  from pg_type where typname = 'hull';
drop type hull;
drop type hull;
drop type if exists hull;

-- Any new type completes a shell.
create type s1; create type s1 as enum ('a'); select 'a'::s1;
create type s2; create table s2 (a int); select '(1)'::s2;
create type s3; create domain s3 as int; select 1::s3;
create type s4; create type s4 as (a int); select '(1)'::s4;
create type s5; create type s5 as range (subtype = int4); select '[1,2]'::s5;
drop type s1, s3, s4, s5; drop table s2;

-- A function makes the shell that it returns.
create function num_in(cstring) returns num language internal strict immutable as 'int4in';
create type num (input = num_in);
create type num (output = num_in);
create type num (input = num_in, output = num_in);
create type other (input = num_in, output = num_in);
set client_min_messages = warning;
create function num_out(num) returns cstring language internal strict immutable as 'int4out';
create function num_recv(internal) returns num language internal strict immutable as 'int4recv';
create function num_send(num) returns bytea language internal strict immutable as 'int4send';
create function num_loud(num) returns text language internal strict immutable as 'int4out';
reset client_min_messages;
create type num (input = num_in, output = num_out, internallength = 3, passedbyvalue);
create type num (input = num_in, output = num_out, internallength = 4, passedbyvalue, alignment = char);
create type num (input = num_in, output = num_out, internallength = 4, storage = external);
create type num (input = num_in, output = num_out, storage = sideways);
create type num (input = num_in, output = num_out, internallength = 0);
create type num (input = num_in, output = num_out, alignment = sideways);
create type num (input = num_in, output = num_out, alignment = char);
create type num (input = num_in, output = num_out, category = 'ä');
create type num (input = num_in, output = num_out, typmod_out = numerictypmodout);
create type num (input = num_in, output = num_out, typmod_in = int4in);
create type num (input = num_in, output = num_out, element = int4);
create type num (input = num_in, output = num_out, element = int4, subscript = array_subscript_handler);
create type num (input = num_in, output = num_out, receive = int4recv);
create type num (input = num_in, output = num_out, send = num_loud);
create type num (input = num_in, output = num_out, analyze = int4send);
create type num (input = num_in, input = num_in);
create type num (input, output = num_out);
create type num (input = num_in, output = num_out, default);
create type num ("Input" = num_in, output = num_out);
create type num (input = num_in, output = num_out, receive = num_recv, send = num_send, like = int4, default = 42, category = 'x');
create type num;
select typlen, typbyval, typcategory, typispreferred, typdelim, typinput, typoutput, typreceive, typsend, typmodin, typalign, typstorage, typdefault
  from pg_type where typname in ('num', '_num') order by typname desc;
select pg_typeof('1'::num), format_type('num'::regtype, 3), '7'::num, 'x'::num;
select pg_get_function_arguments('num_out'::regproc), pg_get_function_result('num_in'::regproc);

-- Columns, defaults, arrays, domains, rows.
create type words;
set client_min_messages = warning;
create function words_in(cstring) returns words language internal strict immutable as 'textin';
create function words_out(words) returns cstring language internal strict immutable as 'textout';
create type words (input = words_in, output = words_out, default = 'it''s', storage = extended, collatable = true);
create function vc_in(cstring, oid, int4) returns vc language internal strict immutable as 'varcharin';
create function vc_out(vc) returns cstring language internal strict immutable as 'varcharout';
create function blob_in(cstring) returns blob language internal strict immutable as 'byteain';
create function blob_out(blob) returns cstring language internal strict immutable as 'byteaout';
reset client_min_messages;
create type vc (input = vc_in, output = vc_out, typmod_in = varchartypmodin, typmod_out = varchartypmodout, delimiter = ';');
create type blob (input = blob_in, output = blob_out, storage = extended);
create table t (id int primary key, n num, w words, v vc(5), b blob, ns num[], vs vc(3)[]);
\d t
insert into t (id) values (1) returning *;
insert into t values (2, '7', 'abc', 'vwx', '\x0102', '{1,2}', '{ab;cd}') returning *;
insert into t (id, n) values (3, 7);
insert into t (id, n) values (3, 'x');
insert into t (id, b) values (3, 'q\');
create domain positive as num check (value::text::int > 0) default '9';
create table dt (a positive, bs positive[], c int);
insert into dt (c) values (1) returning *;
insert into dt values ('-1');
insert into dt values ('3', '{4,5}', 2);
alter table dt add d num, add e num default '5', add f words not null;
select * from dt;
alter table dt alter c type num;
alter table dt alter c type num using c::text::num;
select * from dt;
select ns[2], '{3,4}'::num[], array['1'::num] || ns from t where id = 2;
create type pair as (a num, b words);
select '(1,x)'::pair, ('(1,x)'::pair).a, row('1'::num, 'y'::words)::pair;
create view v as select n, w, '5'::num as five from t;
copy t to stdout;
copy t (id, n) from stdin;
4	44
5	x
\.
copy t (id, n) from stdin;
4	44
\.
select id, n from t order by id;
prepare p as select $1::num, $2::num[];
execute p('4', '{5,6}');
select to_json(n), to_jsonb(ns), n::text from t where id = 2;
insert into t (id, w, b) select 10, repeat('words', 20000)::text::words, ('\x' || repeat('0a0b', 20000))::blob;
select md5(w::text), md5(b::text) from t where id = 10;
delete from t where id = 10;

-- Order: that of an operator class, or of a type to which values are cast as they are.
select n from t order by n;
select n from t group by n;
select distinct n from t;
select max(n) from t;
select n = n from t;
create index on t (n);
create table k (n num primary key);
select row(n) = row(n) from t;
create function num_lt(num, num) returns bool language internal strict immutable as 'int4lt';
create function num_le(num, num) returns bool language internal strict immutable as 'int4le';
create function num_eq(num, num) returns bool language internal strict immutable as 'int4eq';
create function num_ge(num, num) returns bool language internal strict immutable as 'int4ge';
create function num_gt(num, num) returns bool language internal strict immutable as 'int4gt';
create function num_cmp(num, num) returns int language internal strict immutable as 'btint4cmp';
create function num_larger(num, num) returns num language internal strict immutable as 'int4larger';
create operator < (leftarg = num, rightarg = num, function = num_lt, commutator = >, negator = >=);
create operator <= (leftarg = num, rightarg = num, function = num_le, commutator = >=, negator = >);
create operator = (leftarg = num, rightarg = num, function = num_eq, commutator = =);
create operator >= (leftarg = num, rightarg = num, function = num_ge, commutator = <=, negator = <);
create operator > (leftarg = num, rightarg = num, function = num_gt, commutator = <, negator = <=);
select n from t where n = '7';
create operator class num_ops default for type num using btree as
  operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 num_cmp(num, num);
create aggregate max (num) (sfunc = num_larger, stype = num, sortop = >);
insert into t (id, n) select g, (g % 100 - 50)::text::num from generate_series(100, 1099) g;
create index t_n on t (n);
analyze t;
set enable_seqscan = off;
select count(*) from t where n = '7';
select count(*) from t where n < '-40';
select id from t where n between '42' and '44' and id < 300 order by id;
reset enable_seqscan;
select n, count(*) from t group by n order by n desc limit 3;
select max(n), count(distinct n), count(distinct ns) from t;
select count(*) from t x join t y on x.n = y.n;
create table k (n num primary key, w words);
insert into k values ('1'), ('2'), ('1');
insert into k values ('1'), ('-2');
insert into k values ('1', 'again') on conflict (n) do update set w = excluded.w returning *;
create table r (n num references k);
insert into r values ('1'), ('5');
create table pl (n num) partition by list (n);
create table pl1 partition of pl for values in ('1', '2');
create table pl2 partition of pl default;
insert into pl values ('1'), ('3');
select tableoid::regclass, n from pl order by n;
create type nums as range (subtype = num);
select '[1,5)'::nums @> '3'::num, nums('1', '4') && '[4,5]'::nums;
create cast (words as text) without function as implicit;
create cast (text as words) without function as assignment;
select w || '!', length(w) from t where id = 2;
\c -
select w from t where id < 3 order by w;
update t set w = 'y' || id where id between 101 and 103;
create index t_w on t (w);
select id from t where w like 'y%' order by id;
select id from t where w = 'abc';

-- ALTER TYPE. No table has the type: PostgreSQL would call the functions.
create type q;
set client_min_messages = warning;
create function q_in(cstring, oid, int4) returns q language internal strict immutable as 'varcharin';
create function q_out(q) returns cstring language internal strict immutable as 'varcharout';
reset client_min_messages;
create type q (input = q_in, output = q_out, typmod_in = varchartypmodin, typmod_out = varchartypmodout);
alter type q set (storage = extended);
alter type q set (storage = plain);
alter type q set (input = q_in);
alter type q set (sideways = 1);
alter type q set (typmod_in = none);
alter type q set (typmod_in = varchartypmodin, analyze = ts_typanalyze, subscript = raw_array_subscript_handler);
alter type q set (receive = missing);
create domain qd as q;
alter type q set (storage = external);
select typname, typmodin, typmodout, typanalyze, typsubscript, typstorage from pg_type where typname ~ '^_?qd?$' order by 1;
alter type s2 set (storage = plain);
alter type num set (storage = main);
alter type num[] set (storage = plain);
create schema elsewhere;
alter type num rename to number;
alter type number set schema elsewhere;
\dT elsewhere.*
insert into t (id) values (6) returning n;
comment on type elsewhere.number is 'a number';

-- What others need.
drop function num_in(cstring);
drop type elsewhere.number;
drop type vc;
\set VERBOSITY terse
drop type vc, words, blob cascade;
drop schema elsewhere cascade;
\d t
select typname from pg_type where typname ~ '^_?(number|vc|words|blob)' and oid >= 16384;
