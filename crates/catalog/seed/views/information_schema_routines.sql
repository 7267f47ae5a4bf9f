-- information_schema: what bodies of functions and defaults of their arguments mention. A section a view; see
-- src/views.rs, which casts the columns to the schema's domains.

-- view routine_routine_usage
SELECT DISTINCT current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name, current_database() AS routine_catalog,
    un.nspname AS routine_schema, nameconcatoid(u.proname, u.oid) AS routine_name
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_depend d ON d.classid = 1255 AND d.objid = p.oid AND d.refclassid = 1255
    JOIN pg_proc u ON u.oid = d.refobjid
    JOIN pg_namespace un ON un.oid = u.pronamespace
WHERE p.prokind IN ('f', 'p') AND u.prokind IN ('f', 'p') AND pg_has_role(u.proowner, 'USAGE')

-- view routine_sequence_usage
SELECT DISTINCT current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name, current_database() AS routine_catalog,
    n.nspname AS routine_schema, p.proname AS routine_name, current_database() AS sequence_catalog,
    sn.nspname AS sequence_schema, s.relname AS sequence_name
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_depend d ON d.classid = 1255 AND d.objid = p.oid AND d.refclassid = 1259
    JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
    JOIN pg_namespace sn ON sn.oid = s.relnamespace
WHERE p.prokind IN ('f', 'p') AND pg_has_role(s.relowner, 'USAGE')

-- view routine_column_usage
SELECT DISTINCT current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name, current_database() AS routine_catalog,
    n.nspname AS routine_schema, p.proname AS routine_name, current_database() AS table_catalog,
    tn.nspname AS table_schema, t.relname AS table_name, a.attname AS column_name
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_depend d ON d.classid = 1255 AND d.objid = p.oid AND d.refclassid = 1259
    JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'v', 'f', 'p')
    JOIN pg_namespace tn ON tn.oid = t.relnamespace
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
WHERE p.prokind IN ('f', 'p') AND pg_has_role(t.relowner, 'USAGE')

-- view routine_table_usage
SELECT DISTINCT current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name, current_database() AS routine_catalog,
    n.nspname AS routine_schema, p.proname AS routine_name, current_database() AS table_catalog,
    tn.nspname AS table_schema, t.relname AS table_name
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_depend d ON d.classid = 1255 AND d.objid = p.oid AND d.refclassid = 1259
    JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'v', 'f', 'p')
    JOIN pg_namespace tn ON tn.oid = t.relnamespace
WHERE p.prokind IN ('f', 'p') AND pg_has_role(t.relowner, 'USAGE')
