-- What a database holds, a line an object, and the rows of its tables and views but for values that are of the time of the load.
\set ours 'not in (''pg_catalog'', ''information_schema'', ''pg_toast'') and nspname not like ''pg\\_temp%'''
select 'relation', c.oid::regclass, relkind, relpersistence from pg_class c join pg_namespace n on n.oid = relnamespace where nspname :ours order by c.oid::regclass::text;
select 'column', c.oid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)
from pg_attribute a join pg_class c on c.oid = attrelid join pg_namespace n on n.oid = relnamespace left join pg_attrdef d on (adrelid, adnum) = (attrelid, attnum)
where nspname :ours and relkind in ('r', 'v', 'm', 'p', 'c') and attnum > 0 and not attisdropped order by c.oid::regclass::text, attnum;
select 'constraint', coalesce(nullif(conrelid, 0)::regclass::text, contypid::regtype::text), conname, pg_get_constraintdef(c.oid) from pg_constraint c join pg_namespace n on n.oid = connamespace where nspname :ours order by 2, 3;
select 'index', pg_get_indexdef(indexrelid), indisvalid from pg_index join pg_class c on c.oid = indexrelid join pg_namespace n on n.oid = relnamespace where nspname :ours order by 2;
select 'view', c.oid::regclass, md5(pg_get_viewdef(c.oid)), pg_relation_is_updatable(c.oid, true) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname :ours and relkind in ('v', 'm') order by c.oid::regclass::text;
select 'function', p.oid::regprocedure, prokind, provolatile, md5(pg_get_functiondef(p.oid)) from pg_proc p join pg_namespace n on n.oid = pronamespace where nspname :ours and prokind in ('f', 'p') order by p.oid::regprocedure::text;
select 'aggregate', p.oid::regprocedure, aggtransfn, aggfinalfn, agginitval from pg_aggregate join pg_proc p on p.oid = aggfnoid join pg_namespace n on n.oid = pronamespace where nspname :ours order by p.oid::regprocedure::text;
select 'trigger', tgenabled, pg_get_triggerdef(t.oid) from pg_trigger t where not tgisinternal order by 3;
select 'rule', schemaname, tablename, rulename, definition from pg_rules where schemaname :ours order by 2, 3, 4;
select 'type', t.oid::regtype, typtype, format_type(typbasetype, typtypmod), (select string_agg(enumlabel, ',' order by enumsortorder) from pg_enum where enumtypid = t.oid) from pg_type t join pg_namespace n on n.oid = typnamespace where nspname :ours and typtype in ('e', 'd', 'r') order by t.oid::regtype::text;
select 'sequence', schemaname, sequencename, data_type, start_value, increment_by, max_value, last_value from pg_sequences order by 2, 3;
select 'privileges', c.oid::regclass, relacl from pg_class c join pg_namespace n on n.oid = relnamespace where nspname :ours and relacl is not null order by c.oid::regclass::text;
select 'policy', schemaname, tablename, policyname, cmd, roles, qual, with_check from pg_policies order by 2, 3, 4;
select format('select ''rows'', %L, count(*), md5(string_agg(%s, e''\n'' order by %2$s)) from %s', c.oid::regclass,
    coalesce((select 'row(' || string_agg(quote_ident(attname), ', ' order by attnum) || ')::text' from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped and atttypid not in ('timestamp'::regtype, 'timestamptz'::regtype, 'date'::regtype, 'uuid'::regtype, 'xid8'::regtype, 'txid_snapshot'::regtype, 'oid'::regtype, 'interval'::regtype)), quote_literal('')), c.oid::regclass)
from pg_class c join pg_namespace n on n.oid = relnamespace where nspname :ours and relkind in ('r', 'v', 'm', 'p') order by c.oid::regclass::text
\gexec
