-- A database with every feature that both PostgreSQL 15 and Melba have. The roles of roles.sql are there.
-- What only PostgreSQL 18 and Melba have is in since18.sql, what only Melba has in melba.sql.
create schema app authorization dump_owner;
create schema "odd, ""schema""";
comment on schema app is 'of dump_owner';

-- types
create type app.mood as enum ('sad', 'so so', 'happy');
alter type app.mood add value 'it''s odd' before 'happy';
create domain app.positive as integer default 1 constraint more_than_zero check (value > 0);
create domain app.word as varchar(20) collate "C" not null;
create type app.point as (x integer, y numeric(8,2), note text collate "C");
create table app.points of app.point (primary key (x), y with options default 1.5 not null, check (y > 0));
create type app.floatrange as range (subtype = float8, subtype_diff = float8mi);
create type app.wordrange as range (subtype = text, collation = "C", subtype_opclass = text_pattern_ops, multirange_type_name = app.words);
create type app.moods as range (subtype = app.mood);
create table app.ranged (r app.floatrange primary key, m app.moods default app.moods('sad', 'happy'), w app.words, a app.wordrange[]);
insert into app.ranged values ('[1,2)', '[sad,sad]', '{[a,b)}', '{"[a,b)"}'), ('empty', default, null, null);
create type app.hull;
comment on type app.hull is 'not yet';
create type app.number;
create function app.number_in(cstring) returns app.number language internal strict immutable as 'int4in';
create function app.number_out(app.number) returns cstring language internal strict immutable as 'int4out';
create function app.number_recv(internal) returns app.number language internal strict immutable as 'int4recv';
create function app.number_send(app.number) returns bytea language internal strict immutable as 'int4send';
create type app.number (input = app.number_in, output = app.number_out, receive = app.number_recv, send = app.number_send, like = int4,
    default = '42', category = 'x', delimiter = ';');
create type app.phrase;
create function app.phrase_in(cstring, oid, integer) returns app.phrase language internal strict immutable as 'varcharin';
create function app.phrase_out(app.phrase) returns cstring language internal strict immutable as 'varcharout';
create type app.phrase (input = app.phrase_in, output = app.phrase_out, typmod_in = varchartypmodin, typmod_out = varchartypmodout,
    storage = extended, collatable, preferred = true);
comment on type app.phrase is 'of base';
grant usage on type app.phrase to dump_reader;
create function app.next(app.number) returns app.number language sql immutable as 'select (($1::text)::integer + 1)::text::app.number';
create domain app.counted as app.number default '7';
create table app.based (id integer primary key, n app.number, w app.phrase(5), ns app.number[], d app.counted, check (app.next(n)::text <> '0'));
insert into app.based (id) values (1);
insert into app.based values (2, '-5', 'abc', '{1;2}', '8'), (3, null, '', '{}', null);
comment on type app.mood is 'how it is';
comment on domain app.positive is 'at least one';
comment on column app.point.x is 'to the right';

-- every type
create table app.types (
    b boolean, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric, n2 numeric(12,4), m money,
    t text, v varchar(30), c char(5), c1 "char", nm name, by bytea, d date, ti time(3), tz timetz, ts timestamp,
    tstz timestamptz(0), iv interval, ivd interval day to second(2), u uuid, ip inet, ci cidr, bi bit(5), vb bit varying(9), j json, jb jsonb, jp jsonpath,
    o oid, rc regclass, rt regtype, ro regrole, en app.mood, dom app.positive, w app.word, co app.point, r4 int4range, rn numrange, rts tstzrange,
    mr int4multirange, ia integer[], ta text[], ea app.mood[], ca app.point[], nn numeric(6,1)[][]);
