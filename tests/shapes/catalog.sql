-- tables, as pgjdbc asks
select n.nspname, c.relname, c.relkind, d.description
from pg_catalog.pg_namespace n, pg_catalog.pg_class c
left join pg_catalog.pg_description d on c.oid = d.objoid and d.objsubid = 0 and d.classoid = 'pg_class'::regclass
where c.relnamespace = n.oid and n.nspname like 'public' and c.relkind in ('r', 'v', 'p') order by 1, 2;
-- columns, as pgjdbc asks
select n.nspname, c.relname, a.attname, a.atttypid, a.attnotnull or (t.typtype = 'd' and t.typnotnull), a.atttypmod,
  row_number() over (partition by a.attrelid order by a.attnum), pg_catalog.pg_get_expr(def.adbin, def.adrelid), dsc.description
from pg_catalog.pg_namespace n
join pg_catalog.pg_class c on c.relnamespace = n.oid
join pg_catalog.pg_attribute a on a.attrelid = c.oid
join pg_catalog.pg_type t on a.atttypid = t.oid
left join pg_catalog.pg_attrdef def on a.attrelid = def.adrelid and a.attnum = def.adnum
left join pg_catalog.pg_description dsc on c.oid = dsc.objoid and a.attnum = dsc.objsubid
where c.relkind in ('r', 'p', 'v', 'f', 'm') and a.attnum > 0 and not a.attisdropped and n.nspname like 'public' order by 1, 2, 7;
-- primary keys, as pgjdbc asks
select r.nspname, r.relname, r.attname, r.key_seq, r.pk_name from (
  select n.nspname, ct.relname, a.attname, (information_schema._pg_expandarray(i.indkey)).n as key_seq, ci.relname as pk_name,
    information_schema._pg_expandarray(i.indkey) as keys, a.attnum
  from pg_catalog.pg_class ct
  join pg_catalog.pg_attribute a on ct.oid = a.attrelid
  join pg_catalog.pg_namespace n on ct.relnamespace = n.oid
  join pg_catalog.pg_index i on a.attrelid = i.indrelid
  join pg_catalog.pg_class ci on ci.oid = i.indexrelid
  where n.nspname = 'public' and i.indisprimary) r
where r.attnum = (r.keys).x order by 1, 2, 4;
-- foreign keys, as pgjdbc asks
select pkn.nspname, pkc.relname, pka.attname, fkn.nspname, fkc.relname, fka.attname, pos.n, con.conname, pkic.relname
from pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka, pg_catalog.pg_namespace fkn,
  pg_catalog.pg_class fkc, pg_catalog.pg_attribute fka, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n),
  pg_catalog.pg_class pkic
where pkn.oid = pkc.relnamespace and pkc.oid = pka.attrelid and pka.attnum = con.confkey[pos.n] and con.confrelid = pkc.oid
  and fkn.oid = fkc.relnamespace and fkc.oid = fka.attrelid and fka.attnum = con.conkey[pos.n] and con.conrelid = fkc.oid
  and con.contype = 'f' and (pkic.relkind = 'i' or pkic.relkind = 'I') and pkic.oid = con.conindid and fkn.nspname = 'public'
order by 1, 2, 8, 7;
-- tables, as Django asks
select c.relname, c.relispartition, c.relkind, obj_description(c.oid, 'pg_class')
from pg_catalog.pg_class c left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('f', 'm', 'p', 'r', 'v') and n.nspname not in ('pg_catalog', 'pg_toast') and pg_catalog.pg_table_is_visible(c.oid);
-- indexes, as SQLAlchemy asks
select i.indrelid, c.relname, pg_get_indexdef(i.indexrelid), i.indkey
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public';
-- information_schema.tables
select * from information_schema.tables where table_schema = 'public';
-- information_schema.columns
select * from information_schema.columns where table_schema = 'public';
-- information_schema.table_constraints
select * from information_schema.table_constraints where table_schema = 'public';
-- information_schema.key_column_usage
select * from information_schema.key_column_usage where table_schema = 'public';
-- information_schema.constraint_column_usage
select * from information_schema.constraint_column_usage where table_schema = 'public';
-- information_schema.referential_constraints
select * from information_schema.referential_constraints where constraint_schema = 'public';
-- information_schema.routines
select * from information_schema.routines;
