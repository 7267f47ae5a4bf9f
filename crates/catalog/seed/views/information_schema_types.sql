-- information_schema: columns, types, routines. A section a view; see src/views.rs, which casts the columns to the
-- schema's domains.

-- view columns
SELECT
    current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name,
    a.attnum AS ordinal_position,
    CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END AS column_default,
    CASE WHEN a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) THEN 'NO' ELSE 'YES' END AS is_nullable,
    CASE WHEN t.typtype = 'd' THEN
            CASE WHEN bt.typelem <> 0 AND bt.typlen = -1 THEN 'ARRAY'
                WHEN bn.nspname = 'pg_catalog' THEN format_type(t.typbasetype, NULL) ELSE 'USER-DEFINED' END
        WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY'
        WHEN tn.nspname = 'pg_catalog' THEN format_type(a.atttypid, NULL)
        ELSE 'USER-DEFINED' END AS data_type,
    i.character_maximum_length, i.character_octet_length, i.numeric_precision, i.numeric_precision_radix,
    i.numeric_scale, i.datetime_precision, i.interval_type, NULL::int AS interval_precision,
    NULL AS character_set_catalog, NULL AS character_set_schema, NULL AS character_set_name,
    CASE WHEN con.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
    con.nspname AS collation_schema, co.collname AS collation_name,
    CASE WHEN t.typtype = 'd' THEN current_database() END AS domain_catalog,
    CASE WHEN t.typtype = 'd' THEN tn.nspname END AS domain_schema,
    CASE WHEN t.typtype = 'd' THEN t.typname END AS domain_name, current_database() AS udt_catalog,
    coalesce(bn.nspname, tn.nspname) AS udt_schema, coalesce(bt.typname, t.typname) AS udt_name,
    NULL AS scope_catalog, NULL AS scope_schema, NULL AS scope_name, NULL::int AS maximum_cardinality,
    a.attnum AS dtd_identifier, 'NO' AS is_self_referencing,
    CASE WHEN a.attidentity IN ('a', 'd') THEN 'YES' ELSE 'NO' END AS is_identity,
    CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END AS identity_generation,
    s.seqstart::text AS identity_start, s.seqincrement::text AS identity_increment,
    s.seqmax::text AS identity_maximum, s.seqmin::text AS identity_minimum,
    CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END AS identity_cycle,
    CASE WHEN a.attgenerated <> '' THEN 'ALWAYS' ELSE 'NEVER' END AS is_generated,
    CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END AS generation_expression,
    CASE WHEN c.relkind IN ('r', 'p') OR (c.relkind IN ('v', 'f') AND pg_column_is_updatable(c.oid::regclass, a.attnum, false)) THEN 'YES' ELSE 'NO' END AS is_updatable
