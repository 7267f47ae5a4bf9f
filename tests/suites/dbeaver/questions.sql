-- What DBeaver asks by its driver when it connects, when its tree is opened, and for sessions and locks, in our words. A line `-- NAME`
-- begins a question, with ~ at its end when the servers may have different numbers of rows, ~~ for columns. :name is the OID of an object of
-- schema.sql, a bigint as DBeaver binds it; :'text' a text.

-- connect: where and who
select current_database();
-- connect: version
select version();
-- connect: schema and user
select current_schema(), session_user;
-- connect: search_path
show search_path;
-- connect: whether pg_enum is there
select * from pg_catalog.pg_enum where 1 <> 1 limit 1;
-- connect: whether a column is there
select typcategory from pg_catalog.pg_type where 1 <> 1 limit 1;
-- connect: databases ~~
select db.oid, db.* from pg_catalog.pg_database db where 1 = 1 and datallowconn and not datistemplate or db.datname = :'postgres' order by db.datname;
-- connect: a database ~~
select db.oid, db.* from pg_catalog.pg_database db where datname = :'postgres';
-- connect: its description ~
select description from pg_shdescription join pg_database on objoid = pg_database.oid where datname = :'template1';
-- connect: settings ~
select * from pg_catalog.pg_settings;
-- connect: a setting
select * from pg_catalog.pg_settings where name = :'standard_conforming_strings';
-- connect: types ~
select t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
from pg_catalog.pg_type t
    left outer join pg_catalog.pg_type et on et.oid = t.typelem
    left outer join pg_catalog.pg_class c on c.oid = t.typrelid
    left outer join pg_catalog.pg_description d on t.oid = d.objoid
where t.typname is not null and (c.relkind is null or c.relkind = 'c') and (et.typcategory is null or et.typcategory <> 'C');
-- connect: types of a schema
select t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
from pg_catalog.pg_type t
    left outer join pg_catalog.pg_class c on c.oid = t.typrelid
    left outer join pg_catalog.pg_description d on t.oid = d.objoid
where t.typname is not null and (c.relkind is null or c.relkind = 'c') and t.typnamespace = :public order by t.oid;
-- connect: a type by name
select t.oid, t.*, format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name from pg_catalog.pg_type t
    left outer join pg_class c on c.oid = t.typrelid where t.typname = :'mood';
-- connect: all enums
select * from pg_catalog.pg_enum;
-- connect: schemas ~
select n.oid, n.*, d.description from pg_catalog.pg_namespace n
    left outer join pg_catalog.pg_description d on d.objoid = n.oid and d.objsubid = 0 and d.classoid = 'pg_namespace'::regclass
order by nspname;
-- connect: roles ~
select a.oid, a.*, pd.description from pg_catalog.pg_roles a left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid order by a.rolname;
-- database: access methods ~
select am.oid, am.* from pg_catalog.pg_am am order by am.oid;
-- database: encodings
select c.contoencoding as encid, pg_catalog.pg_encoding_to_char(c.contoencoding) as encname from pg_catalog.pg_conversion c
group by c.contoencoding order by 2;
-- database: collations ~~
select c.oid, c.* from pg_catalog.pg_collation c order by c.oid;
-- database: languages
select l.oid, l.* from pg_catalog.pg_language l order by l.oid;
-- database: foreign data wrappers
select l.oid, l.*, p.pronamespace as handler_schema_id from pg_catalog.pg_foreign_data_wrapper l
    left outer join pg_catalog.pg_proc p on p.oid = l.fdwhandler order by l.fdwname;
-- database: foreign servers
select l.oid, l.* from pg_catalog.pg_foreign_server l order by l.srvname;
-- database: tablespaces ~
select t.oid, t.*, pg_tablespace_location(t.oid) loc from pg_catalog.pg_tablespace t order by t.oid;
-- database: available extensions ~
select name, default_version, installed_version, comment from pg_catalog.pg_available_extensions order by name;
-- database: extensions with their configuration
select e.oid, cfg.tbls, n.nspname as schema_name, e.* from pg_catalog.pg_extension e
    join pg_namespace n on n.oid = e.extnamespace
    left join (select array_agg(ns.nspname || '.' || cls.relname) tbls, oid_ext
        from (select unnest(e1.extconfig) oid, e1.oid oid_ext from pg_catalog.pg_extension e1) c
            join pg_class cls on cls.oid = c.oid join pg_namespace ns on ns.oid = cls.relnamespace
        group by oid_ext) cfg on cfg.oid_ext = e.oid
