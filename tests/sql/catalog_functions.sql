-- Properties of indexes and access methods.
create table t (a int primary key, b text collate "C", c varchar(5));
create index by_b on t (b desc nulls last, lower(c));
create unique index with_c on t (a) include (b, c);
create index by_hash on t using hash (a);
create table g (a int[], r int4range, exclude using gist (r with &&));
create index by_elements on g using gin (a);
select p, pg_indexam_has_property(403, p) as btree, pg_indexam_has_property(405, p) as hash, pg_indexam_has_property(783, p) as gist, pg_indexam_has_property(2742, p) as gin, pg_indexam_has_property(4000, p) as spgist, pg_indexam_has_property(3580, p) as brin, pg_indexam_has_property(2, p) as heap
from unnest('{can_order,can_unique,can_multi_col,can_exclude,CAN_INCLUDE,asc,bogus}'::text[]) with ordinality u(p, n) order by n;
select p, pg_index_has_property('by_b'::regclass, p) as btree, pg_index_has_property('by_hash'::regclass, p) as hash, pg_index_has_property('by_elements'::regclass, p) as gin, pg_index_has_property('g_r_excl'::regclass, p) as gist, pg_index_has_property('t'::regclass, p) as table
from unnest('{clusterable,index_scan,bitmap_scan,backward_scan,can_order,bogus}'::text[]) with ordinality u(p, n) order by n;
select p, pg_index_column_has_property('by_b'::regclass, 1, p) as b, pg_index_column_has_property('by_b'::regclass, 2, p) as lower, pg_index_column_has_property('with_c'::regclass, 1, p) as key, pg_index_column_has_property('with_c'::regclass, 2, p) as included, pg_index_column_has_property('by_hash'::regclass, 1, p) as hash, pg_index_column_has_property('by_elements'::regclass, 1, p) as gin, pg_index_column_has_property('g_r_excl'::regclass, 1, p) as gist
from unnest('{asc,desc,nulls_first,nulls_last,orderable,distance_orderable,returnable,search_array,search_nulls,clusterable,bogus}'::text[]) with ordinality u(p, n) order by n;
select pg_index_column_has_property('by_b'::regclass, n, 'asc') from generate_series(-1, 3) n;
select pg_get_replica_identity_index('t'), pg_get_replica_identity_index('g');
alter table t alter a set not null, replica identity using index t_pkey;
select pg_get_replica_identity_index('t');
alter table t replica identity nothing;
select pg_get_replica_identity_index('t');

-- Numbers of storage.
create view v as select 1; create sequence s; create materialized view m as select 1;
create table parent (a int) partition by hash (a); create table child partition of parent for values with (modulus 1, remainder 0);
select relname, pg_relation_filenode(oid) = relfilenode as own, pg_relation_filenode(oid) is null as none from pg_class where relnamespace = 'play'::regnamespace order by relname;
select pg_relation_filenode(0), pg_relation_filenode('pg_class') > 0;
select pg_filenode_relation(0, pg_relation_filenode('t')), pg_filenode_relation(1663, pg_relation_filenode('by_b')), pg_filenode_relation(0, 0), pg_filenode_relation(1664, pg_relation_filenode('t')), pg_filenode_relation(1664, pg_relation_filenode('pg_database')), pg_filenode_relation(0, pg_relation_filenode('pg_class'));
truncate t;
select pg_filenode_relation(0, pg_relation_filenode('t'));

-- Sizes.
select pg_relation_size('t', 'main') >= 0, pg_relation_size('v', 'fsm'), pg_relation_size(0), pg_table_size(0);
select pg_relation_size('t', 'bogus');
select pg_database_size('postgres') >= 0, pg_database_size('template1') >= 0;
select pg_database_size('no such');
select pg_tablespace_size('no such');

-- Collations.
select pg_collation_for('a'::text), pg_collation_for('a'::text collate "C"), pg_collation_for('a'::name), pg_collation_for(array['a']), pg_collation_for('a'), pg_collation_for(null);
select distinct pg_collation_for(b), pg_collation_for(c), pg_collation_for(c || 'a') from (values ('a' collate "C", 'a'::varchar)) t(b, c);
select pg_collation_for(1);

