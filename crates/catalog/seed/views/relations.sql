-- Views of the relations in a database. A section a view; see src/views.rs.

-- view pg_tables
SELECT n.nspname AS schemaname, c.relname AS tablename, pg_get_userbyid(c.relowner) AS tableowner,
    s.spcname AS tablespace, c.relhasindex AS hasindexes, c.relhasrules AS hasrules, c.relhastriggers AS hastriggers,
    c.relrowsecurity AS rowsecurity
FROM pg_class c
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.relkind IN ('r', 'p')

-- view pg_views
SELECT n.nspname AS schemaname, c.relname AS viewname, pg_get_userbyid(c.relowner) AS viewowner,
    pg_get_viewdef(c.oid) AS definition
FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v'

-- view pg_matviews
SELECT n.nspname AS schemaname, c.relname AS matviewname, pg_get_userbyid(c.relowner) AS matviewowner,
    s.spcname AS tablespace, c.relhasindex AS hasindexes, c.relispopulated AS ispopulated,
    pg_get_viewdef(c.oid) AS definition
FROM pg_class c
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.relkind = 'm'

-- view pg_indexes
SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname, s.spcname AS tablespace,
    pg_get_indexdef(i.oid) AS indexdef
FROM pg_index x
    JOIN pg_class c ON c.oid = x.indrelid
    JOIN pg_class i ON i.oid = x.indexrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace s ON s.oid = i.reltablespace
WHERE c.relkind IN ('r', 'm', 'p') AND i.relkind IN ('i', 'I')

-- view pg_sequences
SELECT n.nspname AS schemaname, c.relname AS sequencename, pg_get_userbyid(c.relowner) AS sequenceowner,
    s.seqtypid::regtype AS data_type, s.seqstart AS start_value, s.seqmin AS min_value, s.seqmax AS max_value,
    s.seqincrement AS increment_by, s.seqcycle AS cycle, s.seqcache AS cache_size,
    pg_sequence_last_value(c.oid::regclass) AS last_value
FROM pg_sequence s
    JOIN pg_class c ON c.oid = s.seqrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND NOT pg_is_other_temp_schema(n.oid)

-- view pg_rules
SELECT n.nspname AS schemaname, c.relname AS tablename, r.rulename, pg_get_ruledef(r.oid) AS definition
FROM pg_rewrite r
    JOIN pg_class c ON c.oid = r.ev_class
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN'

-- view pg_policies
SELECT n.nspname AS schemaname, c.relname AS tablename, p.polname AS policyname,
    CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END AS permissive,
    CASE WHEN p.polroles = ARRAY[0::oid] THEN ARRAY['public'::name]
        ELSE ARRAY(SELECT rolname FROM pg_authid WHERE oid = ANY (p.polroles) ORDER BY 1) END AS roles,
    CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
        WHEN '*' THEN 'ALL' END AS cmd,
    pg_get_expr(p.polqual, p.polrelid) AS qual, pg_get_expr(p.polwithcheck, p.polrelid) AS with_check
FROM pg_policy p
    JOIN pg_class c ON c.oid = p.polrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace

-- view pg_roles
SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication,
    r.rolconnlimit, '********'::text AS rolpassword, r.rolvaliduntil, r.rolbypassrls, s.setconfig AS rolconfig, r.oid
FROM pg_authid r LEFT JOIN pg_db_role_setting s ON s.setrole = r.oid AND s.setdatabase = 0

-- view pg_shadow
SELECT r.rolname AS usename, r.oid AS usesysid, r.rolcreatedb AS usecreatedb, r.rolsuper AS usesuper,
    r.rolreplication AS userepl, r.rolbypassrls AS usebypassrls, r.rolpassword AS passwd, r.rolvaliduntil AS valuntil,
    s.setconfig AS useconfig
FROM pg_authid r LEFT JOIN pg_db_role_setting s ON s.setrole = r.oid AND s.setdatabase = 0
WHERE r.rolcanlogin

-- view pg_user
SELECT usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls, '********'::text AS passwd, valuntil, useconfig
FROM pg_shadow

-- view pg_group
SELECT r.rolname AS groname, r.oid AS grosysid,
    ARRAY(SELECT m.member FROM pg_auth_members m WHERE m.roleid = r.oid) AS grolist
FROM pg_authid r
WHERE NOT r.rolcanlogin

-- view pg_available_extensions
SELECT e.name, e.default_version, x.extversion AS installed_version, e.comment
FROM pg_available_extensions() e LEFT JOIN pg_extension x ON x.extname = e.name

-- view pg_available_extension_versions
SELECT e.name, e.version, x.extname IS NOT NULL AS installed, e.superuser, e.trusted, e.relocatable, e.schema, e.requires,
    e.comment
FROM pg_available_extension_versions() e
    LEFT JOIN pg_extension x ON x.extname = e.name AND x.extversion = e.version

-- view pg_prepared_xacts
SELECT p.transaction, p.gid, p.prepared, r.rolname AS owner, d.datname AS database
FROM pg_prepared_xact() p
    LEFT JOIN pg_authid r ON r.oid = p.ownerid
    LEFT JOIN pg_database d ON d.oid = p.dbid

-- view pg_timezone_abbrevs
SELECT z.abbrev, z.utc_offset, z.is_dst FROM pg_timezone_abbrevs_zone() z
UNION ALL
SELECT a.abbrev, a.utc_offset, a.is_dst FROM pg_timezone_abbrevs_abbrevs() a
WHERE NOT EXISTS (SELECT 1 FROM pg_timezone_abbrevs_zone() z WHERE z.abbrev = a.abbrev)

-- view pg_replication_slots
SELECT s.slot_name, s.plugin, s.slot_type, s.datoid, d.datname AS database, s.temporary, s.active, s.active_pid, s.xmin,
    s.catalog_xmin, s.restart_lsn, s.confirmed_flush_lsn, s.wal_status, s.safe_wal_size, s.two_phase, s.two_phase_at,
    s.inactive_since, s.conflicting, s.invalidation_reason, s.failover, s.synced
FROM pg_get_replication_slots() s LEFT JOIN pg_database d ON d.oid = s.datoid

-- view pg_publication_tables
SELECT p.pubname, n.nspname AS schemaname, c.relname AS tablename,
    (SELECT array_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = t.relid AND a.attnum = ANY (t.attrs)) AS attnames,
    pg_get_expr(t.qual, t.relid) AS rowfilter
FROM pg_publication p, LATERAL pg_get_publication_tables(p.pubname) t,
    pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = t.relid

-- view pg_user_mappings
SELECT m.oid AS umid, s.oid AS srvid, s.srvname, m.umuser, CASE WHEN m.umuser = 0 THEN 'public' ELSE r.rolname END AS usename,
    CASE WHEN m.umuser <> 0 AND r.rolname = current_user
            AND (pg_has_role(s.srvowner, 'USAGE') OR has_server_privilege(s.oid, 'USAGE'))
        OR m.umuser = 0 AND pg_has_role(s.srvowner, 'USAGE')
        OR (SELECT rolsuper FROM pg_authid WHERE rolname = current_user) THEN m.umoptions END AS umoptions
FROM pg_user_mapping m
    JOIN pg_foreign_server s ON s.oid = m.umserver
    LEFT JOIN pg_authid r ON r.oid = m.umuser