order by e.oid;
-- database: event triggers
select pet.*, d.description from pg_catalog.pg_event_trigger pet left outer join pg_catalog.pg_description d on pet."oid" = d.objoid;
-- database: size ~
select db.datname, pg_database_size(db.oid) from pg_catalog.pg_database db where datallowconn;
-- schema: its OID
select s.oid as schema_id from pg_catalog.pg_namespace s where s.nspname = :'public';
-- schema: relations
select c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,
    pg_catalog.pg_get_partkeydef(c.oid) as partition_key
from pg_catalog.pg_class c
    left outer join pg_catalog.pg_description d on d.objoid = c.oid and d.objsubid = 0 and d.classoid = 'pg_class'::regclass
where c.relnamespace = :public and c.relkind not in ('i', 'I', 'c');
-- schema: sizes
select c.oid, pg_catalog.pg_total_relation_size(c.oid) as total_rel_size, pg_catalog.pg_relation_size(c.oid) as rel_size
from pg_class c where c.relnamespace = :public;
-- schema: inheritance
select i.inhrelid relid, pc.relnamespace parent_ns, pc.oid parent_oid, i.inhseqno
from pg_catalog.pg_inherits i, pg_class rc, pg_class pc
where rc.oid = i.inhrelid and rc.relnamespace = :public and pc.oid = i.inhparent;
-- schema: default privileges
select * from pg_default_acl where defaclnamespace = :public;
-- schema: columns
select c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value, dsc.description, dep.objid
from pg_catalog.pg_attribute a
    inner join pg_catalog.pg_class c on (a.attrelid = c.oid)
    left outer join pg_catalog.pg_attrdef ad on (a.attrelid = ad.adrelid and a.attnum = ad.adnum)
    left outer join pg_catalog.pg_description dsc on (c.oid = dsc.objoid and a.attnum = dsc.objsubid)
    left outer join pg_depend dep on dep.refobjid = a.attrelid and dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
where not a.attisdropped and c.relkind not in ('i', 'I', 'c') and c.relnamespace = :public order by a.attnum;
-- schema: constraints
select c.oid, c.*, t.relname as tabrelname, rt.relnamespace as refnamespace, d.description,
    case when c.contype = 'c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
from pg_catalog.pg_constraint c
    inner join pg_catalog.pg_class t on t.oid = c.conrelid
    left outer join pg_catalog.pg_class rt on rt.oid = c.confrelid
    left outer join pg_catalog.pg_description d on d.objoid = c.oid and d.objsubid = 0 and d.classoid = 'pg_constraint'::regclass
where t.relnamespace = :public order by c.oid;
-- schema: indexes
select i.*, i.indkey as keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname as tabrelname, dsc.description,
    pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,
    pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size, pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
from pg_catalog.pg_index i
    inner join pg_catalog.pg_class c on c.oid = i.indexrelid
    inner join pg_catalog.pg_class tc on tc.oid = i.indrelid
    left outer join pg_catalog.pg_description dsc on i.indexrelid = dsc.objoid
where tc.relnamespace = :public order by c.relname;
-- schema: functions
select p.oid as poid, p.*, pg_catalog.pg_get_expr(p.proargdefaults, 0) as arg_defaults, d.description from pg_catalog.pg_proc p
    left outer join pg_catalog.pg_description d on d.objoid = p.oid and d.classoid = 'pg_proc'::regclass and d.objsubid = 0
