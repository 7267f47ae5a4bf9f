-- information_schema: who may do what. A section a view; see src/views.rs, which casts the columns to the schema's domains.

-- view table_privileges
SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC') AS grantee, current_database() AS table_catalog,
    n.nspname AS table_schema, c.relname AS table_name, a.privilege_type,
    CASE WHEN pg_has_role(a.grantee, c.relowner, 'USAGE') OR a.is_grantable THEN 'YES' ELSE 'NO' END AS is_grantable,
    CASE WHEN a.privilege_type = 'SELECT' THEN 'YES' ELSE 'NO' END AS with_hierarchy
FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
    JOIN pg_authid g ON g.oid = a.grantor
    LEFT JOIN pg_authid e ON e.oid = a.grantee
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND (a.grantee = 0 OR e.oid IS NOT NULL)
    AND a.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER')
    AND (pg_has_role(g.oid, 'USAGE') OR a.grantee = 0 OR pg_has_role(e.oid, 'USAGE'))

-- view column_privileges
SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC') AS grantee, current_database() AS table_catalog,
    n.nspname AS table_schema, x.relname AS table_name, x.attname AS column_name, x.privilege_type,
    CASE WHEN pg_has_role(x.grantee, x.relowner, 'USAGE') OR x.is_grantable THEN 'YES' ELSE 'NO' END AS is_grantable
FROM (
    SELECT c.relname, c.relnamespace, c.relowner, t.attname, a.grantor, a.grantee, a.privilege_type, a.is_grantable
    FROM pg_class c
        CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
        JOIN pg_attribute t ON t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped
    WHERE c.relkind IN ('r', 'v', 'f', 'p')
    UNION
    SELECT c.relname, c.relnamespace, c.relowner, t.attname, a.grantor, a.grantee, a.privilege_type, a.is_grantable
    FROM pg_class c
        JOIN pg_attribute t ON t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped
        CROSS JOIN LATERAL aclexplode(t.attacl) a
    WHERE c.relkind IN ('r', 'v', 'f', 'p')
) x
    JOIN pg_namespace n ON n.oid = x.relnamespace
    JOIN pg_authid g ON g.oid = x.grantor
    LEFT JOIN pg_authid e ON e.oid = x.grantee
WHERE x.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES') AND (x.grantee = 0 OR e.oid IS NOT NULL)
    AND (pg_has_role(g.oid, 'USAGE') OR x.grantee = 0 OR pg_has_role(e.oid, 'USAGE'))

-- view routine_privileges
SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC') AS grantee, current_database() AS specific_catalog,
    n.nspname AS specific_schema, nameconcatoid(p.proname, p.oid) AS specific_name,
    current_database() AS routine_catalog, n.nspname AS routine_schema, p.proname AS routine_name,
    'EXECUTE' AS privilege_type,
    CASE WHEN pg_has_role(a.grantee, p.proowner, 'USAGE') OR a.is_grantable THEN 'YES' ELSE 'NO' END AS is_grantable
FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    JOIN pg_authid g ON g.oid = a.grantor
    LEFT JOIN pg_authid e ON e.oid = a.grantee
WHERE a.privilege_type = 'EXECUTE' AND (a.grantee = 0 OR e.oid IS NOT NULL)
    AND (pg_has_role(g.oid, 'USAGE') OR a.grantee = 0 OR pg_has_role(e.oid, 'USAGE'))

-- view udt_privileges
SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC') AS grantee, current_database() AS udt_catalog,
    n.nspname AS udt_schema, t.typname AS udt_name, 'TYPE USAGE' AS privilege_type,
    CASE WHEN pg_has_role(a.grantee, t.typowner, 'USAGE') OR a.is_grantable THEN 'YES' ELSE 'NO' END AS is_grantable
FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    CROSS JOIN LATERAL aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a
    JOIN pg_authid g ON g.oid = a.grantor
    LEFT JOIN pg_authid e ON e.oid = a.grantee
WHERE t.typtype = 'c' AND a.privilege_type = 'USAGE' AND (a.grantee = 0 OR e.oid IS NOT NULL)
    AND (pg_has_role(g.oid, 'USAGE') OR a.grantee = 0 OR pg_has_role(e.oid, 'USAGE'))

-- view usage_privileges
SELECT pg_get_userbyid(c.collowner) AS grantor, 'PUBLIC' AS grantee, current_database() AS object_catalog,
    n.nspname AS object_schema, c.collname AS object_name, 'COLLATION' AS object_type, 'USAGE' AS privilege_type,
    'NO' AS is_grantable
FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
WHERE c.collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))
UNION ALL
SELECT g.rolname, coalesce(e.rolname, 'PUBLIC'), current_database(), coalesce(n.nspname, ''), x.name, x.kind, 'USAGE',
    CASE WHEN pg_has_role(a.grantee, x.owner, 'USAGE') OR a.is_grantable THEN 'YES' ELSE 'NO' END
FROM (
    SELECT typname, typnamespace, typowner, 'DOMAIN', coalesce(typacl, acldefault('T', typowner))
    FROM pg_type WHERE typtype = 'd'
    UNION ALL
    SELECT relname, relnamespace, relowner, 'SEQUENCE', relacl
    FROM pg_class WHERE relkind = 'S'
    UNION ALL
    SELECT fdwname, 0, fdwowner, 'FOREIGN DATA WRAPPER', coalesce(fdwacl, acldefault('F', fdwowner))
    FROM pg_foreign_data_wrapper
    UNION ALL
    SELECT srvname, 0, srvowner, 'FOREIGN SERVER', coalesce(srvacl, acldefault('S', srvowner))
    FROM pg_foreign_server
) x(name, namespace, owner, kind, acl)
    LEFT JOIN pg_namespace n ON n.oid = x.namespace
    CROSS JOIN LATERAL aclexplode(x.acl) a
    JOIN pg_authid g ON g.oid = a.grantor
    LEFT JOIN pg_authid e ON e.oid = a.grantee
WHERE a.privilege_type = 'USAGE' AND (a.grantee = 0 OR e.oid IS NOT NULL)
    AND (pg_has_role(g.oid, 'USAGE') OR a.grantee = 0 OR pg_has_role(e.oid, 'USAGE'))