insert into app.types values
    (true, -32768, 2147483647, -9223372036854775808, 1.5e-10, 'infinity', 'NaN', 12345678.1234, '12.50',
     E'tab\there, back\\slash, \u00e4\u20ac\U0001f600, line\nend', 'null', 'ab', 'x', 'a name', '\x00ff5c', '0044-03-15 BC', '23:59:59.999', '12:00+05:30', 'infinity',
     '2024-02-29 12:34:56+02', '1 year 2 days -03:04:05.678', '3 days 04:05:06.78', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.1.2.3/8', 'fe80::/10', '10101', '1', '{"a": [1,  2]}',
     '{"b": null, "a": [1, 2.50]}', '$.a[*] ? (@ > 1)', 4294967295, 'pg_class', 'integer', 'dump_reader', 'so so', 7, 'word', '(1,2.5,"a, b")', '(,10]',
     '[1.5,2.5]', '[2024-01-01 00:00+00,)', '{[1,3),[5,9)}', '{1,NULL,3}', E'{"a\\"b","",NULL,"NULL"}', '{sad,"it''s odd"}', '{"(1,2,x)"}', '{{1.5,2},{3,4}}'),
    (null, 0, 0, 0, 0, '-infinity', 1e100, 0, '-0.01', '', '\N', '', '', '', '', '4713-01-01 BC', '24:00', '00:00-15:59', '-infinity', '-infinity', '-1 mon +1 day',
     '0', '00000000-0000-0000-0000-000000000000', '::1', '0.0.0.0/0', '00000', '', 'null', 'null', 'strict $', 0, '-', '-', '-', null, 1, '', null, 'empty', '(,)', 'empty',
     '{}', '{}', '{}', '{}', '{}', '{}');

-- tables: compression, storage, persistence, settings
create table app.pages (
    id bigint primary key, url text not null unique, body text compression pglz, head text compression lz4, raw bytea, title varchar(100) default 'none',
    constraint url_is_one check (url like 'http%'));
alter table app.pages alter raw set storage external, alter head set storage main, alter body set statistics 250;
alter table app.pages alter url set (n_distinct = -1);
insert into app.pages select n, 'http://x/' || n, repeat('body ' || n, 900), repeat('head', 800), decode(repeat(md5(n::text), 100), 'hex')
    from generate_series(1, 20) n;
create unlogged table app.cache (k integer primary key, v text);
insert into app.cache values (1, 'gone after a crash');
create table app.settings (a integer) with (fillfactor = 70, autovacuum_enabled = off);
create table app.nothing ();
create table "odd, ""schema"""."Odd ""table""" ("Odd ""column""" integer default 5, "select" text default 'it''s', "ünicode" text);
insert into "odd, ""schema"""."Odd ""table""" values (1, 'a', 'b');
create table app.dropped (a integer, gone text, b integer default 3);
insert into app.dropped values (1, 'x', 2);
alter table app.dropped drop column gone;
insert into app.dropped values (4);
create table app.settled as select n as id, 'row ' || n as name from generate_series(1, 5) n;
create table public.plain (a integer, b text);
insert into public.plain select n, repeat('b', n) from generate_series(1, 100) n;

-- sequences, identity, generated columns
create sequence app.counter as integer increment by 5 minvalue -10 maxvalue 1000 start with 10 cache 3 cycle;
select nextval('app.counter');
create sequence app.untouched;
create unlogged sequence app.lost;
create table app.numbers (
    s serial, b bigserial, always integer generated always as identity (start with 100 increment by 10),
    ask integer generated by default as identity, net numeric(10,2), gross numeric generated always as (net * 1.19) stored);
insert into app.numbers (net) values (1.50), (2), (null);
create sequence app.owned owned by app.numbers.net;

-- constraints and indexes
create table app.customers (id integer, region text, name text not null, mail text, age app.positive, primary key (id, region));
create table app.orders (
    id integer generated always as identity primary key, customer integer, region text default 'eu', parent integer references app.orders on delete set null,
    total numeric check (total >= 0) no inherit, placed timestamptz default now(), mood app.mood default 'happy'::app.mood,
    constraint of_customer foreign key (customer, region) references app.customers match full on update cascade on delete set default,
    constraint placed_once unique (customer, placed) deferrable initially deferred);
insert into app.customers values (1, 'eu', 'ann', 'ann@x', 30), (2, 'eu', 'bob', null, 40);
insert into app.orders (customer, total) values (1, 10), (2, 20.5);
alter table app.orders add constraint cheap check (total < 1000) not valid;
alter table app.orders add constraint later foreign key (parent) references app.orders not valid;
create unique index customers_mail on app.customers (lower(mail)) where mail is not null;
create index customers_name on app.customers (name collate "C" desc nulls last, id) include (region);
create index customers_pattern on app.customers (name text_pattern_ops);
create unique index customers_nulls on app.customers (mail, age) nulls not distinct;
alter table app.customers cluster on customers_name;
comment on table app.customers is E'who buys\nand \\ pays';
comment on column app.customers.mail is 'may be ''null''';
comment on index app.customers_mail is 'one address each';
comment on constraint of_customer on app.orders is 'whose';
comment on sequence app.counter is 'counts';