where p.pronamespace = :public order by p.proname;
-- schema: aggregates
select p.oid as proc_oid, p.proname as proc_name, a.* from pg_catalog.pg_aggregate a, pg_catalog.pg_proc p
where p.oid = a.aggfnoid and p.pronamespace = :public order by p.proname;
-- schema: sequences
select * from pg_catalog.pg_sequences where schemaname = :'public' and sequencename = :'orders_id_seq';
-- table: triggers
select x.oid, x.*, p.pronamespace as func_schema_id, d.description from pg_catalog.pg_trigger x
    left outer join pg_catalog.pg_proc p on p.oid = x.tgfoid
    left outer join pg_catalog.pg_description d on d.objoid = x.oid and d.objsubid = 0
where x.tgrelid = :customers and not x.tgisinternal;
-- table: rules
select r.oid, r.*, pg_get_ruledef(r.oid) as definition from pg_rewrite r where r.ev_class = :totals and r.rulename <> '_RETURN'::name;
-- table: policies
select * from pg_catalog.pg_policies where schemaname = :'public' and tablename = :'customers';
-- table: who refers to it
select distinct connamespace from pg_catalog.pg_constraint where confrelid = :customers;
-- table: partitions
select i.*, c.relnamespace from pg_catalog.pg_inherits i, pg_catalog.pg_class c where i.inhparent = :parts and c.oid = i.inhrelid;
-- table: a partition's bounds
select pg_get_expr(c.relpartbound, c.oid, true) as partition_range from "pg_catalog".pg_class c where relname = :'parts1' and relnamespace = :public;
-- table: an index's column
select pg_catalog.pg_get_indexdef(:orders_customer_idx, 1, true);
-- view: its definition
select pg_get_viewdef(:totals, true);
-- function: its definition
select pg_get_functiondef(:twice);
-- trigger: its definition
select pg_catalog.pg_get_triggerdef(oid) from pg_trigger where tgrelid = :customers and not tgisinternal;
-- type: labels of an enum
select e.enumlabel from pg_catalog.pg_enum e where e.enumtypid = :mood order by e.enumsortorder;
-- type: constraints of a domain
select concat(c.conname, ' ', pg_catalog.pg_get_constraintdef(oid, true)) from pg_catalog.pg_constraint c where contypid = :posint;
-- type: columns of a composite
select c.relname, row_number() over (order by a.attnum) as attnum, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value, dsc.description
from pg_catalog.pg_attribute a
    inner join pg_catalog.pg_class c on (a.attrelid = c.oid)
    left outer join pg_catalog.pg_attrdef ad on (a.attrelid = ad.adrelid and a.attnum = ad.adnum)
    left outer join pg_catalog.pg_description dsc on (c.oid = dsc.objoid and a.attnum = dsc.objsubid)
where a.attnum > 0 and not a.attisdropped and c.oid = :comp order by a.attnum;
-- aggregate: its parts
select (pg_identify_object('pg_proc'::regclass, aggfnoid, 0)).identity, aggtransfn::regproc, format_type(aggtranstype, null) as aggtranstype,
    case aggfinalfn when '-'::regproc then null else aggfinalfn::text end, case aggsortop when 0 then null else oprname end, agginitval,
    aggmtransfn, aggminvtransfn, aggfinalextra, aggmfinalextra, aggserialfn, aggdeserialfn, aggmfinalfn,
    format_type(aggmtranstype, null) as aggmtranstype, aggfinalmodify, aggmfinalmodify
from pg_aggregate left join pg_operator on pg_operator.oid = aggsortop where aggfnoid = :'mysum'::regproc;
-- role: members
select * from pg_catalog.pg_auth_members where roleid = :pg_monitor;
-- role: privileges on tables
select * from information_schema.table_privileges where table_catalog = :'postgres' and grantee = :'pg_monitor';
-- role: privileges on routines
select * from information_schema.routine_privileges where specific_catalog = :'postgres' and grantee = :'pg_monitor';
-- role: privileges on other objects
select * from (
    select distinct relnamespace, relacl, relname, relkind, (aclexplode(relacl)).grantee as granteei from pg_class
    where relacl is not null and relnamespace in (select oid from pg_namespace where nspname not like 'pg_%' and nspname != 'information_schema')
    union all
    select distinct n.oid as relnamespace, nspacl as relacl, n.nspname as relname, cast('C' as "char") as relkind, (aclexplode(nspacl)).grantee as granteei
    from pg_catalog.pg_namespace n where n.nspacl is not null) as tr
