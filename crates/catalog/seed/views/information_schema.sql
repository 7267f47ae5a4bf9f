-- information_schema: schemas, tables, constraints. A section a view; see src/views.rs, which casts the columns to the
-- schema's domains.

-- view information_schema_catalog_name
SELECT current_database() AS catalog_name

-- view enabled_roles
SELECT rolname AS role_name FROM pg_authid WHERE pg_has_role(oid, 'USAGE')

-- view applicable_roles
SELECT m.rolname AS grantee, r.rolname AS role_name, CASE WHEN a.admin_option THEN 'YES' ELSE 'NO' END AS is_grantable
FROM pg_auth_members a
    JOIN pg_authid m ON m.oid = a.member
    JOIN pg_authid r ON r.oid = a.roleid
WHERE pg_has_role(m.oid, 'USAGE')
UNION
SELECT r.rolname, 'pg_database_owner', 'NO'
FROM pg_database d JOIN pg_authid r ON r.oid = d.datdba
WHERE d.datname = current_database() AND pg_has_role(d.datdba, 'USAGE')

-- view character_sets
SELECT NULL AS character_set_catalog, NULL AS character_set_schema, getdatabaseencoding() AS character_set_name,
    CASE WHEN getdatabaseencoding() = 'UTF8' THEN 'UCS' ELSE getdatabaseencoding() END AS character_repertoire,
    getdatabaseencoding() AS form_of_use, current_database() AS default_collate_catalog,
    n.nspname AS default_collate_schema, c.collname AS default_collate_name
FROM pg_database d
    LEFT JOIN pg_collation c ON c.collcollate = d.datcollate AND c.collctype = d.datctype
    LEFT JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE d.datname = current_database()
ORDER BY char_length(c.collname) DESC, c.collname
LIMIT 1

-- view collations
SELECT current_database() AS collation_catalog, n.nspname AS collation_schema, c.collname AS collation_name,
    'NO PAD' AS pad_attribute
FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE c.collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))

-- view collation_character_set_applicability
SELECT current_database() AS collation_catalog, n.nspname AS collation_schema, c.collname AS collation_name,
    NULL AS character_set_catalog, NULL AS character_set_schema, getdatabaseencoding() AS character_set_name
FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE c.collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))

-- view schemata
SELECT current_database() AS catalog_name, n.nspname AS schema_name, pg_get_userbyid(n.nspowner) AS schema_owner,
    NULL AS default_character_set_catalog, NULL AS default_character_set_schema, NULL AS default_character_set_name,
    NULL AS sql_path
FROM pg_namespace n
WHERE pg_has_role(n.nspowner, 'USAGE') OR has_schema_privilege(n.oid, 'CREATE, USAGE')

-- view tables
SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
    CASE WHEN n.oid = pg_my_temp_schema() THEN 'LOCAL TEMPORARY'
        WHEN c.relkind IN ('r', 'p') THEN 'BASE TABLE'
        WHEN c.relkind = 'v' THEN 'VIEW'
        WHEN c.relkind = 'f' THEN 'FOREIGN' END AS table_type,
    NULL AS self_referencing_column_name, NULL AS reference_generation,
    CASE WHEN t.typname IS NOT NULL THEN current_database() END AS user_defined_type_catalog,
    tn.nspname AS user_defined_type_schema, t.typname AS user_defined_type_name,
    CASE WHEN c.relkind IN ('r', 'p')
            OR (c.relkind IN ('v', 'f') AND (pg_relation_is_updatable(c.oid::regclass, false) & 8) = 8)
        THEN 'YES' ELSE 'NO' END AS is_insertable_into,
    CASE WHEN t.typname IS NOT NULL THEN 'YES' ELSE 'NO' END AS is_typed,
    NULL AS commit_action
FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_type t ON t.oid = c.reloftype
    LEFT JOIN pg_namespace tn ON tn.oid = t.typnamespace
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE')
        OR has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view views
SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
    CASE WHEN pg_has_role(c.relowner, 'USAGE') THEN pg_get_viewdef(c.oid) END AS view_definition,
    CASE WHEN 'check_option=cascaded' = ANY (c.reloptions) THEN 'CASCADED'
        WHEN 'check_option=local' = ANY (c.reloptions) THEN 'LOCAL' ELSE 'NONE' END AS check_option,
    CASE WHEN (pg_relation_is_updatable(c.oid::regclass, false) & 20) = 20 THEN 'YES' ELSE 'NO' END AS is_updatable,
    CASE WHEN (pg_relation_is_updatable(c.oid::regclass, false) & 8) = 8 THEN 'YES' ELSE 'NO' END AS is_insertable_into,
    CASE WHEN EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND (t.tgtype & 81) = 81)
        THEN 'YES' ELSE 'NO' END AS is_trigger_updatable,
    CASE WHEN EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND (t.tgtype & 73) = 73)
        THEN 'YES' ELSE 'NO' END AS is_trigger_deletable,
    CASE WHEN EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND (t.tgtype & 69) = 69)
        THEN 'YES' ELSE 'NO' END AS is_trigger_insertable_into
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE')
        OR has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view sequences
SELECT current_database() AS sequence_catalog, n.nspname AS sequence_schema, c.relname AS sequence_name,
    format_type(s.seqtypid, NULL) AS data_type,
    CASE s.seqtypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 END AS numeric_precision,
    2 AS numeric_precision_radix, 0 AS numeric_scale, s.seqstart::text AS start_value, s.seqmin::text AS minimum_value,
    s.seqmax::text AS maximum_value, s.seqincrement::text AS increment,
    CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END AS cycle_option
FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_sequence s ON s.seqrelid = c.oid
WHERE c.relkind = 'S' AND NOT pg_is_other_temp_schema(n.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 1259 AND d.objid = c.oid AND d.deptype = 'i')
    AND (pg_has_role(c.relowner, 'USAGE') OR has_sequence_privilege(c.oid, 'SELECT, UPDATE, USAGE'))

-- view table_constraints
SELECT current_database() AS constraint_catalog, cn.nspname AS constraint_schema, k.conname AS constraint_name,
    current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
    CASE k.contype WHEN 'c' THEN 'CHECK' WHEN 'n' THEN 'CHECK' WHEN 'f' THEN 'FOREIGN KEY' WHEN 'p' THEN 'PRIMARY KEY'
        WHEN 'u' THEN 'UNIQUE' END AS constraint_type,
    CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END AS is_deferrable,
    CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END AS initially_deferred,
    CASE WHEN k.conenforced THEN 'YES' ELSE 'NO' END AS enforced,
    CASE WHEN k.contype = 'u' THEN
        (SELECT CASE WHEN x.indnullsnotdistinct THEN 'NO' ELSE 'YES' END FROM pg_index x WHERE x.indexrelid = k.conindid)
        END AS nulls_distinct
FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_namespace cn ON cn.oid = k.connamespace
WHERE k.contype NOT IN ('t', 'x') AND c.relkind IN ('r', 'p') AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE')
        OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))

-- view check_constraints
SELECT current_database() AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name,
    CASE k.contype WHEN 'c' THEN
            CASE WHEN k.conbin IS NOT NULL THEN substring(pg_get_constraintdef(k.oid) FROM '^CHECK \((.*)\)') END
        WHEN 'n' THEN coalesce((SELECT a.attname::text FROM pg_attribute a
            WHERE a.attrelid = k.conrelid AND a.attnum = k.conkey[1]), 'VALUE') || ' IS NOT NULL' END AS check_clause
FROM pg_constraint k
    LEFT JOIN pg_namespace n ON n.oid = k.connamespace
    LEFT JOIN pg_class c ON c.oid = k.conrelid
    LEFT JOIN pg_type t ON t.oid = k.contypid
WHERE k.contype IN ('c', 'n') AND pg_has_role(coalesce(c.relowner, t.typowner), 'USAGE')