FROM pg_attribute a
    JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    JOIN (pg_type t JOIN pg_namespace tn ON tn.oid = t.typnamespace) ON t.oid = a.atttypid
    LEFT JOIN (pg_type bt JOIN pg_namespace bn ON bn.oid = bt.typnamespace)
        ON t.typtype = 'd' AND bt.oid = t.typbasetype
    LEFT JOIN (pg_collation co JOIN pg_namespace con ON con.oid = co.collnamespace)
        ON co.oid = a.attcollation AND (con.nspname, co.collname) <> ('pg_catalog', 'default')
    LEFT JOIN (pg_depend dep JOIN pg_sequence s ON dep.classid = 1259 AND dep.objid = s.seqrelid AND dep.deptype = 'i')
        ON dep.refclassid = 1259 AND dep.refobjid = c.oid AND dep.refobjsubid = a.attnum
    CROSS JOIN LATERAL (
        SELECT CASE WHEN x.ty IN (1042, 1043) AND x.mod <> -1 THEN x.mod - 4
                WHEN x.ty IN (1560, 1562) AND x.mod <> -1 THEN x.mod END AS character_maximum_length,
            CASE WHEN x.ty IN (25, 1042, 1043) THEN
                CASE WHEN x.mod = -1 THEN 1073741824 ELSE (x.mod - 4) * 4 END END AS character_octet_length,
            CASE x.ty WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
                WHEN 1700 THEN CASE WHEN x.mod <> -1 THEN ((x.mod - 4) >> 16) & 65535 END END AS numeric_precision,
            CASE WHEN x.ty IN (21, 23, 20, 700, 701) THEN 2 WHEN x.ty = 1700 THEN 10 END AS numeric_precision_radix,
            CASE WHEN x.ty IN (21, 23, 20) THEN 0
                WHEN x.ty = 1700 AND x.mod <> -1 THEN (x.mod - 4) & 2047 END AS numeric_scale,
            CASE WHEN x.ty = 1082 THEN 0
                WHEN x.ty IN (1083, 1114, 1184, 1266) THEN CASE WHEN x.mod < 0 THEN 6 ELSE x.mod END
                WHEN x.ty = 1186 THEN CASE WHEN x.mod < 0 OR (x.mod & 65535) = 65535 THEN 6 ELSE x.mod & 65535 END
                END AS datetime_precision,
            CASE WHEN x.ty = 1186 THEN upper(nullif(trim(
                regexp_replace(format_type(x.ty, x.mod), '^interval(\(\d+\))?', '')), '')) END AS interval_type
        FROM (SELECT CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END,
            CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) x(ty, mod)
    ) i
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p') AND NOT pg_is_other_temp_schema(n.oid)
    AND (pg_has_role(c.relowner, 'USAGE') OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view attributes
SELECT
    current_database() AS udt_catalog, n.nspname AS udt_schema, c.relname AS udt_name, a.attname AS attribute_name,
    a.attnum AS ordinal_position, pg_get_expr(d.adbin, d.adrelid) AS attribute_default,
    CASE WHEN a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) THEN 'NO' ELSE 'YES' END AS is_nullable,
    CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' WHEN tn.nspname = 'pg_catalog' THEN format_type(a.atttypid, NULL) ELSE 'USER-DEFINED' END AS data_type,
    i.character_maximum_length, i.character_octet_length, NULL AS character_set_catalog, NULL AS character_set_schema,
    NULL AS character_set_name, CASE WHEN con.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
    con.nspname AS collation_schema, co.collname AS collation_name, i.numeric_precision, i.numeric_precision_radix,
    i.numeric_scale, i.datetime_precision, i.interval_type, NULL::int AS interval_precision,
    current_database() AS attribute_udt_catalog, tn.nspname AS attribute_udt_schema, t.typname AS attribute_udt_name,
    NULL AS scope_catalog, NULL AS scope_schema, NULL AS scope_name, NULL::int AS maximum_cardinality,
    a.attnum AS dtd_identifier, 'NO' AS is_derived_reference_attribute
FROM pg_attribute a
    JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    JOIN (pg_type t JOIN pg_namespace tn ON tn.oid = t.typnamespace) ON t.oid = a.atttypid
    LEFT JOIN (pg_collation co JOIN pg_namespace con ON con.oid = co.collnamespace)
        ON co.oid = a.attcollation AND (con.nspname, co.collname) <> ('pg_catalog', 'default')
    CROSS JOIN LATERAL (
        SELECT CASE WHEN x.ty IN (1042, 1043) AND x.mod <> -1 THEN x.mod - 4
                WHEN x.ty IN (1560, 1562) AND x.mod <> -1 THEN x.mod END AS character_maximum_length,
            CASE WHEN x.ty IN (25, 1042, 1043) THEN
                CASE WHEN x.mod = -1 THEN 1073741824 ELSE (x.mod - 4) * 4 END END AS character_octet_length,
            CASE x.ty WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
                WHEN 1700 THEN CASE WHEN x.mod <> -1 THEN ((x.mod - 4) >> 16) & 65535 END END AS numeric_precision,
            CASE WHEN x.ty IN (21, 23, 20, 700, 701) THEN 2 WHEN x.ty = 1700 THEN 10 END AS numeric_precision_radix,
            CASE WHEN x.ty IN (21, 23, 20) THEN 0
                WHEN x.ty = 1700 AND x.mod <> -1 THEN (x.mod - 4) & 2047 END AS numeric_scale,
            CASE WHEN x.ty = 1082 THEN 0
                WHEN x.ty IN (1083, 1114, 1184, 1266) THEN CASE WHEN x.mod < 0 THEN 6 ELSE x.mod END
                WHEN x.ty = 1186 THEN CASE WHEN x.mod < 0 OR (x.mod & 65535) = 65535 THEN 6 ELSE x.mod & 65535 END
                END AS datetime_precision,
            CASE WHEN x.ty = 1186 THEN upper(nullif(trim(
                regexp_replace(format_type(x.ty, x.mod), '^interval(\(\d+\))?', '')), '')) END AS interval_type
        FROM (SELECT CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END,
            CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) x(ty, mod)
    ) i
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'c'
    AND (pg_has_role(c.relowner, 'USAGE') OR has_type_privilege(c.reltype, 'USAGE'))