where tr.granteei = :pg_monitor and tr.relkind in ('S', 'm', 'C');
-- search: objects by a part of their names
select pc.oid, pc.relname, pc.relnamespace, pc.relkind, obj_description(pc.oid, 'pg_class') from pg_catalog.pg_class pc
where pc.relkind in ('r', 'v', 'm', 'S', 'f', 'p') and pc.relname ilike '%order%' and pc.relnamespace in (:public) order by pc.relname limit 100;
-- search: definitions of views
select pc.oid, pc.relname from pg_catalog.pg_class pc where pc.relkind = 'v' and pg_get_viewdef(pc."oid") ilike '%customer%' and pc.relnamespace = :public;
-- sessions ~
select sa.* from pg_catalog.pg_stat_activity sa;
-- locks ~
select coalesce(db.datname, '') as datname, coalesce(lock.locktype, '') as locktype, coalesce(lock.relation::regclass::varchar, '') as relation,
    coalesce(lock.mode, '') as mode, coalesce(lock.transactionid::varchar, '') as tid, lock.page as page, lock.tuple as tuple, lock.pid as pid, lock.granted
from pg_catalog.pg_locks lock left join pg_catalog.pg_database db on db.oid = lock.database where lock.pid = pg_backend_pid();
-- locks: who waits for whom
with locks as (select pid, locktype, mode, granted, transactionid tid, relation, page, tuple from pg_locks),
conflict as (select * from (values ('AccessShareLock', 'AccessExclusiveLock', 1), ('RowExclusiveLock', 'ShareLock', 1)) as t (mode1, mode2, prt)),
waits as (
    select la.pid as blocked_pid, a.usename as blocked_user, la.blocked as blocking_pid, b.usename as blocking_user, a.query, b.query as blocking_query
    from (select l.*, c.mode2, c.prt, l2.pid blocked, row_number() over (partition by l.pid order by c.prt) rid
        from locks l join conflict c on l.mode = c.mode1
            join locks l2 on l2.locktype = l.locktype and l2.mode = c.mode2 and l2.granted and l.pid != l2.pid
                and coalesce(l.tid::text, '*') || ':' || coalesce(l.relation::text, '*') || ':' || coalesce(l.page::text, '*')
                    = coalesce(l2.tid::text, '*') || ':' || coalesce(l2.relation::text, '*') || ':' || coalesce(l2.page::text, '*')
        where not l.granted) la
        join pg_catalog.pg_stat_activity a on a.pid = la.pid join pg_catalog.pg_stat_activity b on b.pid = la.blocked
    where la.rid = 1),
roots as (select blocking_pid from waits except select blocked_pid from waits)
select * from waits union select waits.blocking_pid, waits.blocking_user, null::integer, null::name, waits.blocking_query, null::text
from waits, roots where waits.blocking_pid = roots.blocking_pid;
-- dashboard: sessions
select (select count(*) as "Active" from pg_catalog.pg_stat_activity sa where state = 'active'),
    (select count(*) as "Idle" from pg_catalog.pg_stat_activity sa where state = 'idle'),
    (select count(*) as "Total" from pg_catalog.pg_stat_activity sa where state is not null);
-- dashboard: transactions
select (select sum(xact_commit) + sum(xact_rollback) as "Total" from pg_stat_database), (select sum(xact_commit) as "Commit" from pg_stat_database),
    (select sum(xact_rollback) as "Rollback" from pg_stat_database);
-- dashboard: blocks
select (select sum(blks_read) as "Read" from pg_stat_database), (select sum(blks_hit) as "Hits" from pg_stat_database);
-- plan
explain (format xml, analyze, verbose, costs, buffers) select * from customers join orders on customer = customers.id where total > 3;