-- views
create view app.adults (id, called) as select id, name from app.customers where age >= 18 order by name;
create view app.busy as
    with o as (select customer, count(*) as n, sum(total) as total from app.orders group by customer having count(*) > 0)
    select a.called, o.n, o.total, rank() over (order by o.total desc) as place, case when o.n > 1 then 'often' else 'once' end as often
    from app.adults a left join o on o.customer = a.id;
create materialized view app.summary as select region, count(*) as customers from app.customers group by region;
create unique index summary_region on app.summary (region);
create materialized view app.later as select * from app.busy with no data;
create view app.guarded with (security_barrier = true) as select * from app.orders where total < 100;
alter view app.adults alter column called set default 'nobody';
comment on view app.adults is 'grown up';
comment on materialized view app.summary is 'by region';

-- owners and privileges
alter table app.pages owner to dump_owner;
alter sequence app.counter owner to dump_owner;
alter type app.mood owner to dump_owner;
alter view app.adults owner to dump_owner;
grant usage on schema app to dump_reader;
grant select, insert on app.pages to dump_reader with grant option;
set role dump_reader;
grant select on app.pages to "odd, ""role""";
reset role;
grant select (id, name), update (name) on app.customers to dump_reader;
grant select, insert, update, delete, truncate on app.orders to public;
revoke delete on app.orders from public;
grant usage on sequence app.counter to dump_reader;
grant usage on type app.point to dump_reader;
revoke usage on type app.mood from public;
revoke all on schema public from public;
grant create on schema public to dump_reader;

-- large objects
select lo_create(1001), lo_from_bytea(1002, 'small'), lo_from_bytea(1003, decode(repeat(md5('x'), 20000), 'hex')), lo_from_bytea(1004, '');
select lo_put(1001, 5000000, 'far away');
select lo_from_bytea(n::oid, convert_to(repeat(md5(n::text), 10), 'UTF8')) from generate_series(2001, 2040) n;
alter large object 1002 owner to dump_owner;
grant select on large object 1002 to dump_reader with grant option;
grant select, update on large object 1003 to public;
alter large object 2001 owner to dump_owner;
alter large object 2002 owner to dump_owner;
grant select on large object 2001, 2002 to dump_reader;
revoke all on large object 1004 from postgres;
comment on large object 1002 is 'it''s small';

-- Functions and procedures: what they need comes before them, what needs them after.
create schema routines;
create function routines.add1(int) returns int language sql immutable as 'select $1 + 1';
create domain routines.big as int check (routines.add1(value) > 2);
create table routines.t (a int default routines.add1(1), b text, c int generated always as (routines.add1(a)) stored,
  check (routines.add1(a) > 0));
create index on routines.t (routines.add1(a));
create function routines."Rows of"(a int, b text default 'x''y', variadic c int[] default '{}') returns setof routines.t
  language sql stable strict parallel safe cost 5 rows 7 security definer set search_path = routines, public set work_mem = '1MB'
  as $$ select * from t where t.a = $1 $$;
create function routines.returned(a int, b date default '2001-01-01') returns int return routines.add1(a) + extract(day from b)::int;
create function routines.atomic(x int) returns setof routines.t begin atomic select 1; select * from routines.t where t.a = x; end;
create function routines.pairs(anyelement, out a anyelement, out b anyarray) language sql as 'select $1, array[$1]';
create function routines.columns(n int) returns table(x int, "Y" text) language sql as $$ select 1, 'x' $$;
create procedure routines.proc(a int, inout b int) language sql as 'select a + b';
create view routines.v as select r.a, routines.returned(r.a) from routines.atomic(1) r;
create function routines.of_view() returns setof routines.v language sql as 'select * from routines.v';
create table routines.late (a bigint default (routines.returned(3)));
insert into routines.t (a, b) values (1, 'one'), (2, 'two');
comment on function routines.add1(int) is 'adds one';
comment on procedure routines.proc is 'adds';
grant execute on function routines.add1(int) to dump_reader;
revoke execute on function routines.returned from public;
alter function routines.columns(int) owner to dump_owner;
alter default privileges in schema routines grant execute on functions to dump_reader;

