-- What the directories hold since segments' version 2 was kept, too: values of many types, long values by every method of compression, and
-- versions of rows over several flushes and merges. A version that does not know `dense` has that table with another method.
create schema kinds;
create table kinds.everything (
    id int primary key, truth boolean, small smallint, number int, big bigint, single real, double double precision,
    exact numeric, money numeric(12,2), short varchar(20), fixed char(5), letter "char", label name, bytes bytea,
    day date, clock time, clock_tz timetz, moment timestamp, moment_tz timestamptz, span interval, tag uuid,
    address inet, net cidr, bits bit(4), more_bits bit varying(9), document json, binary_document jsonb,
    numbers int4range, days daterange, object oid, relation regclass, list int[], grid text[][]
);
insert into kinds.everything
    select n, n % 2 = 0, n % 100 - 50, n * 7919 % 100003 - 50000, n * 1000000007::bigint, n / 4.0, n / 3.0,
        n * 12345678901234567890.123456789, n * 0.25, 'short ' || n, chr(97 + n % 26), chr(65 + n % 26)::"char", 'label_' || n % 5,
        decode(md5(n::text), 'hex'), date '2000-01-01' + n, time '00:00' + n * interval '61 seconds', timetz '12:00+02' + n * interval '1 minute',
        timestamp '1999-12-31 23:59:59.5' + n * interval '1 hour', timestamptz '2010-06-01 00:00+00' + n * interval '1 day 1 second',
        n * interval '1 month 2 days 3 seconds', md5(n::text)::uuid, ('10.0.' || n % 250 || '.1')::inet, ('10.' || n % 250 || '.0.0/16')::cidr,
        (n % 16)::bit(4), (n % 128)::bit(9)::varbit,
        json_build_object('n', n), jsonb_build_object('n', n, 'list', jsonb_build_array(n, null, 'x')),
        int4range(n, n + 10), daterange('2020-01-01', date '2020-01-01' + n), n, 'pg_class', array[n, null, -n], array[['a' || n, 'b'], ['c', null]]
    from generate_series(1, 400) n;
insert into kinds.everything (id) values (0);
create index on kinds.everything (tag);
create index on kinds.everything (exact desc nulls last, moment_tz);
create index on kinds.everything (lower(short)) include (big);
create table kinds.by_pglz (id int primary key, body text compression pglz, kept text);
create table kinds.by_lz4 (id int primary key, body text compression lz4, kept text);
create table kinds.by_zstd (id int primary key, body text compression zstd, kept text);
create table kinds.by_dense (id int primary key, body text, kept text);
alter table kinds.by_pglz alter column kept set storage external;
\set ON_ERROR_STOP off
alter table kinds.by_dense alter column body set compression dense;
\set ON_ERROR_STOP on
insert into kinds.by_pglz select n, repeat('pglz ' || n || ' ', 1500) || md5(n::text), repeat(md5(n::text), 300) from generate_series(1, 20) n;
insert into kinds.by_lz4 select n, repeat('lz4 ' || n || ' ', 1500) || md5(n::text), repeat('k', n) from generate_series(1, 20) n;
insert into kinds.by_zstd select n, repeat('zstd ' || n || ' ', 1500) || md5(n::text), repeat('k', n) from generate_series(1, 20) n;
insert into kinds.by_dense
    select n, (select string_agg('line ' || i || ' of a page that most rows share', E'\n') from generate_series(1, 60) i) || ' but not ' || n, repeat('k', n)
    from generate_series(1, 60) n;
checkpoint;
-- A second and a third flush: new versions of rows in segments, deleted rows, values that change their method.
update kinds.everything set number = -number, numbers = null where id % 10 = 3;
delete from kinds.everything where id % 10 = 7;
update kinds.by_pglz set body = body || ' again' where id % 3 = 0;
delete from kinds.by_dense where id % 7 = 0;
checkpoint;
delete from kinds.by_zstd where id > 15;
update kinds.by_dense set body = replace(body, 'share', 'have') where id % 4 = 1;
insert into kinds.everything (id, short, document) select n, 'late ' || n, '[1, 2]' from generate_series(500, 520) n;
checkpoint;
vacuum;
checkpoint;
-- For the log.
delete from kinds.everything where id = 510;
update kinds.by_lz4 set body = upper(body) where id = 1;