-- aclitem.
select '{postgres=rw/postgres,=r/postgres}'::aclitem[] @> 'postgres=r/postgres', '{postgres=rw/postgres}'::aclitem[] @> '=r/postgres', '{postgres=r*w/postgres}'::aclitem[] ~ 'postgres=r*/postgres', aclcontains('{postgres=rw/postgres}', 'postgres=r*/postgres');
select 'postgres=rw/postgres'::aclitem = 'postgres=wr/postgres', 'postgres=r/postgres'::aclitem = 'postgres=w/postgres', hash_aclitem('=r/postgres') = hash_aclitem_extended('=r/postgres', 0);
select aclinsert('{}', '=r/postgres');
select aclremove('{}', '=r/postgres');

-- Ages of transactions.
select age('0'::xid), age('2'::xid), mxid_age('0'), age(pg_current_xact_id()::xid) >= 0;
select bool_and(age(datfrozenxid) >= 0 and mxid_age(datminmxid) >= 0) from pg_database;

-- Flags of settings.
select s, pg_settings_get_flags(s) from unnest('{work_mem,role,DateStyle,default_with_oids,server_version,no_such,data_checksums}'::text[]) with ordinality u(s, n) order by n;
set "my.thing" = 'x'; select pg_settings_get_flags('my.thing');

-- Hashes, by which rows are put into partitions.
select hash_range(int4range(1, 5)), hash_range('empty'::int4range), hash_range(numrange(1.5, null, '[]')), hash_range(tsrange('2020-01-01', null)), hash_range(daterange(null, null)), hash_range(int8range(null, 7)), hash_range(numrange(1.5, 2, '(]'));
select hash_range_extended(int4range(1, 5), 7), hash_range_extended('empty'::int4range, 0), hash_range_extended(tstzrange(null, '2020-01-01 00:00+00', '(]'), -1);
select hash_multirange('{[1,3),[5,9)}'::int4multirange), hash_multirange('{}'::nummultirange), hash_multirange('{(,)}'::datemultirange), hash_multirange_extended('{[1,3),[5,)}'::int4multirange, 3), hash_multirange_extended('{}'::int8multirange, 3);
select v, jsonb_hash(v), jsonb_hash_extended(v, 0), jsonb_hash_extended(v, 42) from unnest('{"{\"a\": [1, 2, \"x\", null, true], \"bb\": {}}","[]","{}",1,-1.50,1e3,"\"x\"",null,true,false,"[[], [false], {\"a\": 1}]"}'::jsonb[]) with ordinality u(v, n) order by n;
select hash_array(array[1, 2]), hash_array(array['a', null]), hash_array('{1 day,2 mons}'::interval[]), hash_array('{10:00+02}'::timetz[]), hash_array('{1.1.1.1,::1}'::inet[]), hash_array('{"{\"a\": 1}"}'::jsonb[]), hash_array('{"[1,2)"}'::int4range[]), hash_array('{{1},{2}}'::int8[]), hash_array('{08:00:2b:01:02:03}'::macaddr[]), hash_array('{"a "}'::char(3)[]);
select hash_array_extended(array[1, 2], 5), hash_array_extended('{1 day}'::interval[], 5), hash_array_extended('{2020-01-01}'::date[], 0), hash_record(row(1, 'a'::text, null::int, '1 day'::interval, array[1])), hash_record_extended(row(1, '{}'::jsonb), 9);
select hash_array('{1}'::bit[]);
create table by_range (r int4range, d text) partition by hash (r);
create table by_range_0 partition of by_range for values with (modulus 3, remainder 0); create table by_range_1 partition of by_range for values with (modulus 3, remainder 1); create table by_range_2 partition of by_range for values with (modulus 3, remainder 2);
insert into by_range select int4range(i, i + 3), i from generate_series(1, 20) i;
select tableoid::regclass, string_agg(d, ' ' order by d::int) from by_range group by 1 order by 1;
create table by_json (j jsonb) partition by hash (j);
create table by_json_0 partition of by_json for values with (modulus 2, remainder 0); create table by_json_1 partition of by_json for values with (modulus 2, remainder 1);
insert into by_json select jsonb_build_object('id', i, 'tags', array[i::text]) from generate_series(1, 12) i;
select tableoid::regclass, string_agg(j ->> 'id', ' ' order by (j ->> 'id')::int) from by_json group by 1 order by 1;

-- References between system catalogs.
SELECT * FROM pg_get_catalog_foreign_keys() WHERE fktable IN ('pg_index'::regclass, 'pg_cast'::regclass);
SELECT count(*) FROM pg_get_catalog_foreign_keys() k, unnest(fkcols) c
  WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = fktable AND attname = c);