-- Inheritance and partitions: columns in other places, own defaults, keys, indexes, sub-partitions.
create schema families;
set search_path = families;
create table p (a int primary key, b text default 'x', check (a > 0));
create table c (cc int, check (cc < 1000)) inherits (p);
create table c2 (a int not null, b text) inherits (p);
create table gc () inherits (c, c2);
alter table c alter b set default 'y';
insert into p values (1); insert into c values (2, 'b', 3); insert into gc values (4, 'x', 5);
create table o (x int, id int, v text) partition by range (id);
create table o1 (v text, gone int, id int, x int);
alter table o1 drop column gone;
alter table o attach partition o1 for values from (minvalue) to (100);
create table o2 partition of o for values from (100) to (200) partition by list (v);
create table o2a partition of o2 for values in ('A', null);
create table od partition of o default;
alter table o add unique (id, v);
create index oi on o (v, x desc) where x > 0;
create index on only o (id);
create table h (a int, b text, unique (a)) partition by hash (a);
create table h0 partition of h for values with (modulus 2, remainder 0);
create table h1 partition of h (constraint bnn check (b is not null)) for values with (modulus 2, remainder 1);
insert into o values (1, 1, 'q'), (2, 150, 'A'), (3, 1000, 'z');
insert into h select g, 'b' from generate_series(1, 100) g;
comment on table o1 is 'part';
reset search_path;

-- policies
create table app.secured (id integer primary key, who name default current_user, level integer, note text);
insert into app.secured values (1, 'dump_owner', 1, 'one'), (2, 'dump_reader', 2, 'two');
alter table app.secured enable row level security;
alter table app.secured force row level security;
create policy "of, all" on app.secured using (who = current_user) with check (level < 10);
create policy reads on app.secured for select to dump_reader, dump_owner
    using (level <= (select max(s.level) from app.secured s where s.id <> secured.id) or exists (select from app.orders));
create policy writes on app.secured as restrictive for insert to public with check (note is not null);
create policy changes on app.secured as restrictive for update using (true);
create policy goes on app.secured for delete to dump_owner using (id > 1);
comment on policy reads on app.secured is 'who reads';

-- Statistics objects
create table app.correlated (a int, b text, c int);
insert into app.correlated select i % 10, 'b' || i % 5, i from generate_series(1, 100) i;
create statistics app."On two" (ndistinct, dependencies) on a, b from app.correlated;
create statistics app.on_expressions on c, (a + c), lower(b) from app.correlated;
create statistics app.on_one on (a * 2) from app.correlated;
alter statistics app.on_one set statistics 50;
comment on statistics app."On two" is 'two''s company';

-- Triggers of every kind, and whether they fire.
create schema events;
set search_path = events;
create function "Note it"() returns trigger language plpgsql as $$ begin return coalesce(new, old); end $$;
create table t (a int primary key, "B" text, c int default 1);
create table u (a int references t deferrable initially deferred, b int);
insert into t values (1, 'one'), (2, null);
create trigger "Before each" before insert or update of a, "B" on t for each row
  when (new."B" is distinct from 'it''s' and new.a > 0) execute function "Note it"('x', 'it''s', '', E'back\\slash');
create trigger statements after delete or truncate on t execute function "Note it"();
create trigger transitions after update on t referencing old table as o new table as "N" for each statement execute function "Note it"();
create trigger zz_rows after update on t referencing new table as n for each row execute function "Note it"();
create constraint trigger checked after insert or update on t deferrable initially deferred
  for each row when (new.c > 0) execute function "Note it"();
create constraint trigger checked_from after insert on u from t not deferrable for each row execute function "Note it"();
create trigger off before delete on t for each row execute function "Note it"();
create trigger replica before delete on t for each row execute function "Note it"();
create trigger always before delete on t for each row execute function "Note it"();
alter table t disable trigger off, enable replica trigger replica, enable always trigger always;
comment on trigger "Before each" on t is 'it''s a trigger';
create view v as select a, "B" from t;
create trigger instead instead of insert or update or delete on v for each row execute function "Note it"();
create table p (a int, b text) partition by list (a);
create table p1 partition of p for values in (1);
create table p2 partition of p for values in (2);
create trigger of_partitions after insert on p for each row execute function "Note it"('p');
create trigger of_one before insert on p1 for each row execute function "Note it"('p1');
create trigger all_off before update on p for each row execute function "Note it"();
alter table p disable trigger all_off;
alter table p1 enable always trigger all_off;
alter table p2 disable trigger of_partitions;
insert into p values (1, 'x'), (2, 'y');
reset search_path;

-- views that check
create view app.checked as select id, note from app.secured where id > 0 with local check option;
create view app.checked_more as select * from app.checked where note <> '' with cascaded check option;