-- view domains
SELECT
    current_database() AS domain_catalog, n.nspname AS domain_schema, t.typname AS domain_name,
    CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' WHEN bn.nspname = 'pg_catalog' THEN format_type(t.typbasetype, NULL) ELSE 'USER-DEFINED' END AS data_type,
    i.character_maximum_length, i.character_octet_length, NULL AS character_set_catalog, NULL AS character_set_schema,
    NULL AS character_set_name, CASE WHEN con.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
    con.nspname AS collation_schema, co.collname AS collation_name, i.numeric_precision, i.numeric_precision_radix,
    i.numeric_scale, i.datetime_precision, i.interval_type, NULL::int AS interval_precision,
    t.typdefault AS domain_default, current_database() AS udt_catalog, bn.nspname AS udt_schema,
    b.typname AS udt_name, NULL AS scope_catalog, NULL AS scope_schema, NULL AS scope_name,
    NULL::int AS maximum_cardinality, 1 AS dtd_identifier
FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    JOIN (pg_type b JOIN pg_namespace bn ON bn.oid = b.typnamespace) ON b.oid = t.typbasetype
    LEFT JOIN (pg_collation co JOIN pg_namespace con ON con.oid = co.collnamespace)
        ON co.oid = t.typcollation AND (con.nspname, co.collname) <> ('pg_catalog', 'default')
    CROSS JOIN LATERAL (
        SELECT CASE WHEN x.ty IN (1042, 1043) AND x.mod <> -1 THEN x.mod - 4
                WHEN x.ty IN (1560, 1562) AND x.mod <> -1 THEN x.mod END AS character_maximum_length,
            CASE WHEN x.ty IN (25, 1042, 1043) THEN
                CASE WHEN x.mod = -1 THEN 1073741824 ELSE (x.mod - 4) * 4 END END AS character_octet_length,
            CASE x.ty WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
                WHEN 1700 THEN CASE WHEN x.mod <> -1 THEN ((x.mod - 4) >> 16) & 65535 END END AS numeric_precision,
            CASE WHEN x.ty IN (21, 23, 20, 700, 701) THEN 2 WHEN x.ty = 1700 THEN 10 END AS numeric_precision_radix,
            CASE WHEN x.ty IN (21, 23, 20) THEN 0
                WHEN x.ty = 1700 AND x.mod <> -1 THEN (x.mod - 4) & 2047 END AS numeric_scale,
            CASE WHEN x.ty = 1082 THEN 0
                WHEN x.ty IN (1083, 1114, 1184, 1266) THEN CASE WHEN x.mod < 0 THEN 6 ELSE x.mod END
                WHEN x.ty = 1186 THEN CASE WHEN x.mod < 0 OR (x.mod & 65535) = 65535 THEN 6 ELSE x.mod & 65535 END
                END AS datetime_precision,
            CASE WHEN x.ty = 1186 THEN upper(nullif(trim(
                regexp_replace(format_type(x.ty, x.mod), '^interval(\(\d+\))?', '')), '')) END AS interval_type
        FROM (SELECT t.typbasetype, t.typtypmod) x(ty, mod)
    ) i