-- view referential_constraints
SELECT current_database() AS constraint_catalog, n.nspname AS constraint_schema, k.conname AS constraint_name,
    CASE WHEN u.oid IS NOT NULL THEN current_database() END AS unique_constraint_catalog,
    un.nspname AS unique_constraint_schema, u.conname AS unique_constraint_name,
    CASE k.confmatchtype WHEN 'f' THEN 'FULL' WHEN 'p' THEN 'PARTIAL' WHEN 's' THEN 'NONE' END AS match_option,
    CASE k.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT'
        WHEN 'r' THEN 'RESTRICT' WHEN 'a' THEN 'NO ACTION' END AS update_rule,
    CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT'
        WHEN 'r' THEN 'RESTRICT' WHEN 'a' THEN 'NO ACTION' END AS delete_rule
FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    JOIN pg_class c ON c.oid = k.conrelid
    LEFT JOIN pg_constraint u ON u.conindid = k.conindid AND u.conrelid = k.confrelid AND u.contype IN ('p', 'u')
    LEFT JOIN pg_namespace un ON un.oid = u.connamespace
WHERE k.contype = 'f'
    AND (pg_has_role(c.relowner, 'USAGE')
        OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))

-- view key_column_usage
SELECT current_database() AS constraint_catalog, cn.nspname AS constraint_schema, k.conname AS constraint_name,
    current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name,
    p.position AS ordinal_position,
    CASE WHEN k.contype = 'f' THEN
        (SELECT q.position FROM pg_index x, unnest(x.indkey::int2[]) WITH ORDINALITY q(attnum, position)
            WHERE x.indexrelid = k.conindid AND q.attnum = k.confkey[p.position])
        END AS position_in_unique_constraint
FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_namespace cn ON cn.oid = k.connamespace
    CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY p(attnum, position)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.attnum AND NOT a.attisdropped
WHERE k.contype IN ('p', 'u', 'f') AND c.relkind IN ('r', 'p') AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE') OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view constraint_column_usage
SELECT current_database() AS table_catalog, u.table_schema, u.table_name, u.column_name,
    current_database() AS constraint_catalog, u.constraint_schema, u.constraint_name
FROM (
    SELECT DISTINCT n.nspname, c.relname, c.relowner, a.attname, cn.nspname, k.conname
    FROM pg_constraint k
        JOIN pg_namespace cn ON cn.oid = k.connamespace
        JOIN pg_depend d ON d.classid = 2606 AND d.objid = k.oid AND d.refclassid = 1259
        JOIN pg_class c ON c.oid = d.refobjid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
    WHERE k.contype = 'c' AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
    UNION ALL
    SELECT n.nspname, c.relname, c.relowner, a.attname, cn.nspname, k.conname
    FROM pg_constraint k
        JOIN pg_namespace cn ON cn.oid = k.connamespace
        JOIN pg_class c ON c.oid = CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END
        JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid
            AND a.attnum = ANY (CASE WHEN k.contype = 'f' THEN k.confkey ELSE k.conkey END)
    WHERE k.contype IN ('n', 'p', 'u', 'f') AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
) u(table_schema, table_name, owner, column_name, constraint_schema, constraint_name)
WHERE pg_has_role(u.owner, 'USAGE')

-- view constraint_table_usage
SELECT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
    current_database() AS constraint_catalog, cn.nspname AS constraint_schema, k.conname AS constraint_name
FROM pg_constraint k
    JOIN pg_namespace cn ON cn.oid = k.connamespace
    JOIN pg_class c ON c.oid = CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END
    JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype IN ('p', 'u', 'f') AND c.relkind IN ('r', 'p') AND pg_has_role(c.relowner, 'USAGE')

-- view column_column_usage
SELECT DISTINCT current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
    a.attname AS column_name, g.attname AS dependent_column
FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute g ON g.attrelid = c.oid AND g.attgenerated <> ''
    JOIN pg_attrdef f ON f.adrelid = c.oid AND f.adnum = g.attnum
    JOIN pg_depend d ON d.classid = 2604 AND d.objid = f.oid AND d.refclassid = 1259 AND d.refobjid = c.oid
        AND d.deptype = 'n'
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
WHERE pg_has_role(c.relowner, 'USAGE')

-- view view_table_usage
SELECT DISTINCT current_database() AS view_catalog, vn.nspname AS view_schema, v.relname AS view_name,
    current_database() AS table_catalog, n.nspname AS table_schema, t.relname AS table_name