-- SEARCH, CYCLE, TABLESAMPLE
create table app.arcs (f integer, t integer);
create view app.searched as with recursive w(f, t) as (
    select a.f, a.t from app.arcs a union all select a.f, a.t from app.arcs a join w on a.f = w.t)
    search breadth first by f, t set seq cycle f, t set is_cycle using path select w.f, w.t, w.is_cycle from w;
create view app.sampled as select s.f from app.arcs s tablesample system (10 * 2) repeatable (2);

-- Foreign keys of partitioned tables.
create table app.entries (id integer, customer integer references app.orders on delete set null) partition by list (id);
create table app.entries1 partition of app.entries for values in (1);
create table app.entries2 (customer integer, id integer, foreign key (customer) references app.orders on delete set null);
alter table app.entries attach partition app.entries2 for values in (2);

-- Event triggers
create function app.on_event() returns event_trigger language plpgsql as $$ begin perform tg_event || tg_tag; end $$;
create event trigger "At the end" on ddl_command_end when tag in ('CREATE TABLE', 'alter table') execute function app.on_event();
create event trigger at_first on ddl_command_start execute function app.on_event();
create event trigger replica_only on ddl_command_end execute function app.on_event();
alter event trigger at_first disable;
alter event trigger replica_only enable replica;
comment on event trigger at_first is 'not now';
-- Foreign data, of which nothing is read.
create foreign data wrapper nothing options (a '1', b 'it''s two');
create foreign data wrapper "odd, ""wrapper""";
create server somewhere type 'kind' version '1.5' foreign data wrapper nothing options (host 'h', "odd name" 'x');
create server "odd, ""server""" foreign data wrapper "odd, ""wrapper""";
alter server somewhere owner to dump_owner;
grant usage on foreign server somewhere to dump_reader;
grant usage on foreign data wrapper nothing to dump_reader with grant option;
create user mapping for public server somewhere;
create user mapping for dump_owner server somewhere options (password 'x');
comment on server somewhere is 'not here';
comment on foreign data wrapper nothing is 'reads nothing';
create foreign table app.elsewhere (id integer not null, name text default 'none', constraint positive check (id > 0))
    server somewhere options (place 'there', "odd option" 'it''s');
create foreign table app.bare () server "odd, ""server""";
comment on foreign table app.elsewhere is 'rows elsewhere';
comment on column app.elsewhere.name is 'of whom';
grant select on app.elsewhere to dump_reader;
alter foreign table app.elsewhere owner to dump_owner;
alter foreign table app.elsewhere add constraint small check (id < 1000) not valid;
alter foreign table app.elsewhere alter id set statistics 7, alter id set (n_distinct = 5), alter name set storage external;
create function app.validate(text[], oid) returns void language plpgsql as 'begin end';
create foreign data wrapper validated validator app.validate options (a 'b');
create server "validated one" foreign data wrapper validated;
create foreign table app.validated (id integer) server "validated one";
comment on foreign data wrapper validated is 'by a function of a user';
create view app.seen_elsewhere as select name from app.elsewhere where id > 7;
create extension file_fdw;
create server files foreign data wrapper file_fdw;
create foreign table app.lines (id integer, line text options (force_null 'true') collate "C" not null)
    server files options (filename '/nonexistent/lines.csv', format 'csv', header 'true', delimiter ';', quote '''');
grant usage on foreign data wrapper file_fdw to dump_reader;

-- views over columns of equal names, and one that groups by a primary key
create table app.left_side (id integer primary key, x integer, note text collate "C");
create table app.right_side (id integer, y integer);
create view app.doubled (a, b, c, d, e) as select * from (app.left_side l join app.right_side r on l.id = r.id) as j;
create view app.twice_named (a, b) as with q (x, y) as (select 1, 2) select * from q as k (m, m);
create view app.whole as select row_to_json(j) as r from (app.left_side natural full join app.right_side) as j;
create view app.by_key as select id, note, count(x) from app.left_side group by id;
create view app.over_by_key as select note from app.by_key where id > 0;
create materialized view app.kept_by_key as select id, note, count(x) from app.left_side group by id;
create materialized view app.over_over_by_key as select note from app.over_by_key;
create function app.noted(int) returns text return (select note from app.left_side where id = $1 group by id);

-- conversions, and an object that depends on an extension
create conversion app.latin for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8;
create default conversion app.to_latin for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1;
alter conversion app.latin owner to dump_owner;
comment on conversion app.latin is 'it''s Latin';
create function app.needs_extension() returns integer language sql as 'select 1';
alter function app.needs_extension() depends on extension plpgsql;
