-- What PostgreSQL has since 16, 17 and 18.
create table app.since (
    a integer constraint a_is_there not null, twice integer generated always as (a * 2) stored, b integer,
    constraint b_is_positive check (b > 0) not enforced);
insert into app.since (a, b) values (1, -1), (2, 2);
alter table app.since add constraint b_is_there not null b not valid;
grant maintain on app.orders to dump_reader;
create table app.computed (
    a integer, thrice integer generated always as (a * 3) virtual, shown text generated always as (coalesce(a::text, 'none')),
    constraint thrice_is_small check (thrice < 1000));
insert into app.computed (a) values (1), (null), (300);
create view app.computed_shown as select shown, thrice from app.computed where thrice > 2;
create index since_twice on app.since (a) where b is null;
-- NOT NULLs that have names of their own, and go to partitions by them.
alter table families.o add primary key (id, v);

-- SQL/JSON
create domain app.known as integer not null;
create table app.documents (
    id integer primary key, doc jsonb, raw text check (raw is json object with unique keys), bytes bytea,
    kind text generated always as (json_value(doc, '$.kind' default 'none' on empty)) stored,
    made json default json_object('a' : 1, 'b' : null absent on null with unique keys));
insert into app.documents (id, doc, raw) values (1, '{"kind": "it''s", "n": [1, 2, {"x": "y"}]}', '{"a": 1}'), (2, '[]', null);
create index on app.documents (json_query(doc, '$.n' with wrapper));
create view app.json_made as select
    json_object('id' : id, doc : '"text"' format json null on null returning jsonb) as object,
    json_array(id, doc, bytes format json encoding utf8, '1' format json null on null returning text) as listed,
    json_array(select d.id from app.documents d where d.id > o.id order by 1 returning jsonb) as queried,
    json(raw) as parsed, json(raw with unique keys) as parsed_once, json_scalar(id + 1) as scalar,
    json_serialize(doc returning varchar(30)) as serialized, raw is not json array as no_array, doc is json scalar as is_scalar
    from app.documents o;
create view app.json_aggregated as select
    json_objectagg(id : raw format json absent on null with unique keys returning text) filter (where id > 0) as objects,
    json_arrayagg(doc order by id desc null on null returning jsonb) as lists from app.documents;
create view app.json_over as select json_arrayagg(id) over (partition by raw order by id) as running from app.documents;
create view app.json_queried as select
    json_exists(doc, 'strict $.n[*] ? (@ > $x)' passing id + 1 as x, raw as "y z" true on error) as found,
    json_value(doc, '$.n[0]' returning numeric(6,2) default 1.5 on empty error on error) as number,
    json_value(doc, '$.n[0]' returning app.known default 0 on empty) as known,
    json_query(doc, '$.n[*]' with conditional wrapper empty object on error) as wrapped,
    json_query(raw format json, '$.a' returning text omit quotes empty array on empty) as unquoted,
    json_query(doc, ('$.' || 'n')::jsonpath returning bytea format json) as computed from app.documents;
create view app.json_rows as select d.id, t.* from app.documents d, json_table(
    d.doc, 'strict $' as root passing d.id as i, 'z' as "q r"
    columns (
        at for ordinality, kind varchar(20) path '$.kind' default 'x' || 'y' on empty, "n m" int[] path '$.m' error on error,
        has bool exists, has_n int exists path '$.n' unknown on error,
        nested path '$.n[*]' as inner_path columns (b for ordinality, c text format json with unconditional wrapper, jsonb_col jsonb path '$'),
        nested '$.o' columns (nested path '$.p' columns (d float8))
    ) error on error) t;
create table app.numbered (id bigint generated always as identity, part integer, note text) partition by list (part);
create table app.numbered1 partition of app.numbered for values in (1);
create table app.numbered2 partition of app.numbered for values in (2);
insert into app.numbered (part, note) values (1, 'one'), (2, 'two');
insert into app.numbered2 (part, note) values (2, 'three');