WHERE t.typtype = 'd' AND (pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE'))

-- view domain_constraints
SELECT current_database() AS constraint_catalog, cn.nspname AS constraint_schema, k.conname AS constraint_name,
    current_database() AS domain_catalog, n.nspname AS domain_schema, t.typname AS domain_name,
    CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END AS is_deferrable,
    CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END AS initially_deferred
FROM pg_constraint k
    JOIN pg_namespace cn ON cn.oid = k.connamespace
    JOIN pg_type t ON t.oid = k.contypid
    JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE')

-- view domain_udt_usage
SELECT current_database() AS udt_catalog, bn.nspname AS udt_schema, b.typname AS udt_name,
    current_database() AS domain_catalog, n.nspname AS domain_schema, t.typname AS domain_name
FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    JOIN pg_type b ON b.oid = t.typbasetype
    JOIN pg_namespace bn ON bn.oid = b.typnamespace
WHERE t.typtype = 'd' AND pg_has_role(b.typowner, 'USAGE')

-- view column_domain_usage
SELECT current_database() AS domain_catalog, tn.nspname AS domain_schema, t.typname AS domain_name,
    current_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name
FROM pg_type t
    JOIN pg_namespace tn ON tn.oid = t.typnamespace
    JOIN pg_attribute a ON a.atttypid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE t.typtype = 'd' AND c.relkind IN ('r', 'v', 'f', 'p') AND pg_has_role(t.typowner, 'USAGE')

-- view column_udt_usage
SELECT current_database() AS udt_catalog, coalesce(bn.nspname, tn.nspname) AS udt_schema,
    coalesce(bt.typname, t.typname) AS udt_name, current_database() AS table_catalog, n.nspname AS table_schema,
    c.relname AS table_name, a.attname AS column_name
FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN (pg_type t JOIN pg_namespace tn ON tn.oid = t.typnamespace) ON t.oid = a.atttypid
    LEFT JOIN (pg_type bt JOIN pg_namespace bn ON bn.oid = bt.typnamespace)
        ON t.typtype = 'd' AND bt.oid = t.typbasetype
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p')
    AND pg_has_role(coalesce(bt.typowner, t.typowner), 'USAGE')

-- view user_defined_types
SELECT
    current_database() AS user_defined_type_catalog, n.nspname AS user_defined_type_schema,
    c.relname AS user_defined_type_name, 'STRUCTURED' AS user_defined_type_category, 'YES' AS is_instantiable,
    NULL AS is_final, NULL AS ordering_form, NULL AS ordering_category, NULL AS ordering_routine_catalog,
    NULL AS ordering_routine_schema, NULL AS ordering_routine_name, NULL AS reference_type, NULL AS data_type,
    NULL::int AS character_maximum_length, NULL::int AS character_octet_length, NULL AS character_set_catalog,
    NULL AS character_set_schema, NULL AS character_set_name, NULL AS collation_catalog, NULL AS collation_schema,
    NULL AS collation_name, NULL::int AS numeric_precision, NULL::int AS numeric_precision_radix,
    NULL::int AS numeric_scale, NULL::int AS datetime_precision, NULL AS interval_type,
    NULL::int AS interval_precision, NULL AS source_dtd_identifier, NULL AS ref_dtd_identifier
FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = c.reltype
WHERE c.relkind = 'c' AND (pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE'))

-- view element_types
SELECT
    current_database() AS object_catalog, n.nspname AS object_schema, x.objname AS object_name,
    x.objtype AS object_type, x.objdtdid AS collection_type_identifier,
    CASE WHEN en.nspname = 'pg_catalog' THEN format_type(e.oid, NULL) ELSE 'USER-DEFINED' END AS data_type,
    NULL::int AS character_maximum_length, NULL::int AS character_octet_length, NULL AS character_set_catalog,
    NULL AS character_set_schema, NULL AS character_set_name,
    CASE WHEN con.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
    con.nspname AS collation_schema, co.collname AS collation_name, NULL::int AS numeric_precision,
    NULL::int AS numeric_precision_radix, NULL::int AS numeric_scale, NULL::int AS datetime_precision,
    NULL AS interval_type, NULL::int AS interval_precision, current_database() AS udt_catalog,
    en.nspname AS udt_schema, e.typname AS udt_name, NULL AS scope_catalog, NULL AS scope_schema, NULL AS scope_name,
    NULL::int AS maximum_cardinality, 'a' || x.objdtdid AS dtd_identifier
FROM (
    SELECT c.relnamespace, c.relname, CASE WHEN c.relkind = 'c' THEN 'USER-DEFINED TYPE' ELSE 'TABLE' END, a.attnum::text,
        a.atttypid, a.attcollation
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind IN ('r', 'v', 'f', 'c', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT t.typnamespace, t.typname, 'DOMAIN', '1', t.typbasetype, t.typcollation FROM pg_type t WHERE t.typtype = 'd'
    UNION ALL
    SELECT p.pronamespace, nameconcatoid(p.proname, p.oid), 'ROUTINE', q.position::text, q.type, 0
    FROM pg_proc p CROSS JOIN LATERAL unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY
        q(type, position)
    UNION ALL
    SELECT p.pronamespace, nameconcatoid(p.proname, p.oid), 'ROUTINE', '0', p.prorettype, 0 FROM pg_proc p
) x(objschema, objname, objtype, objdtdid, objtypeid, objcollation)
    JOIN pg_namespace n ON n.oid = x.objschema
    JOIN pg_type t ON t.oid = x.objtypeid AND t.typelem <> 0 AND t.typlen = -1
    JOIN pg_type e ON e.oid = t.typelem
    JOIN pg_namespace en ON en.oid = e.typnamespace
    LEFT JOIN (pg_collation co JOIN pg_namespace con ON con.oid = co.collnamespace)
        ON co.oid = x.objcollation AND (con.nspname, co.collname) <> ('pg_catalog', 'default')
WHERE (n.nspname, x.objname, x.objtype, x.objdtdid) IN
    (SELECT object_schema, object_name, object_type, dtd_identifier FROM information_schema.data_type_privileges)

-- view data_type_privileges
SELECT current_database() AS object_catalog, x.object_schema, x.object_name, x.object_type, x.dtd_identifier
FROM (
    SELECT udt_schema, udt_name, 'USER-DEFINED TYPE', dtd_identifier FROM information_schema.attributes
    UNION ALL SELECT table_schema, table_name, 'TABLE', dtd_identifier FROM information_schema.columns
    UNION ALL SELECT domain_schema, domain_name, 'DOMAIN', dtd_identifier FROM information_schema.domains
    UNION ALL SELECT specific_schema, specific_name, 'ROUTINE', dtd_identifier FROM information_schema.parameters
    UNION ALL SELECT specific_schema, specific_name, 'ROUTINE', dtd_identifier FROM information_schema.routines
) x(object_schema, object_name, object_type, dtd_identifier)

-- view routines
SELECT
    current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name, current_database() AS routine_catalog,
    n.nspname AS routine_schema, p.proname AS routine_name,
    CASE p.prokind WHEN 'f' THEN 'FUNCTION' WHEN 'p' THEN 'PROCEDURE' END AS routine_type, NULL AS module_catalog,
    NULL AS module_schema, NULL AS module_name, NULL AS udt_catalog, NULL AS udt_schema, NULL AS udt_name,
    CASE WHEN p.prokind = 'p' THEN NULL WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' WHEN tn.nspname = 'pg_catalog' THEN format_type(t.oid, NULL) ELSE 'USER-DEFINED' END AS data_type,
    NULL::int AS character_maximum_length, NULL::int AS character_octet_length, NULL AS character_set_catalog,
    NULL AS character_set_schema, NULL AS character_set_name, NULL AS collation_catalog, NULL AS collation_schema,
    NULL AS collation_name, NULL::int AS numeric_precision, NULL::int AS numeric_precision_radix,
    NULL::int AS numeric_scale, NULL::int AS datetime_precision, NULL AS interval_type,
    NULL::int AS interval_precision, CASE WHEN p.prokind <> 'p' THEN current_database() END AS type_udt_catalog,
    CASE WHEN p.prokind <> 'p' THEN tn.nspname END AS type_udt_schema,
    CASE WHEN p.prokind <> 'p' THEN t.typname END AS type_udt_name, NULL AS scope_catalog, NULL AS scope_schema,
    NULL AS scope_name, NULL::int AS maximum_cardinality, CASE WHEN p.prokind <> 'p' THEN 0 END AS dtd_identifier,
    CASE WHEN l.lanname = 'sql' THEN 'SQL' ELSE 'EXTERNAL' END AS routine_body,
    CASE WHEN pg_has_role(p.proowner, 'USAGE') THEN p.prosrc END AS routine_definition,
    CASE WHEN l.lanname = 'c' THEN p.prosrc END AS external_name, upper(l.lanname) AS external_language,
    'GENERAL' AS parameter_style, CASE WHEN p.provolatile = 'i' THEN 'YES' ELSE 'NO' END AS is_deterministic,
    'MODIFIES' AS sql_data_access,
    CASE WHEN p.prokind <> 'p' THEN CASE WHEN p.proisstrict THEN 'YES' ELSE 'NO' END END AS is_null_call,
    NULL AS sql_path, 'YES' AS schema_level_routine, 0 AS max_dynamic_result_sets, NULL AS is_user_defined_cast,
    NULL AS is_implicitly_invocable, CASE WHEN p.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END AS security_type,
    NULL AS to_sql_specific_catalog, NULL AS to_sql_specific_schema, NULL AS to_sql_specific_name, 'NO' AS as_locator,
    NULL::timestamptz AS created, NULL::timestamptz AS last_altered, NULL AS new_savepoint_level,
    'NO' AS is_udt_dependent, NULL AS result_cast_from_data_type, NULL AS result_cast_as_locator,
    NULL::int AS result_cast_char_max_length, NULL::int AS result_cast_char_octet_length,
    NULL AS result_cast_char_set_catalog, NULL AS result_cast_char_set_schema, NULL AS result_cast_char_set_name,
    NULL AS result_cast_collation_catalog, NULL AS result_cast_collation_schema, NULL AS result_cast_collation_name,
    NULL::int AS result_cast_numeric_precision, NULL::int AS result_cast_numeric_precision_radix,
    NULL::int AS result_cast_numeric_scale, NULL::int AS result_cast_datetime_precision,
    NULL AS result_cast_interval_type, NULL::int AS result_cast_interval_precision,
    NULL AS result_cast_type_udt_catalog, NULL AS result_cast_type_udt_schema, NULL AS result_cast_type_udt_name,
    NULL AS result_cast_scope_catalog, NULL AS result_cast_scope_schema, NULL AS result_cast_scope_name,
    NULL::int AS result_cast_maximum_cardinality, NULL AS result_cast_dtd_identifier
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_language l ON l.oid = p.prolang
    LEFT JOIN pg_type t ON t.oid = p.prorettype AND p.prokind <> 'p'
    LEFT JOIN pg_namespace tn ON tn.oid = t.typnamespace
WHERE pg_has_role(p.proowner, 'USAGE') OR has_function_privilege(p.oid, 'EXECUTE')

-- view parameters
SELECT
    current_database() AS specific_catalog, n.nspname AS specific_schema,
    nameconcatoid(p.proname, p.oid) AS specific_name, q.position AS ordinal_position,
    CASE p.proargmodes[q.position] WHEN 'o' THEN 'OUT' WHEN 'b' THEN 'INOUT' WHEN 't' THEN 'OUT' ELSE 'IN' END AS parameter_mode,
    'NO' AS is_result, 'NO' AS as_locator, nullif(p.proargnames[q.position], '') AS parameter_name,
    CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' WHEN tn.nspname = 'pg_catalog' THEN format_type(t.oid, NULL) ELSE 'USER-DEFINED' END AS data_type,
    NULL::int AS character_maximum_length, NULL::int AS character_octet_length, NULL AS character_set_catalog,
    NULL AS character_set_schema, NULL AS character_set_name, NULL AS collation_catalog, NULL AS collation_schema,
    NULL AS collation_name, NULL::int AS numeric_precision, NULL::int AS numeric_precision_radix,
    NULL::int AS numeric_scale, NULL::int AS datetime_precision, NULL AS interval_type,
    NULL::int AS interval_precision, current_database() AS udt_catalog, tn.nspname AS udt_schema,
    t.typname AS udt_name, NULL AS scope_catalog, NULL AS scope_schema, NULL AS scope_name,
    NULL::int AS maximum_cardinality, q.position AS dtd_identifier,
    CASE WHEN pg_has_role(p.proowner, 'USAGE') THEN pg_get_function_arg_default(p.oid, q.position::int) END AS parameter_default
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    CROSS JOIN LATERAL unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY q(type, position)
    JOIN pg_type t ON t.oid = q.type
    JOIN pg_namespace tn ON tn.oid = t.typnamespace
WHERE pg_has_role(p.proowner, 'USAGE') OR has_function_privilege(p.oid, 'EXECUTE')