FROM pg_rewrite r
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' AND r.rulename = '_RETURN'
    JOIN pg_namespace vn ON vn.oid = v.relnamespace
    JOIN pg_depend d ON d.classid = 2618 AND d.objid = r.oid AND d.refclassid = 1259 AND d.refobjid <> v.oid
        AND d.deptype = 'n'
    JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'v', 'f', 'p')
    JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE pg_has_role(t.relowner, 'USAGE')

-- view view_column_usage
SELECT DISTINCT current_database() AS view_catalog, vn.nspname AS view_schema, v.relname AS view_name,
    current_database() AS table_catalog, n.nspname AS table_schema, t.relname AS table_name, a.attname AS column_name
FROM pg_rewrite r
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' AND r.rulename = '_RETURN'
    JOIN pg_namespace vn ON vn.oid = v.relnamespace
    JOIN pg_depend d ON d.classid = 2618 AND d.objid = r.oid AND d.refclassid = 1259 AND d.refobjid <> v.oid
        AND d.deptype = 'n'
    JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'v', 'f', 'p')
    JOIN pg_namespace n ON n.oid = t.relnamespace
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
WHERE pg_has_role(t.relowner, 'USAGE')

-- view view_routine_usage
SELECT DISTINCT current_database() AS table_catalog, vn.nspname AS table_schema, v.relname AS table_name,
    current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name
FROM pg_rewrite r
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' AND r.rulename = '_RETURN'
    JOIN pg_namespace vn ON vn.oid = v.relnamespace
    JOIN pg_depend d ON d.classid = 2618 AND d.objid = r.oid AND d.refclassid = 1255 AND d.deptype = 'n'
    JOIN pg_proc p ON p.oid = d.refobjid
    JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE pg_has_role(p.proowner, 'USAGE')

-- view triggers
SELECT current_database() AS trigger_catalog, n.nspname AS trigger_schema, t.tgname AS trigger_name,
    e.name AS event_manipulation, current_database() AS event_object_catalog, n.nspname AS event_object_schema,
    c.relname AS event_object_table,
    rank() OVER (PARTITION BY n.nspname, c.relname, e.number, t.tgtype & 1, t.tgtype & 66 ORDER BY t.tgname)
        AS action_order,
    CASE WHEN pg_has_role(c.relowner, 'USAGE')
        THEN (regexp_match(pg_get_triggerdef(t.oid), '.{35,} WHEN \((.+)\) EXECUTE FUNCTION'))[1] END AS action_condition,
    substring(pg_get_triggerdef(t.oid)
        FROM position('EXECUTE FUNCTION' IN substring(pg_get_triggerdef(t.oid) FROM 48)) + 47) AS action_statement,
    CASE t.tgtype & 1 WHEN 1 THEN 'ROW' ELSE 'STATEMENT' END AS action_orientation,
    CASE t.tgtype & 66 WHEN 2 THEN 'BEFORE' WHEN 64 THEN 'INSTEAD OF' ELSE 'AFTER' END AS action_timing,
    t.tgoldtable AS action_reference_old_table, t.tgnewtable AS action_reference_new_table,
    NULL AS action_reference_old_row, NULL AS action_reference_new_row, NULL::timestamptz AS created
FROM pg_trigger t
    JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN (VALUES (4, 'INSERT'), (8, 'DELETE'), (16, 'UPDATE')) e(number, name) ON (t.tgtype & e.number) <> 0
WHERE NOT t.tgisinternal AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE')
        OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))

-- view triggered_update_columns
SELECT current_database() AS trigger_catalog, n.nspname AS trigger_schema, t.tgname AS trigger_name,
    current_database() AS event_object_catalog, n.nspname AS event_object_schema, c.relname AS event_object_table,
    a.attname AS event_object_column
FROM pg_trigger t
    JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL unnest(t.tgattr::int2[]) k(attnum)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE NOT t.tgisinternal AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE') OR has_column_privilege(c.oid, a.attnum, 'INSERT, UPDATE, REFERENCES'))
